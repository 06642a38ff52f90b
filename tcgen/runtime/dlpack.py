"""DLPack exchange with other GPU libraries, zero-copy both ways.

DLPack hands memory over with the stream on which it is ready: each library makes its own stream
wait for the other's. So a result is ready for all work that its library queues later, and memory
that the library frees after the call is not overwritten before kernels have read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .device_protocol import Device

_ON_CUDA = 2  # kDLCUDA of dlpack.h
# Where the function ``from_dlpack`` of a library is, by the library of its arrays' type.
_HOMES = {"torch": "torch", "jax": "jax.numpy", "jaxlib": "jax.numpy"}


def on_a_gpu(array: Any) -> bool:
    """True for an array of any library in the memory of an NVIDIA GPU."""
    if type(array) is np.ndarray:
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and where()[0] == _ON_CUDA


def adopt(device: Device, name: str, array: Any) -> tuple[Any, str | None]:
    """An array of the GPU over the memory of the given one, and the library of that one.

    An object that is not an array of another library on a GPU is returned unchanged, with None.
    Raises ArgumentError if the library does not hand the array over; ``name`` is for the message.
    """
    if type(array) is np.ndarray or device.holds(array) or not on_a_gpu(array):
        return array, None
    library = type(array).__module__.partition(".")[0]
    try:
        own = device.adopt(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        whole = f"{name}.detach()" if library == "torch" else f"a copy of {name}"
        raise ArgumentError(
            f"{name} is a {library} array that cannot be handed over ({error}): pass {whole}"
        ) from error
    return (array, None) if own is None else (own, library)


def adopt_all(device: Device, arrays: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Each array as ``adopt`` gives it; the library of the first one that was adopted."""
    found, first = {}, None
    for name, array in arrays.items():
        found[name], library = adopt(device, name, array)
        first = first or library
    return found, first


def hand_back(array: Any, library: str | None) -> Any:
    """A result as an array of a library; of the device for None, or without DLPack."""
    home = _HOMES.get(library or "")
    return array if home is None else import_module(home).from_dlpack(array)


def adopt_arguments(
    device: Device, arrays: Mapping[str, Any], out: Any
) -> tuple[dict[str, Any], Any, Callable[[dict[str, Any]], dict[str, Any]]]:
    """The inputs and ``out`` of a call as the GPU's own arrays; other objects stay unchanged.

    The third value turns results of the call into those of the caller: their own arrays of ``out``,
    others as arrays of their library.
    """
    if out is None and all(map(device.holds, arrays.values())):
        return dict(arrays), None, _unchanged  # fast path
    own, library = adopt_all(device, arrays)
    if not isinstance(out, dict):
        return own, out, lambda made: _back(made, library)
    targets, of_targets = adopt_all(device, out)
    first = library or of_targets
    if first is None:
        return own, out, _unchanged

    given = dict(out)

    def back(made: dict[str, Any]) -> dict[str, Any]:
        out.update(_back(made, first))  # its stream waits for the kernels
        out.update(given)
        return out

    return own, targets, back


def _unchanged(made: dict[str, Any]) -> dict[str, Any]:
    """The results of a call with arrays of the device only."""
    return made


def _back(made: dict[str, Any], library: str | None) -> dict[str, Any]:
    return made if library is None else {n: hand_back(a, library) for n, a in made.items()}
