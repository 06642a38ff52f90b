"""Random einsum calls, and what NumPy says to them: shared by the tests of ``tcgen.einsum``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

LETTERS = "abcijkXZ"
KERNEL_TYPES = ("f8", "f4", "c16")
OTHER_TYPES = ("i8", "i4", "?", "f2", "c8", "u1", ">f8")


@dataclass(frozen=True)
class Call:
    operands: tuple[Any, ...]
    keywords: dict[str, Any]
    out: np.ndarray | None
    optimize: Any = False  # for tcgen alone: it changes which casts NumPy checks

    def run(self, function: Any, **options: Any) -> Any:
        """Result of a function with einsum's signature, or the exception that it raised."""
        keywords = {**self.keywords, **options}
        if self.out is not None:
            keywords["out"] = self.out.copy(order="K")
        with warnings.catch_warnings():
            # A cast from complex to real, where the call allows it, warns; both sides do.
            warnings.simplefilter("ignore")
            try:
                result = function(*self.operands, **keywords)
            except (ValueError, TypeError) as error:
                return error
        assert self.out is None or result is keywords["out"]
        return result


@st.composite
def calls(draw: Any) -> Call:
    """A call that is mostly legal: wrong extents, labels, casts and outputs are mixed in."""
    letters = draw(st.permutations(LETTERS))[: draw(st.integers(1, 5))]
    extents = {c: draw(st.sampled_from((0, 1, 2, 2, 3, 3, 4))) for c in letters}
    broadcast = draw(st.lists(st.sampled_from((1, 2, 3)), max_size=2))
    count = draw(st.integers(1, 4))
    types = draw(st.sampled_from((KERNEL_TYPES, KERNEL_TYPES, KERNEL_TYPES + OTHER_TYPES)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    terms, arrays = [], []
    for _ in range(count):
        labels = draw(st.lists(st.sampled_from(letters), max_size=4))
        shape = [extents[c] for c in labels]
        text = "".join(labels)
        if draw(st.integers(0, 5)) == 0:  # an ellipsis
            place = draw(st.integers(0, len(labels)))
            under = [draw(st.sampled_from((1, n))) for n in broadcast]
            under = under[draw(st.integers(0, len(under))) :]
            shape[place:place] = under
            text = f"{text[:place]}...{text[place:]}"
        if shape and draw(st.integers(0, 6)) == 0:  # a broadcast, or a wrong extent
            shape[draw(st.integers(0, len(shape) - 1))] = draw(st.sampled_from((1, 1, 1, 2, 5)))
        terms.append(text)
        arrays.append(array(random, tuple(shape), draw(st.sampled_from(types)), draw))
    text = ",".join(terms)
    used = list(dict.fromkeys(c for c in text if c.isalpha()))
    if draw(st.booleans()):
        output = [c for c in used if draw(st.booleans())]
        output = list(draw(st.permutations(output)))
        if draw(st.integers(0, 20)) == 0:
            output.append(draw(st.sampled_from(LETTERS)))
        if ("..." in text) != (draw(st.integers(0, 20)) == 0):
            output.insert(draw(st.integers(0, len(output))), "...")
        text += "->" + "".join(output)
    keywords: dict[str, Any] = {}
    if draw(st.integers(0, 5)) == 0:
        keywords["dtype"] = draw(st.sampled_from(("f8", "f4", "c16", "i8")))
        keywords["casting"] = draw(st.sampled_from(("safe", "same_kind", "unsafe", "no")))
    if draw(st.integers(0, 5)) == 0:
        keywords["order"] = draw(st.sampled_from("CFAK"))
    call = Call((text, *arrays), keywords, None)
    if draw(st.integers(0, 3)) == 0:
        plain = call.run(np.einsum)
        if not isinstance(plain, Exception):
            shape = list(np.shape(plain))
            if shape and draw(st.integers(0, 8)) == 0:
                shape[0] += draw(st.sampled_from((-1, 1)))
            dtype = draw(st.sampled_from((np.asarray(plain).dtype.str, "f8", "c16")))
            call = Call(call.operands, keywords, array(random, tuple(map(abs, shape)), dtype, draw))
    if draw(st.integers(0, 3)) == 0:
        call = Call(interleave(text, arrays), keywords, call.out)
    return replace(call, optimize=draw(st.sampled_from((True, True, False, "greedy"))))


def array(random: np.random.Generator, shape: tuple[int, ...], dtype: str, draw: Any) -> Any:
    """Values of a few bits, in C order, in another order, or strided."""
    order = draw(st.permutations(range(len(shape))))
    way = draw(st.sampled_from(("plain", "plain", "turned", "strided")))
    stored = tuple(shape[k] for k in order) if way == "turned" else shape
    if way == "strided" and shape:
        stored = (*shape[:-1], 2 * shape[-1])
    values = random.integers(0 if dtype in ("?", "u1") else -3, 4, stored) / (
        2 if np.dtype(dtype).kind in "fc" else 1
    )
    made = (values + 1j * random.integers(-2, 3, stored)) if np.dtype(dtype).kind == "c" else values
    made = np.asarray(made).astype(dtype)
    if way == "turned":
        return made.transpose(np.argsort(order))
    return made[..., ::2] if way == "strided" and shape else made


def interleave(text: str, arrays: list[Any]) -> tuple[Any, ...]:
    """The call with lists of integers instead of text."""

    def numbers(part: str) -> list[Any]:
        return [
            Ellipsis if c == "." else ord(c) - (ord("A") if c.isupper() else ord("a") - 26)
            for c in part.replace("...", ".")
        ]

    before, arrow, after = text.partition("->")
    operands: list[Any] = []
    for part, one in zip(before.split(","), arrays, strict=True):
        operands += [one, numbers(part)]
    return (*operands, numbers(after)) if arrow else tuple(operands)


def assert_same(found: Any, expected: Any, call: Call) -> None:
    """Equal in kind of outcome, shape, element type and values."""
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), f"NumPy raises {expected!r}, tcgen does not: {call}"
        kinds = (ValueError, TypeError)
        assert [isinstance(found, k) for k in kinds] == [isinstance(expected, k) for k in kinds], (
            f"NumPy: {expected!r}; tcgen: {found!r}"
        )
        return
    if isinstance(found, Exception):
        raise AssertionError(f"NumPy gives {expected!r} for {call}") from found
    assert type(found) is type(expected), call
    assert np.shape(found) == np.shape(expected), call
    assert np.asarray(found).dtype == np.asarray(expected).dtype, call
    short = np.asarray(expected).dtype.str[1:] in ("f4", "c8", "f2")
    np.testing.assert_allclose(
        found, expected, rtol=2e-2 if short else 1e-12, atol=1e-3 if short else 1e-12
    )
