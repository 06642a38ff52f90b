"""The version, in its one place: the build of the package reads it here, too."""

__version__ = "0.1.0"
