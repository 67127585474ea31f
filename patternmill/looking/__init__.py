"""The page of a catalog as it is now, and the gallery beside results: what people look at, and decide about."""
