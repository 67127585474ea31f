"""The command line `patternmill`: one file a verb."""
