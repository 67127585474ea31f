"""Drives the rows of a run: items and their attempts, window, brakes, progress."""
