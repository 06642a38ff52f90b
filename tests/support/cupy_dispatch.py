"""NumPy's functions, operators and methods on stand-ins for CuPy's arrays, by CuPy's rules.

A function of NumPy leaves arrays of CuPy to CuPy, which takes no array in the memory of the CPU and
no type that it does not know. Results without axes are arrays. Arrays have no ``writeable`` flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

METHODS = (
    *("all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "cumsum", "dot"),
    *("fill", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round"),
    *("sort", "std", "sum", "take", "tolist", "var"),
)


class _Flags(NamedTuple):
    """CuPy's flags, and ``writeable`` for checks of NumPy's arrays, among which stand-ins are."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool = True


class DispatchedArray(np.ndarray[Any, Any]):
    """An array whose elements are read behind what is queued.

    ``synchronize`` runs the queue; ``made`` puts an array of NumPy into new memory.
    """

    synchronize: Callable[..., None]
    made: Callable[[Any], Any]
    _source: Any = None  # of a view that a function returned

    @property
    def base(self) -> Any:
        if self._source is not None:
            above = self._source.base
            return self._source if above is None else above
        found = np.ndarray.base.__get__(self)
        return found if isinstance(found, DispatchedArray) else None

    @property
    def flags(self) -> Any:
        flags = np.ndarray.flags.__get__(self)
        return _Flags(flags.c_contiguous, flags.f_contiguous, self.base is None)

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        for value in (*inputs, *out):
            if type(value) is np.ndarray:
                raise TypeError(f"Unsupported type {type(value)}")
            if not (isinstance(value, DispatchedArray) or np.isscalar(value)):
                return NotImplemented
        if method not in ("__call__", "reduce"):
            return NotImplemented
        if out:
            options["out"] = tuple(map(plain, out))
        made = self._run(getattr(ufunc, method), inputs, options)
        return out[0] if out else made

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if any(kind is not type(self) and kind is not np.ndarray for kind in types):
            return NotImplemented
        if np.ndarray in types:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        return self._run(function, args, options)

    def _run(self, function: Any, args: Any, options: Any) -> Any:
        sources = arrays_in(args)
        type(self).synchronize(*sources)
        made = function(*plain(tuple(args)), **plain(options))
        return None if made is None else self._wrapped(made, sources)

    def _wrapped(self, made: Any, sources: list[Any]) -> Any:
        if type(made) in (tuple, list):
            return type(made)(self._wrapped(m, sources) for m in made)
        if isinstance(made, bool | str) or not isinstance(made, np.ndarray | np.generic):
            return made
        for source in sources if isinstance(made, np.ndarray) else ():
            if np.may_share_memory(made, plain(source)):
                view = made.view(type(self))
                view.__dict__.update(source.__dict__, _source=source)
                return view
        return type(self).made(np.asarray(made))

    def __getitem__(self, key: Any) -> Any:
        keys = key if type(key) is tuple else (key,)
        if any(isinstance(k, np.ndarray | list) for k in keys):
            assert not any(type(k) is np.ndarray for k in keys), "CuPy's index is its own"
            return self._run(np.ndarray.__getitem__, (self, key), {})
        dots = () if any(k is Ellipsis for k in keys) else (Ellipsis,)
        return super().__getitem__((*keys, *dots))

    def __float__(self) -> float:
        return float(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __bool__(self) -> bool:
        return bool(self._read())

    def __str__(self) -> str:
        return str(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def _read(self) -> Any:
        type(self).synchronize()
        return plain(self)


def plain(value: Any) -> Any:
    """The value with arrays of NumPy over the same memory, also in tuples, lists and dicts."""
    if isinstance(value, DispatchedArray):
        return value.view(np.ndarray)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return {k: plain(v) for k, v in value.items()} if type(value) is dict else value


def arrays_in(values: Any) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, DispatchedArray):
            found.append(value)
        elif type(value) in (tuple, list):
            found += arrays_in(value)
    return found


def _method(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        made = self._run(function, (self, *args), options)
        if out is not None:
            out[...] = made
        return made if out is None else out

    method.__name__ = name
    return method


for _name in METHODS:
    setattr(DispatchedArray, _name, _method(_name))
