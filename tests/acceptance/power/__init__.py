"""A disk that forgets, at a power cut, whatever was not synced."""
