"""Sheets as DataFrames of text: read, checked, and written again. The only importer of pandas; load it late."""
