"""From a prompt to a picture: words, recipe, tile, product. Nothing here knows of HTTP or of jobs."""
