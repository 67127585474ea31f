"""The engine: drives a plan to its end inside a window, a budget and a rate."""
