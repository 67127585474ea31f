"""Instruments that make the studio a test double: clock, faults, meter, and their control."""
