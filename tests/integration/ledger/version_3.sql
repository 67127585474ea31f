-- The ledger, version 3 (an older one is brought up by migrations/). {blob}, {real} and {serial} are spelled by the database at hand.
-- Times are Unix seconds. An item's standing is its attempt with the highest number.

CREATE TABLE items (
    key         TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    stage       TEXT NOT NULL CHECK (stage IN ('pattern', 'product')),
    sku         TEXT,               -- of a product item
    pattern_key TEXT,               -- of a product item
    content     TEXT NOT NULL,      -- canonical JSON of what is bought
    created_at  {real} NOT NULL
);
CREATE INDEX items_by_scope ON items (environment, catalog, stage, sku);

CREATE TABLE attempts (
    request_id  TEXT PRIMARY KEY,
    item_key    TEXT NOT NULL REFERENCES items (key),
    attempt     INTEGER NOT NULL CHECK (attempt >= 1),
    -- intended -> accepted | rejected | held | withdrawn;  accepted -> succeeded | failed | held
    -- held -> intended | accepted | failed (a person decides);  rejected, withdrawn -> intended
    state       TEXT NOT NULL CHECK (
        state IN ('intended', 'withdrawn', 'accepted', 'succeeded', 'failed', 'rejected', 'held')),
    body        {blob} NOT NULL,    -- the exact bytes that are sent, each time
    run_id      TEXT NOT NULL,      -- the run that wrote the intent
    price       INTEGER NOT NULL DEFAULT 0,  -- minor units, reserved with the intent
    job_id      TEXT,
    result_id   TEXT,
    picture_url TEXT,
    error_code  TEXT,
    error       TEXT,
    intended_at {real} NOT NULL,
    accepted_at {real},
    ended_at    {real},
    approval_id TEXT,               -- what it was bought under, where a person's word was needed
    UNIQUE (item_key, attempt),
    CHECK (state NOT IN ('accepted', 'succeeded') OR job_id IS NOT NULL),
    CHECK (state <> 'succeeded' OR result_id IS NOT NULL)
);
CREATE INDEX attempts_by_job ON attempts (job_id);
CREATE INDEX attempts_by_result ON attempts (result_id);
CREATE INDEX attempts_by_run ON attempts (run_id);

-- What happened, in order; never changed.
CREATE TABLE events (
    seq         {serial},
    at          {real} NOT NULL,
    run_id      TEXT NOT NULL,
    request_id  TEXT,
    kind        TEXT NOT NULL,
    detail      TEXT
);
CREATE INDEX events_by_request ON events (request_id);

-- The input files, whole and compressed, so that results can be rebuilt from here alone.
CREATE TABLE inputs (
    sha256      TEXT PRIMARY KEY,
    raw         {blob} NOT NULL
);

CREATE TABLE runs (
    run_id      TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    record      TEXT NOT NULL,      -- JSON of the run's record
    started_at  {real} NOT NULL,
    ended_at    {real},
    outcome     TEXT
);
CREATE INDEX runs_by_scope ON runs (environment, catalog, started_at);

CREATE TABLE run_rows (
    run_id      TEXT NOT NULL REFERENCES runs (run_id),
    position    INTEGER NOT NULL,
    line        INTEGER NOT NULL,
    sku         TEXT NOT NULL,
    pattern_key TEXT,
    product_key TEXT,
    row         TEXT NOT NULL,      -- JSON: what was understood of the row, or why it was refused
    standing    TEXT,               -- JSON: how the row stood when the run ended
    PRIMARY KEY (run_id, position)
);
CREATE INDEX run_rows_by_sku ON run_rows (sku);

-- Who drives a catalog. A write counts only under the newest fence.
CREATE TABLE leases (
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    run_id      TEXT NOT NULL,
    holder      TEXT NOT NULL,      -- JSON: machine, process and its start; empty when released
    beats       INTEGER NOT NULL,   -- counts up while the holder lives
    PRIMARY KEY (environment, catalog)
);

-- What each run reserved, by day: the budget is checked and taken in the transaction that writes an intent.
CREATE TABLE spending (
    environment TEXT NOT NULL,
    day         TEXT NOT NULL,      -- UTC
    run_id      TEXT NOT NULL,
    stage       TEXT NOT NULL,
    items       INTEGER NOT NULL,
    amount      INTEGER NOT NULL,   -- minor units
    PRIMARY KEY (environment, day, run_id, stage)
);

-- The last offer that could be read, so that identity does not change when a later one cannot.
CREATE TABLE offers (
    environment TEXT PRIMARY KEY,
    offer       TEXT NOT NULL,      -- JSON
    read_at     {real} NOT NULL
);

-- What a catalog has: for each sku the product that was made for it last. Written as a run ends.
CREATE TABLE catalog_rows (
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    sku         TEXT NOT NULL,
    product_key TEXT NOT NULL,
    pattern_key TEXT NOT NULL,
    product_id  TEXT NOT NULL,
    pattern_id  TEXT NOT NULL,
    row         TEXT NOT NULL,      -- JSON, as in run_rows
    since       {real} NOT NULL,
    run_id      TEXT NOT NULL,      -- the run that made it so
    retired_at  {real},             -- its source has the sku no longer
    PRIMARY KEY (environment, catalog, sku)
);

-- What a refresh found to differ from the catalog as it was: the lines of changes.csv.
CREATE TABLE run_changes (
    run_id      TEXT NOT NULL REFERENCES runs (run_id),
    position    INTEGER NOT NULL,
    sku         TEXT NOT NULL,
    kind        TEXT NOT NULL,
    fields      TEXT NOT NULL,      -- JSON
    verdict     TEXT,               -- of a removed row: retired or withheld
    product_id  TEXT,               -- as they were before
    pattern_id  TEXT,
    PRIMARY KEY (run_id, position)
);

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

-- What each part of a spread run has to do, and what it says of itself; of no use once its run has ended.
CREATE TABLE run_parts (
    run_id      TEXT NOT NULL,
    number      INTEGER NOT NULL,   -- from 1; 0 is the run's own voice
    work        TEXT NOT NULL,      -- JSON: which rows, under which terms
    state       TEXT NOT NULL CHECK (state IN ('granted', 'begun', 'left', 'ended')),
    fence       INTEGER NOT NULL,   -- grows with each grant and each beginning: an older holder writes no more
    beats       INTEGER NOT NULL,   -- counts up while its process lives
    counts      TEXT NOT NULL,      -- JSON: how far it is
    halt        TEXT NOT NULL,      -- JSON: why it begins nothing new, by stage
    PRIMARY KEY (run_id, number)
);
