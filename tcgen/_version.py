"""The version of the package, which its build reads from here."""

__version__ = "0.2.0"
