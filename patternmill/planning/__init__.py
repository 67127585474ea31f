"""What has to be made for the rows: items and their request IDs, the plan, its limits and its cost."""
