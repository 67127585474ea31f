-- The ledger's first schema. It is never changed: each change is a migration with the next number (`database.py`).
-- SQLite takes PostgreSQL's types as they are; only {serial} differs. Times are Unix seconds.
-- The state of an item is that of its attempt with the highest number.

-- Whole documents, compressed: input files and pictures under their SHA-256, so that results can be rebuilt from the
-- ledger alone; `changes RUN`, what a refresh found to differ; `plan APPROVAL`, the items that were put before a person;
-- `offer ENVIRONMENT`, the last offer that could be read, so that identity does not change when a later one cannot be;
-- `sheet ENVIRONMENT/CATALOG`, the runs whose files make up a catalog's sheet.
CREATE TABLE documents (
    name        TEXT PRIMARY KEY,
    raw         BYTEA NOT NULL
);

-- Which ledger this is: one row. Every transaction reads it, so that a process that opened another one stops.
CREATE TABLE ledger (
    id          TEXT NOT NULL,      -- random; a copy has it too
    schema      INTEGER NOT NULL    -- the number of the last migration
);

CREATE TABLE items (
    key         TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    stage       TEXT NOT NULL,      -- one of those in states.py
    sku         TEXT,               -- of a product item
    pattern_key TEXT,               -- of an item that is built on another one: that one
    content     TEXT NOT NULL,      -- canonical JSON of what is bought
    picked      TEXT,               -- of a checkout, JSON: the rows whose products it has, as they were picked
    ordered     TEXT,               -- of a checkout, JSON: its order as the service last showed it
    created_at  DOUBLE PRECISION NOT NULL
);
CREATE INDEX items_by_scope ON items (environment, catalog, stage, sku);

CREATE TABLE attempts (
    request_id  TEXT PRIMARY KEY,
    item_key    TEXT NOT NULL REFERENCES items (key),
    attempt     INTEGER NOT NULL CHECK (attempt >= 1),
    -- intended -> accepted | rejected | held | withdrawn;  accepted -> succeeded | failed | held
    -- held -> intended | accepted | failed (a person decides);  rejected, withdrawn -> intended
    -- failed -> accepted (its job is asked about again, and says otherwise or nothing; or a person decides)
    state       TEXT NOT NULL CHECK (
        state IN ('intended', 'withdrawn', 'accepted', 'succeeded', 'failed', 'rejected', 'held')),
    body        BYTEA NOT NULL,     -- the exact bytes that are sent, each time
    run_id      TEXT NOT NULL,      -- the run that wrote the intent
    price       BIGINT NOT NULL DEFAULT 0,  -- minor units, reserved with the intent
    currency    TEXT NOT NULL DEFAULT '',   -- of the price, ISO 4217; empty: the unit of the prices
    job_id      TEXT,
    result_id   TEXT,
    picture_url TEXT,
    error_code  TEXT,
    error       TEXT,
    intended_at DOUBLE PRECISION NOT NULL,
    accepted_at DOUBLE PRECISION,
    ended_at    DOUBLE PRECISION,
    uptime      TEXT,               -- of the intent: the machine's boot and the seconds since, which nobody sets
    approval_id TEXT,               -- a person's, under which it was bought
    UNIQUE (item_key, attempt),
    CHECK (state NOT IN ('accepted', 'succeeded') OR job_id IS NOT NULL),
    CHECK (state <> 'succeeded' OR result_id IS NOT NULL)
);
CREATE INDEX attempts_by_job ON attempts (job_id);
CREATE INDEX attempts_by_result ON attempts (result_id);
CREATE INDEX attempts_by_run ON attempts (run_id);

-- What happened, in order; never changed. A person's decision about a pattern is an event too (`detail` is its JSON);
-- the last one about an item counts.
CREATE TABLE events (
    seq         {serial},
    at          DOUBLE PRECISION NOT NULL,
    run_id      TEXT NOT NULL,
    request_id  TEXT,
    kind        TEXT NOT NULL,
    detail      TEXT,
    decision    TEXT                -- the ID of a person's decision: one that is sent again changes nothing
);
CREATE INDEX events_by_request ON events (request_id);
CREATE UNIQUE INDEX events_by_decision ON events (decision) WHERE decision IS NOT NULL;

CREATE TABLE runs (
    run_id      TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    number      INTEGER,            -- its lease's fence: the order of a catalog's runs; NULL: it never had a lease
    record      TEXT NOT NULL,      -- JSON of the run's record
    started_at  DOUBLE PRECISION NOT NULL,  -- never before that of the catalog's runs so far
    outcome     TEXT
);
CREATE INDEX runs_by_scope ON runs (environment, catalog, started_at);

CREATE TABLE run_rows (
    run_id      TEXT NOT NULL REFERENCES runs (run_id),
    position    INTEGER NOT NULL,
    line        INTEGER NOT NULL,
    sku         TEXT NOT NULL,
    sku_key     TEXT NOT NULL,      -- the sku without case and spaces
    pattern_key TEXT,
    product_key TEXT,
    row         TEXT NOT NULL,      -- JSON: what was understood of the row, or why it was refused
    outcome     TEXT,               -- JSON: what became of the row when its run ended, or as a person decided since
    PRIMARY KEY (run_id, position)
);
CREATE INDEX run_rows_by_sku ON run_rows (sku);

-- The groups of rows of a run that several machines drive: no two of them share an item.
CREATE TABLE run_groups (
    run_id      TEXT NOT NULL REFERENCES runs (run_id),
    number      INTEGER NOT NULL,
    work        TEXT NOT NULL,      -- JSON: its rows and items, as they were planned
    fence       INTEGER,            -- counts its executions: only the last one may write; NULL: none may any more
    rows_left   INTEGER NOT NULL,   -- that have not ended
    share       INTEGER NOT NULL,   -- of the run's window: how many of its rows may be under way at once
    beat_at     DOUBLE PRECISION,   -- of its last execution
    ended_at    DOUBLE PRECISION,   -- nothing more can be done for it in this run
    report      TEXT,               -- JSON: how far its last execution is
    orders      TEXT,               -- whether it may begin more, and why not
    PRIMARY KEY (run_id, number)
);

-- Who drives a catalog. A write counts only under the newest fence.
CREATE TABLE leases (
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    run_id      TEXT NOT NULL,
    holder      TEXT NOT NULL,      -- JSON: machine, process, its start, its deployment's run; empty when released
    beats       INTEGER NOT NULL,   -- counts up while the holder lives
    stop        TEXT,               -- why its run was asked to stop
    PRIMARY KEY (environment, catalog)
);

-- What each run reserved, by day: the budget is checked and taken in the transaction that writes an intent.
CREATE TABLE spending (
    environment TEXT NOT NULL,
    day         TEXT NOT NULL,      -- UTC
    run_id      TEXT NOT NULL,
    stage       TEXT NOT NULL,
    currency    TEXT NOT NULL,      -- as in attempts
    items       INTEGER NOT NULL,
    amount      BIGINT NOT NULL,    -- minor units
    PRIMARY KEY (environment, day, run_id, stage, currency)
);

-- What was put before a person, and the decision. An approved plan is a ceiling for everything that is bought under it.
CREATE TABLE approvals (
    id             TEXT PRIMARY KEY,
    environment    TEXT NOT NULL,
    catalog        TEXT NOT NULL,
    digest         TEXT NOT NULL,   -- SHA-256 of the plan
    items          INTEGER NOT NULL, -- that the plan would buy
    expected       BIGINT NOT NULL, -- minor units
    worst          BIGINT NOT NULL, -- the ceiling: minor units, and requests
    most_purchases INTEGER NOT NULL,
    currency       TEXT NOT NULL,   -- of all its amounts, as in attempts
    asked_at       DOUBLE PRECISION NOT NULL,
    flow_run_id    TEXT,            -- that waits for the decision
    verdict        TEXT NOT NULL CHECK (verdict IN ('waiting', 'approved', 'rejected', 'overtaken')),
    decided_at     DOUBLE PRECISION,
    sequence       BIGINT NOT NULL, -- of the last request or decision: their order, whatever a clock says
    who            TEXT,            -- a person, or the run that ended the question
    note           TEXT,
    -- What was bought under it.
    purchases      INTEGER NOT NULL DEFAULT 0,
    amount         BIGINT NOT NULL DEFAULT 0,
    CHECK (purchases <= most_purchases AND amount <= worst),
    CHECK (verdict = 'waiting' OR (who IS NOT NULL AND decided_at IS NOT NULL))
);
CREATE UNIQUE INDEX approvals_by_sequence ON approvals (sequence);
CREATE INDEX approvals_by_scope ON approvals (environment, catalog, sequence);

-- What a catalog has: for each sku what was last requested, and the product that was last made.
CREATE TABLE catalog_rows (
    environment   TEXT NOT NULL,
    catalog       TEXT NOT NULL,
    sku_key       TEXT NOT NULL,    -- the sku without case and spaces
    sku           TEXT NOT NULL,
    -- Written with a plan: what the row asks for. A refused row, or one whose item failed, asks for nothing.
    requested_key TEXT NOT NULL,    -- the product item
    requested     TEXT NOT NULL,    -- JSON, as in run_rows
    gone_at       DOUBLE PRECISION, -- its source no longer has the sku
    unasked_at    DOUBLE PRECISION, -- no row asks for it: its row is refused, or has other content that failed
    -- Written as a run ends; NULL: none was made yet.
    product_key   TEXT,
    product_id    TEXT,
    pattern_id    TEXT,
    row           TEXT,             -- JSON, as in run_rows
    since         DOUBLE PRECISION,
    run_id        TEXT,             -- the run that made it so
    retired_at    DOUBLE PRECISION, -- with its sku, its product is gone from the catalog
    retired_by    TEXT,             -- the run that found that
    PRIMARY KEY (environment, catalog, sku_key)
);
