"""What a person requests: the CSV file, its rows, and the categories and options that they can name."""
