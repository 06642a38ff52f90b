"""Text of the levels for people: ``loops``."""
