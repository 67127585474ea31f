"""The library of Patternmill: everything that would be true without Prefect."""

__version__ = "1.0.0"
