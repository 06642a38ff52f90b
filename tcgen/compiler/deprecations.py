"""Public names of version 0.1 that have new names in 0.2; they work until 0.3.

An old name gives what the new one gives, with a DeprecationWarning that says the new name.
"""

from __future__ import annotations

import warnings

NEW_NAMES = {  # in the module tcgen
    "PathError": "ContractionPathError",
    "evaluate": "compute",
}


def new_name(old: str) -> str:
    """The present name of a public name of version 0.1.

    Raises:
        AttributeError: tcgen has neither a public name nor an old name of this spelling.

    Warns:
        DeprecationWarning: use the new name.
    """
    if old not in NEW_NAMES:
        raise AttributeError(f"module 'tcgen' has no attribute {old!r}")
    new = NEW_NAMES[old]
    warnings.warn(
        f"tcgen.{old} is now tcgen.{new}; the old name goes in version 0.3",
        DeprecationWarning,
        stacklevel=3,
    )
    return new
