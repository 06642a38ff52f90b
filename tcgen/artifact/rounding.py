"""Whether a source's loops round each product before it is added.

Compilers decide that for a whole file, so that the file says it in its first line.
"""

from __future__ import annotations

ROUND_EACH = "#define TC_ROUND_EACH  /* compiled with -ffp-contract=off (CUDA: --fmad=false) */"


def rounds_each(source: str) -> bool:
    """True where a source asks for a rounding of each operation.

    Example:
        >>> rounds_each(ROUND_EACH + " int x;"), rounds_each("int x;")
        (True, False)
    """
    return source.startswith(ROUND_EACH)
