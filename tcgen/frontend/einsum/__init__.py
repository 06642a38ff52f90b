"""Einsum: ``subscripts`` reads labels, ``equation`` makes a System."""
