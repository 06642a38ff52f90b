"""Contractions by cuTENSOR, through CuPy's bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnavailableError
from ..device_protocol import Contraction, Operand


class Cutensor:
    """cuTENSOR of the current device; it runs on CuPy's current stream.

    Raises:
        UnavailableError: it cannot be loaded.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        try:
            from cupyx import cutensor  # noqa: PLC0415  (part of CuPy, if the library is installed)
        except (ImportError, OSError, RuntimeError) as error:
            raise UnavailableError(
                f"this program was tuned where contractions were fastest by cuTENSOR, which CuPy "
                f"cannot load here ({error}): install it (pip install cutensor-cu13), or compile "
                f"the program again on this machine"
            ) from error
        self._cutensor = cutensor

    def contract(self, contraction: Contraction, out: Any, a: Any, b: Any) -> None:
        """Queue a contraction."""
        lengths = contraction.lengths
        target = self._view(contraction, contraction.out, out)
        if 0 in [lengths[mode] for mode in contraction.out.modes]:
            return
        if 0 in lengths:  # an empty sum, which cuTENSOR does not take
            if not contraction.accumulate:
                target.fill(0)
            return
        self._cutensor.contraction(
            contraction.factor,
            self._view(contraction, contraction.a, a),
            contraction.a.modes,
            self._view(contraction, contraction.b, b),
            contraction.b.modes,
            float(contraction.accumulate),
            target,
            contraction.out.modes,
        )

    def _view(self, contraction: Contraction, operand: Operand, array: Any) -> Any:
        """The elements of an operand, with an axis for each of its modes."""
        dtype = np.dtype(contraction.dtype)
        shape = tuple(contraction.lengths[mode] for mode in operand.modes)
        strides = tuple(step * dtype.itemsize for step in operand.strides)
        start = array.data + operand.offset * dtype.itemsize
        return self._cupy.ndarray(shape, dtype, start, strides)
