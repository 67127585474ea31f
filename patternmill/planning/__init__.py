"""What has to be made: request IDs, the plan, its cost."""
