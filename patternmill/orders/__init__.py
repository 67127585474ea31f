"""Orders of samples: picked rows are planned as checkouts, which are opened and followed until they are paid."""
