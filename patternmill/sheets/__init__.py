"""Sheets of every format as the rows of a catalog, and copies of them."""
