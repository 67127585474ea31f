"""What a person asked for: the CSV reader, rows, categories and their options."""
