-- Version 8 to 9: what people corrected in results files, merged into a catalog's source until the source has it.

CREATE TABLE corrections (
    environment TEXT NOT NULL,
    catalog     TEXT NOT NULL,
    source_row  TEXT NOT NULL,      -- what identifies the row in the source
    corrected   TEXT NOT NULL,      -- and once it is corrected
    sku         TEXT NOT NULL,      -- the corrected row's
    field       TEXT NOT NULL,      -- the column's name in the contract
    was         TEXT NOT NULL,      -- the source's text
    value       TEXT NOT NULL,      -- a person's
    run_id      TEXT NOT NULL REFERENCES runs (run_id),  -- whose input had it
    at          {real} NOT NULL,
    ended_at    {real},             -- NULL: it is merged where the source has `was`
    ended       TEXT,               -- why it ended: in_source, source_changed, replaced, undone
    PRIMARY KEY (environment, catalog, source_row, field, run_id)
);

-- Which of them were merged into a run's input.
CREATE TABLE merged_corrections (
    run_id      TEXT NOT NULL REFERENCES runs (run_id),
    position    INTEGER NOT NULL,
    sku         TEXT NOT NULL,
    field       TEXT NOT NULL,
    was         TEXT NOT NULL,
    value       TEXT NOT NULL,
    made_by     TEXT NOT NULL,      -- the run whose input had it first
    PRIMARY KEY (run_id, position)
);
