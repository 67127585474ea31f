"""What makes the studio a test double: clock, faults, answer shapes, limits, meter, snapshots, and their control."""
