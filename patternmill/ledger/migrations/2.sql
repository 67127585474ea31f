-- Version 1 to 2: a person's approval of a plan.
ALTER TABLE attempts ADD COLUMN approval_id TEXT;

-- What was put before a person, and the word on it: a ceiling for everything that is bought under it.
CREATE TABLE approvals (
    id             TEXT PRIMARY KEY,
    environment    TEXT NOT NULL,
    catalog        TEXT NOT NULL,
    digest         TEXT NOT NULL,   -- SHA-256 of the plan
    items          INTEGER NOT NULL, -- that the plan would buy
    expected       INTEGER NOT NULL, -- minor units
    worst          INTEGER NOT NULL,
    asked_at       {real} NOT NULL,
    lapses_at      {real},
    flow_run_id    TEXT,            -- that waits for the word
    question       TEXT,            -- the name under which Prefect keeps its answer
    verdict        TEXT NOT NULL CHECK (verdict IN ('waiting', 'approved', 'rejected', 'lapsed')),
    decided_at     {real},
    who            TEXT,
    note           TEXT,
    -- The ceiling, and what was bought under it.
    most_items     INTEGER NOT NULL DEFAULT 0,
    most_purchases INTEGER NOT NULL DEFAULT 0,
    most_amount    INTEGER NOT NULL DEFAULT 0,
    purchases      INTEGER NOT NULL DEFAULT 0,
    amount         INTEGER NOT NULL DEFAULT 0,
    CHECK (purchases <= most_purchases AND amount <= most_amount),
    CHECK (verdict NOT IN ('approved', 'rejected') OR (who IS NOT NULL AND decided_at IS NOT NULL))
);
CREATE INDEX approvals_by_scope ON approvals (environment, catalog, decided_at);

-- The items of the plan that was put before a person, and which of them the approval reaches to.
CREATE TABLE approval_items (
    approval_id TEXT NOT NULL REFERENCES approvals (id),
    item_key    TEXT NOT NULL,
    approved    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (approval_id, item_key)
);
