"""The durable memory: every beginning, and its end."""
