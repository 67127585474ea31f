"""Reports from the ledger for people: the story of a row, open requests, orders, figures."""
