"""The command line `patternmill`."""
