"""What makes the studio a test double: clock, faults, meter, and their control."""
