"""What people read from the ledger: status, the story of a row, what is open, orders."""
