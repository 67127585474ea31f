-- The studio's tables. A file has their digest, and one with another digest is refused. Instants are seconds since 1970.

CREATE TABLE IF NOT EXISTS job (
    seq         INTEGER PRIMARY KEY,
    job_id      TEXT NOT NULL UNIQUE,
    account     TEXT NOT NULL,
    operation   TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('pattern', 'product')),  -- what it makes
    request_id  TEXT NOT NULL,
    subject     TEXT NOT NULL,            -- JSON: what is made
    result_id   TEXT NOT NULL UNIQUE,     -- patternId or productId; not shown before ends_at
    picture_id  TEXT NOT NULL UNIQUE,
    failure     TEXT,                     -- the reason, when the job is going to fail
    started_at  REAL NOT NULL,
    ends_at     REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS job_account ON job (account, kind);
CREATE INDEX IF NOT EXISTS job_prompt ON job (json_extract(subject, '$.design.prompt')) WHERE kind = 'pattern';

-- Every create request that was understood.
CREATE TABLE IF NOT EXISTS record (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          REAL NOT NULL,
    operation   TEXT NOT NULL,
    verdict     TEXT NOT NULL CHECK (verdict IN ('accepted', 'repeated', 'conflict')),
    request_id  TEXT NOT NULL,
    job_id      TEXT NOT NULL,            -- the ID of what was created: mostly a job
    body        TEXT NOT NULL,
    account     TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS record_is_kept BEFORE DELETE ON record
    BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
CREATE TRIGGER IF NOT EXISTS record_is_unchanged BEFORE UPDATE ON record
    BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;

CREATE TABLE IF NOT EXISTS request (
    account     TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    operation   TEXT NOT NULL,
    digest      TEXT NOT NULL,            -- of the operation and the whole request body
    object_id   TEXT NOT NULL,            -- what was created
    PRIMARY KEY (account, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS checkout (
    seq          INTEGER PRIMARY KEY,
    checkout_id  TEXT NOT NULL UNIQUE,
    account      TEXT NOT NULL,
    page_id      TEXT NOT NULL UNIQUE,    -- the unguessable part of checkoutUrl
    lines        TEXT NOT NULL,           -- JSON: as answers have them, with the prices as they were
    created_at   REAL NOT NULL,
    paid_at      REAL,
    cancelled_at REAL,
    CHECK (paid_at IS NULL OR cancelled_at IS NULL)
) STRICT;
CREATE INDEX IF NOT EXISTS checkout_account ON checkout (account);

CREATE TABLE IF NOT EXISTS orders (
    seq           INTEGER PRIMARY KEY,
    order_id      TEXT NOT NULL UNIQUE,
    checkout_id   TEXT NOT NULL UNIQUE REFERENCES checkout (checkout_id),
    account       TEXT NOT NULL,
    paid_at       REAL NOT NULL,
    production_at REAL NOT NULL,
    shipped_at    REAL NOT NULL,
    delivered_at  REAL NOT NULL,
    cancelled_at  REAL
) STRICT;
CREATE INDEX IF NOT EXISTS orders_account ON orders (account);

CREATE TABLE IF NOT EXISTS reference (
    seq          INTEGER PRIMARY KEY,
    reference_id TEXT NOT NULL UNIQUE,
    account      TEXT NOT NULL,
    name         TEXT,
    picture_id   TEXT NOT NULL UNIQUE,
    sha256       TEXT NOT NULL,           -- of the re-encoded picture, which is its file's name
    width        INTEGER NOT NULL,
    height       INTEGER NOT NULL,
    used         INTEGER NOT NULL DEFAULT 0,  -- a pattern is drawn with this picture
    created_at   REAL NOT NULL,
    deleted_at   REAL
) STRICT;
CREATE INDEX IF NOT EXISTS reference_account ON reference (account);
CREATE INDEX IF NOT EXISTS reference_sha256 ON reference (sha256);

CREATE TABLE IF NOT EXISTS api_key (
    key_id       TEXT PRIMARY KEY,
    account      TEXT NOT NULL,
    name         TEXT NOT NULL,
    sha256       TEXT NOT NULL UNIQUE,    -- of a random key of 256 bits, which cannot be guessed from it
    created_at   REAL NOT NULL,
    used_at      REAL,
    revoked_at   REAL
) STRICT;

CREATE TABLE IF NOT EXISTS feedback (
    seq          INTEGER PRIMARY KEY,
    account      TEXT NOT NULL,
    received_at  REAL NOT NULL,
    report       TEXT NOT NULL            -- JSON, after redaction
) STRICT;

CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE IF NOT EXISTS session (
    sha256       TEXT PRIMARY KEY,        -- of a random token of 256 bits
    key_sha256   TEXT NOT NULL,           -- of the API key that opened it
    expires_at   REAL NOT NULL
) STRICT;
