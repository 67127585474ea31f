"""What was begun and how it ended: the durable memory."""
