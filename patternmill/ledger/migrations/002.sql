-- The brake: what a person has paused, and why. An empty name stands for every environment, or every catalog.
CREATE TABLE pauses (
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,      -- its orders are paused with it
    since       DOUBLE PRECISION NOT NULL,
    who         TEXT NOT NULL,
    reason      TEXT NOT NULL,
    PRIMARY KEY (environment, catalog)
);
-- Counts the changes of the pauses. Every intent reads it in its transaction, under a lock that a pause waits for.
ALTER TABLE ledger ADD COLUMN brake INTEGER NOT NULL DEFAULT 0;
-- The last count that a holder has obeyed: it sends no create that was paused by then.
ALTER TABLE leases ADD COLUMN brake INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_groups ADD COLUMN brake INTEGER NOT NULL DEFAULT 0;
