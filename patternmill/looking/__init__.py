"""Looking at what was made, and deciding: the gallery, its decisions, and the picks of a sheet."""
