-- Version 3 to 4, on PostgreSQL alone: amounts of 64 bits, as SQLite's integers always were.
ALTER TABLE attempts ALTER COLUMN price TYPE BIGINT;
ALTER TABLE spending ALTER COLUMN amount TYPE BIGINT;
ALTER TABLE approvals ALTER COLUMN expected TYPE BIGINT;
ALTER TABLE approvals ALTER COLUMN worst TYPE BIGINT;
ALTER TABLE approvals ALTER COLUMN most_amount TYPE BIGINT;
ALTER TABLE approvals ALTER COLUMN amount TYPE BIGINT;
