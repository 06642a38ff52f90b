"""The functions that opt_einsum looks up in a backend: ``tensordot``, ``transpose``, ``einsum``.

``opt_einsum.contract(..., backend="tcgen")`` finds them as attributes of the module ``tcgen``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError
from .functions import einsum, tensordot
from .routes import Array

__all__ = ["einsum", "tensordot", "transpose"]


def transpose(a: npt.ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """A view of ``a`` with its axes in another order: ``numpy.transpose``.

    Raises:
        ShapeError: ``axes`` does not name each axis once.
    """
    array = np.asarray(a)
    try:
        return np.transpose(array, axes)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"transpose: axes={axes!r} of shape {array.shape}: {error}") from None
