"""Planning: the items of rows with their request IDs, the plan with limits and cost, and values that packages share."""
