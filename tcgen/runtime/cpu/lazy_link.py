"""Functions of the contraction kernel that few calls need: compiled when a call first needs them.

Generated code calls through a table of functions. For a function that is not compiled yet, a call
gets a table with a stand-in, which compiles the function and calls it. Later calls get the address
of the function.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..fork_safe_lock import Once

# tc_contraction of templates/c/contract/abi.h.
_CONTRACTION = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_int, ctypes.c_int),
    *(ctypes.c_void_p,) * 5,
    *(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p),
)


def standing_in(table: Any, later: Mapping[int, Once[int]]) -> AbstractContextManager[Any]:
    """The table of functions for one call, with stand-ins for functions that are not compiled.

    ``table`` holds addresses, as an array of ctypes, and receives those of functions that were
    compiled; ``later`` has functions that may not be compiled yet, by their place in the table.
    Raises BuildError or UnavailableError at the end of the context if the call needed a function
    that cannot be compiled; its results are wrong then.
    """
    missing = {}
    for place, function in later.items():
        if function.value is None:
            missing[place] = function
        else:
            table[place] = function.value
    return _with_stand_ins(table, missing) if missing else nullcontext(table)


@contextmanager
def _with_stand_ins(table: Any, missing: Mapping[int, Once[int]]) -> Iterator[Any]:
    errors: list[BaseException] = []
    asking = threading.Lock()

    def address_of(function: Once[int]) -> int | None:
        with asking:  # threads of a loop ask at once: after a failure the others do not try again
            if errors:
                return None
            try:
                return function.get()
            except BaseException as error:
                errors.append(error)
                return None

    def stand_in(function: Once[int]) -> Any:
        def call(*given: Any) -> int:
            try:
                address = address_of(function)
                return 0 if address is None else int(_CONTRACTION(address)(*given))
            except BaseException as error:  # raised below, since it cannot pass through C
                errors.append(error)
                return 0

        return _CONTRACTION(call)

    own = type(table)(*table)
    # They must stay alive until the call ends.
    calls = {place: stand_in(function) for place, function in missing.items()}
    for place, call in calls.items():
        own[place] = ctypes.cast(call, ctypes.c_void_p).value
    yield own
    if errors:
        raise errors[0]
