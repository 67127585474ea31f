"""The house in figures: how much there is of it, how it hangs together, and what one row has to pass."""
