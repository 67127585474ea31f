"""The contract of the interface as a suite of checks that asks a service over the wire, the real one included."""
