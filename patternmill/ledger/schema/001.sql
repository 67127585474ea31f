-- For SQLite and PostgreSQL alike. Times are seconds since 1970, amounts ten-thousandths of their currency's unit.

-- Which ledger this is (`identity`), and the version of its tables (`schema`).
CREATE TABLE IF NOT EXISTS facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- The address of each environment since its first intent, and what was spent there on a day (UTC).
CREATE TABLE IF NOT EXISTS environments (
    name TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    currency TEXT NOT NULL,
    day TEXT NOT NULL,
    spent BIGINT NOT NULL
);

-- Each run with its limits, what it has reserved of them, and how its sheet was written: `mapping` is what its mapping
-- said of columns and words, as JSON. `halt`: how it will end, once its shares are to begin nothing more.
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog TEXT NOT NULL,
    verb TEXT NOT NULL,
    source TEXT NOT NULL,
    header TEXT NOT NULL DEFAULT '[]',
    delimiter TEXT NOT NULL DEFAULT ',',
    mapping TEXT NOT NULL DEFAULT '{}',
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    outcome TEXT,
    halt TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL DEFAULT '',
    max_items BIGINT,
    budget BIGINT,
    bought BIGINT NOT NULL DEFAULT 0,
    spent BIGINT NOT NULL DEFAULT 0,
    currency TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS runs_by_catalog ON runs (environment, catalog, started_at);

-- Who may write for a key such as `staging/spring`. `beats` grows with each transaction; no driver: the lease is free.
CREATE TABLE IF NOT EXISTS leases (
    key TEXT PRIMARY KEY,
    driver TEXT UNIQUE,
    holder TEXT NOT NULL,
    beats BIGINT NOT NULL DEFAULT 0
);

-- Each attempt at an item: intent, job and result. Nothing here is ever deleted.
CREATE TABLE IF NOT EXISTS attempts (
    request_id TEXT PRIMARY KEY,
    item_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    stage TEXT NOT NULL,
    operation TEXT NOT NULL,
    environment TEXT NOT NULL,
    catalog TEXT NOT NULL,
    driver TEXT NOT NULL,
    label TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('intended', 'accepted', 'succeeded', 'failed', 'rejected', 'held', 'written_off')),
    job_id TEXT,
    result_id TEXT,
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    amount BIGINT NOT NULL DEFAULT 0,
    currency TEXT NOT NULL DEFAULT '',
    intended_at DOUBLE PRECISION NOT NULL,
    accepted_at DOUBLE PRECISION,
    ended_at DOUBLE PRECISION,
    UNIQUE (item_id, number),
    UNIQUE (environment, job_id),
    UNIQUE (environment, stage, result_id),
    CHECK (state NOT IN ('accepted', 'succeeded') OR job_id IS NOT NULL),
    CHECK ((state = 'succeeded') = (result_id IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS attempts_by_catalog ON attempts (environment, catalog, state);
CREATE INDEX IF NOT EXISTS attempts_by_end ON attempts (environment, stage, ended_at);

-- What became of each attempt, change by change. Nothing here is ever changed; the last `seq` says how far this is, and
-- its `token` that it is this very history. `counts` is 0 where an item ended as it had before.
CREATE TABLE IF NOT EXISTS events (
    seq {serial},
    token TEXT NOT NULL,
    environment TEXT NOT NULL,
    stage TEXT NOT NULL,
    item_id TEXT NOT NULL,
    request_id TEXT NOT NULL REFERENCES attempts,
    state TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    counts BIGINT NOT NULL DEFAULT 1,
    at DOUBLE PRECISION NOT NULL,
    run_id TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_by_request ON events (request_id);
CREATE INDEX IF NOT EXISTS events_by_stage ON events (environment, stage, state, seq);

-- The rows of each catalog, by folded sku, or by `# ` and the row's number where the sku is unusable: what the sheet says
-- (`cells`, in the order of the header of `run`), the item that it wants and the one whose product it has. `pattern` is the
-- first take of its pattern, and `take` the one that it wants. `corrects`: the cells of the source's row that did not end
-- well, for which an import of a part put these.
CREATE TABLE IF NOT EXISTS catalog_rows (
    environment TEXT NOT NULL,
    catalog TEXT NOT NULL,
    key TEXT NOT NULL,
    sku TEXT NOT NULL,
    position BIGINT NOT NULL,
    number BIGINT NOT NULL,
    run TEXT NOT NULL,
    cells TEXT NOT NULL,
    corrects TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL,
    likeness TEXT NOT NULL,
    pattern TEXT NOT NULL,
    take BIGINT NOT NULL,
    refusal TEXT NOT NULL,
    wants TEXT NOT NULL,
    built_on TEXT NOT NULL,
    has TEXT NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    retired DOUBLE PRECISION,
    PRIMARY KEY (environment, catalog, key)
);
CREATE INDEX IF NOT EXISTS rows_by_likeness ON catalog_rows (environment, likeness);
CREATE INDEX IF NOT EXISTS rows_by_pattern ON catalog_rows (environment, pattern);

-- What a person decided about a pattern, by its first take: the take that is wanted, the verdict about that one, and the
-- highest take that was ever wanted.
CREATE TABLE IF NOT EXISTS decisions (
    environment TEXT NOT NULL,
    pattern TEXT NOT NULL,
    take BIGINT NOT NULL,
    newest BIGINT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('', 'pick', 'reject', 'again')),
    note TEXT NOT NULL,
    person TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (environment, pattern)
);

-- The checkout of each order by its name, with the address where a person pays, and the order that it became.
CREATE TABLE IF NOT EXISTS checkouts (
    environment TEXT NOT NULL,
    name TEXT NOT NULL,
    catalog TEXT NOT NULL,
    item_id TEXT NOT NULL,
    pieces BIGINT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    made_order TEXT NOT NULL DEFAULT '',
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (environment, name)
);

-- The last answer of the service about what it offers; `category_id` is empty for the list of categories.
CREATE TABLE IF NOT EXISTS offers (
    environment TEXT NOT NULL,
    category_id TEXT NOT NULL,
    answer TEXT NOT NULL,
    read_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (environment, category_id)
);

-- What a person has paused: `*`, an environment, or `environment/catalog`.
CREATE TABLE IF NOT EXISTS brakes (
    scope TEXT PRIMARY KEY,
    since DOUBLE PRECISION NOT NULL,
    person TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- What became of each row: from the last attempts at what it wants and at what that is built on.
{create_view} row_states AS
SELECT found.*,
    CASE
        WHEN refusal <> '' THEN 'refused'
        WHEN product_id <> '' THEN 'succeeded'
        WHEN state IN ('failed', 'rejected', 'written_off') THEN 'failed'
        WHEN state = 'held' THEN 'held'
        WHEN state = 'accepted' THEN 'waiting'
        WHEN state = 'intended' THEN 'in_doubt'
        ELSE 'not_started'
    END AS status,
    CASE
        WHEN is_rejected THEN 'rejected_pattern'
        WHEN refusal <> '' OR state = 'succeeded' THEN ''
        WHEN words <> '' THEN words
        WHEN state = 'intended' THEN 'unanswered'
        WHEN state = 'accepted' THEN 'job_running'
        ELSE ''
    END AS code,
    CASE
        WHEN is_rejected THEN 'The pattern is rejected: take that back, or mark it `again` and have it remade.'
        WHEN state = 'succeeded' THEN ''
        ELSE said
    END AS message
FROM (
    SELECT rows.*,
        COALESCE(decided.verdict, '') AS verdict,
        COALESCE(decided.note, '') AS note,
        rows.refusal = '' AND decided.verdict = 'reject' AND product.state IS NULL AS is_rejected,
        COALESCE(product.state, base.state, '') AS state,
        COALESCE(product.code, base.code, '') AS words,
        COALESCE(product.message, base.message, '') AS said,
        COALESCE(product.result_id, '') AS product_id,
        COALESCE(base.result_id, '') AS pattern_id,
        COALESCE(product.result_id, owned.result_id, '') AS has_product_id,
        CASE WHEN product.result_id IS NULL THEN COALESCE(owned.body, '') ELSE product.body END AS has_body
    FROM catalog_rows AS rows
    LEFT JOIN attempts AS product
        ON product.item_id = rows.wants
        AND product.number = (SELECT MAX(number) FROM attempts WHERE item_id = rows.wants)
    LEFT JOIN attempts AS base
        ON base.item_id = rows.built_on
        AND base.number = (SELECT MAX(number) FROM attempts WHERE item_id = rows.built_on)
    LEFT JOIN attempts AS owned ON owned.item_id = rows.has AND owned.state = 'succeeded'
    LEFT JOIN decisions AS decided
        ON decided.environment = rows.environment AND decided.pattern = rows.pattern AND decided.take = rows.take
) AS found
