-- Version 2 to 3: the parts of spread runs.

-- What each part has to do, and what it says of itself; of no use once its run has ended.
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
