"""The ledger, Patternmill's durable memory: everything that was begun, and how it ended."""
