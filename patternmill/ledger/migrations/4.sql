-- Version 3 to 4: what a row said, when by a clock that nobody sets, and the order of a catalog's runs.
ALTER TABLE items ADD COLUMN written TEXT;
ALTER TABLE attempts ADD COLUMN uptime TEXT;
ALTER TABLE runs ADD COLUMN number INTEGER;
