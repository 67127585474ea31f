"""What a service must do so that an import is safe: checks that ask it over the wire, the real one included."""
