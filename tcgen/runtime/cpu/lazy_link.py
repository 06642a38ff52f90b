"""Functions of the generated kernel that few calls need: compiled when a call first does.

Generated code calls through a table of functions. For what is not compiled yet, a call gets a table
with a stand-in, which compiles the function, lets it do the work, and leaves its address for the
calls that follow.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..fork_safe_lock import Lock

# tc_contraction of templates/c/contract_call.c.
_CONTRACTION = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_int, ctypes.c_int),
    *(ctypes.c_void_p,) * 5,
    *(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    *(ctypes.c_void_p, ctypes.c_int64),
)


class Later:
    """A function of the kernel that is compiled at most once, when it is asked for.

    Args:
        make: compiles it and returns its address.

    Attributes:
        address: None as long as nobody has asked.
    """

    def __init__(self, make: Callable[[], int]) -> None:
        self.address: int | None = None
        self._make = make
        self._lock = Lock()

    def made(self) -> int:
        """The address of the function.

        Raises:
            BuildError, UnavailableError: it cannot be compiled; the next one who asks tries again.
        """
        with self._lock:
            if self.address is None:
                self.address = self._make()
            return self.address


def standing_in(table: Any, later: Mapping[int, Later]) -> AbstractContextManager[Any]:
    """The table of functions for one call, complete as far as the call needs it.

    Args:
        table: addresses, as an array of ctypes; that of each function that has been made is put in.
        later: functions that may not be there yet, by their place in the table.

    Raises:
        BuildError, UnavailableError: at the end, where the call needed what cannot be compiled; its
            results are worth nothing then.
    """
    missing = {}
    for place, function in later.items():
        if function.address is None:
            missing[place] = function
        else:
            table[place] = function.address
    return _with_stand_ins(table, missing) if missing else nullcontext(table)


@contextmanager
def _with_stand_ins(table: Any, missing: Mapping[int, Later]) -> Iterator[Any]:
    errors: list[BaseException] = []
    asking = threading.Lock()

    def address_of(function: Later) -> int | None:
        with asking:  # threads of a loop ask at once: what fails for one is not tried by the others
            if errors:
                return None
            try:
                return function.made()
            except BaseException as error:
                errors.append(error)
                return None

    def stand_in(function: Later) -> Any:
        def call(*given: Any) -> int:
            try:
                address = address_of(function)
                return 0 if address is None else int(_CONTRACTION(address)(*given))
            except BaseException as error:  # no exception passes through C: raised below
                errors.append(error)
                return 0

        return _CONTRACTION(call)

    own = type(table)(*table)
    calls = {place: stand_in(function) for place, function in missing.items()}  # to be kept alive
    for place, call in calls.items():
        own[place] = ctypes.cast(call, ctypes.c_void_p).value
    yield own
    if errors:
        raise errors[0]
