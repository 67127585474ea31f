"""What the program weighs and what it costs, each figure beside its target."""
