-- Version 6 to 7: what each run was expected to take and to spend, and what came.

CREATE TABLE forecasts (
    run_id         TEXT PRIMARY KEY REFERENCES runs (run_id),
    confidence     {real} NOT NULL,   -- the share of runs that the intervals are meant to hold
    jobs           INTEGER NOT NULL,  -- that it went by; 0: assumptions
    seconds_low    {real} NOT NULL,
    seconds_middle {real} NOT NULL,
    seconds_high   {real} NOT NULL,
    amount_low     BIGINT,            -- minor units; NULL: no prices were set
    amount_middle  BIGINT,
    amount_high    BIGINT,
    seconds        {real},            -- what came; NULL: not ended, or not to be compared
    amount         BIGINT
);
