"""The embedded service: a whole implementation of the written interface, with real patterns and products."""
