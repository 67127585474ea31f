-- Version 7 to 8: which column of its files is which column of a catalog, as a person confirmed it.

CREATE TABLE column_mappings (
    catalog      TEXT PRIMARY KEY,  -- in every environment: a file's columns do not depend on it
    columns      TEXT NOT NULL,     -- JSON: by the key of a header, the column that it is
    reading      TEXT NOT NULL,     -- JSON: how the file is read, where a person chose it
    confirmed_by TEXT NOT NULL,
    confirmed_at {real} NOT NULL
);
