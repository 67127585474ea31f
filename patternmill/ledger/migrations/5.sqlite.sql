-- Version 4 to 5, on SQLite: items of any stage; which there are is the program's to say. SQLite drops no constraint,
-- so that the table is made anew; attempts refer to it again before the migration is committed.
PRAGMA defer_foreign_keys = ON;
CREATE TEMP TABLE items_before AS SELECT * FROM items;
DROP TABLE items;
CREATE TABLE items (
    key         TEXT PRIMARY KEY,
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    stage       TEXT NOT NULL,
    sku         TEXT,
    pattern_key TEXT,
    content     TEXT NOT NULL,
    created_at  REAL NOT NULL,
    written     TEXT
);
INSERT INTO items (key, environment, catalog, stage, sku, pattern_key, content, created_at, written)
    SELECT key, environment, catalog, stage, sku, pattern_key, content, created_at, written FROM items_before;
DROP TABLE items_before;
CREATE INDEX items_by_scope ON items (environment, catalog, stage, sku);
