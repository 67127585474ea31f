-- Version 4 to 5, on PostgreSQL: items of any stage; which there are is the program's to say.
ALTER TABLE items DROP CONSTRAINT IF EXISTS items_stage_check;
