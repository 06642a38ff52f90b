"""Tables of NumPy's universal functions: those that are recorded, and their groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "abs": np.absolute,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "conj": np.conjugate,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "floor": np.floor,
    "sign": np.sign,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "exp2": np.exp2,
    "cbrt": np.cbrt,
    "rint": np.rint,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "arctan2": np.arctan2,
    "pow": np.power,
    "mod": np.remainder,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
}
# Operations that take less time than reading their operands from memory.
CHEAP = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "conj", "abs", "power"),
        *("maximum", "minimum", "where", "less", "less_equal", "greater", "greater_equal"),
        *("equal", "not_equal", "and", "or", "xor", "not", "floor", "sign"),
    )
)
OPERATIONS: dict[Any, str] = {ufunc: name for name, ufunc in UFUNCS.items()}
# Operations on real numbers with a boolean result.
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
# Operations on booleans.
LOGICAL = frozenset(("and", "or", "xor", "not"))
# Operations on complex numbers with a complex result.
OF_COMPLEX = frozenset(
    ("add", "subtract", "multiply", "divide", "negative", "sqrt", "exp", "log", "sin", "cos")
) | {"tanh", "conj"}
# Functions that are another one of the same, or of other arguments.
REWRITTEN: dict[Any, Callable[..., tuple[Any, ...]]] = {
    np.square: lambda x: (np.power, x, 2),
    np.reciprocal: lambda x: (np.divide, 1.0, x),
    np.isnan: lambda x: (np.not_equal, x, x),
    np.bitwise_and: lambda x, y: (np.logical_and, x, y),
    np.bitwise_or: lambda x, y: (np.logical_or, x, y),
    np.bitwise_xor: lambda x, y: (np.logical_xor, x, y),
    np.invert: lambda x: (np.logical_not, x),
}
# Universal functions with recorded calls.
RECORDED = frozenset((*OPERATIONS, *REWRITTEN, np.matmul))
