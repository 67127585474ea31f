"""The art: turns a prompt into words, a recipe, a tile and products. Nothing here knows of HTTP or of jobs."""
