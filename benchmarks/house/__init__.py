"""The house in figures: what each room weighs, and how it hangs together."""
