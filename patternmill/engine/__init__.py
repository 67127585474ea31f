"""How rows are driven: rows, items, window, progress."""
