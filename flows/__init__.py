"""What a person schedules, starts and sees: one file a flow."""
