"""The page of a run, to look at and to decide on: as a file, and served with its pictures and commands."""
