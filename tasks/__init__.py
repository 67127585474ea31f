"""The steps that flows are made of: thin Prefect tasks, one call into the library each."""
