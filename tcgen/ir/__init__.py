"""The levels: frozen dataclasses, each with verify, pretty and a meaning in interp.py."""
