"""Orders of samples: what was picked, planned as checkouts, opened and followed to the orders they become."""
