"""Bytes and seconds as text for people."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def readable_bytes(count: int) -> str:
    """Bytes with a binary unit and two decimals.

    Example:
        >>> readable_bytes(3 * 2**20), readable_bytes(7)
        ('3.00 MiB', '7 bytes')
    """
    amount, unit = _scaled(count)
    return f"{count} {unit}" if unit == "bytes" else f"{amount:.2f} {unit}"


def short_bytes(count: int) -> str:
    """Bytes for the axis of a drawing, with at most one decimal.

    Example:
        >>> short_bytes(0), short_bytes(1536), short_bytes(3 * 2**30)
        ('0 B', '1.5 KiB', '3 GiB')
    """
    amount, unit = _scaled(count)
    return f"{amount:.1f}".removesuffix(".0") + f" {unit.replace('bytes', 'B')}"


def _scaled(count: int) -> tuple[float, str]:
    amount = float(count)
    for unit in _UNITS[:-1]:
        if amount < 1024:
            return amount, unit
        amount /= 1024
    return amount, _UNITS[-1]


def readable_seconds(seconds: float) -> str:
    """A time with three digits.

    Example:
        >>> readable_seconds(0.01841), readable_seconds(7200.0)
        ('18.4 ms', '2 h')
    """
    for unit, least in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{seconds / least:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
