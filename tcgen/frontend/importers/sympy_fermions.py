"""Output of sympy.physics.secondquant as term lists: AntiSymmetricTensor, PermutationOperator.

An index below the Fermi level is occupied, one above is virtual. Dummies are summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.physics import secondquant as second

from .conventions import LETTERS, amplitudes, is_name, signed_letters
from .sympy_atoms import exact_number, identifier_of, wrong

_LARGEST_EXPONENT = 100


def fermion_targets(
    equations: Sequence[tuple[Any, Any]], blocks: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Targets and tensors of a term list; a SpecError if a factor or index is not supported.

    A left side is an AntiSymmetricTensor, or a text such as ``r2(a,b,i,j)``. The tensors that
    ``blocks`` names are given by blocks.
    """
    tensors: dict[str, Any] = {}
    targets = [_target(left, right, tuple(blocks), tensors) for left, right in equations]
    return targets, tensors


def _target(
    left: Any, right: Any, blocks: tuple[str, ...], tensors: dict[str, Any]
) -> dict[str, Any]:
    for function in right.atoms(sympy.Function):
        # Functions are refused before SymPy would evaluate them.
        if not isinstance(function, sympy.KroneckerDelta):
            raise wrong(
                f"{function!s:.80} is a function", "give it a name in an equation of its own"
            )
    expression = sympy.expand(right)
    products = [sympy.Mul.make_args(t) for t in sympy.Add.make_args(expression) if t != 0]
    free = sorted(
        {s for p in products for f in p for s in _symbols(f) if not isinstance(s, sympy.Dummy)},
        key=lambda s: (_space(s) == "o", s.name),
    )
    if isinstance(left, second.AntiSymmetricTensor):
        free = [*left.upper, *left.lower]
        name = f"{identifier_of(str(left.symbol))}{len(left.upper)}"
    else:
        if isinstance(left, sympy.Indexed):
            raise wrong(f"{left} stands on the left of tensors", "write r2(a,b,i,j) as a text")
        text = identifier_of(left.name) if isinstance(left, sympy.Symbol) else left
        name, _, inside = text.partition("(")
        by_name = {s.name: s for s in free}
        if inside:
            written = [x.strip() for x in inside.rstrip(")").split(",")]
            unknown = [x for x in written if x not in by_name]
            if unknown:
                advice = (
                    f"write its free indices on the left: {', '.join(by_name)}"
                    if by_name
                    else "write no indices on the left, since all are summed"
                )
                raise wrong(f"{left}: index {unknown[0]} does not occur on the right", advice)
            free = [by_name[x] for x in written]
    used: set[str] = set()
    fixed = {s: _letter(s, used) for s in free}
    order = list(fixed.values())
    terms = [_term(p, fixed, order, blocks, tensors) for p in products]
    return {"out": f"{name}[{','.join(order)}]", "terms": terms}


def _term(
    product: Iterable[Any],
    fixed: dict[Any, str],
    left: list[str],
    blocks: tuple[str, ...],
    tensors: dict[str, Any],
) -> dict[str, Any]:
    product = list(product)
    symbols = [_symbols(factor.as_base_exp()[0]) for factor in product]
    letters, used = dict(fixed), set(fixed.values())
    coefficient: Any = sympy.Integer(1)
    factors: list[str] = []
    operators: list[tuple[str, tuple[str, ...]]] = []
    for factor, count in (f.as_base_exp() for f in product):
        for symbol in _symbols(factor):
            if symbol not in letters:
                letters[symbol] = _letter(symbol, used)
        if factor.is_number:
            coefficient *= factor**count
            continue
        if not (count.is_Integer and count > 0):
            raise wrong(
                f"{factor**count} is not a factor of a sum of products",
                "expand denominators and functions, or give them names as inputs",
            )
        if count > _LARGEST_EXPONENT:
            raise wrong(f"the exponent {count!s:.40} is beyond {_LARGEST_EXPONENT}", "rewrite it")
        match factor:
            case second.PermutationOperator():
                operator = ("P", tuple(letters[s] for s in factor.args))
                operators += [operator] * int(count)
            case second.AntiSymmetricTensor():
                text = _reference(factor, letters, blocks, tensors)
                factors += [text] * int(count)
            case sympy.KroneckerDelta() if len(factor.args) == 2:
                factors.append(f"delta[{','.join(letters[s] for s in factor.args)}]")
            case sympy.Symbol():
                factors += [identifier_of(factor.name)] * int(count)
            case _:
                raise wrong(
                    f"{factor} is not a tensor, a KroneckerDelta or a PermutationOperator",
                    "evaluate the expression first: wicks(..), evaluate_deltas(..)",
                )
    missing = [x for x in left if x not in {letters[s] for f in symbols for s in f}]
    if missing:
        raise wrong(
            f"a term lacks the index {missing[0]} of the left side: {'*'.join(factors)}",
            "each index of the left side occurs in every term",
        )
    try:
        perms = signed_letters(operators, left)
    except ValueError as error:
        raise wrong(str(error), "write only operators that change the product") from None
    return {"coef": str(_coefficient(coefficient)), "factors": factors, "perms": perms}


def _coefficient(number: Any) -> Fraction:
    """The exact value of a number; that of a root is rounded to float64."""
    if isinstance(number, sympy.Rational | sympy.Float):
        return exact_number(number)
    if not all(map(_is_root_or_number, sympy.Mul.make_args(number))):
        raise wrong(f"the coefficient {number!s:.40} is not a real number", "pass it as an input")
    return exact_number(sympy.N(number))


def _is_root_or_number(part: Any) -> bool:
    numbers = sympy.Rational | sympy.Float | sympy.NumberSymbol
    if not isinstance(part, sympy.Pow):
        return isinstance(part, numbers)
    if isinstance(part.base, sympy.NumberSymbol):
        return isinstance(part.exp, sympy.Rational)
    real = isinstance(part.base, sympy.Rational) and part.base > 0
    return real and isinstance(part.exp, sympy.Rational) and abs(part.exp) < 1


def _reference(
    tensor: Any, letters: dict[Any, str], blocks: tuple[str, ...], tensors: dict[str, Any]
) -> str:
    upper, lower = list(tensor.upper), list(tensor.lower)
    name = identifier_of(str(tensor.symbol))
    if name not in blocks:
        name = f"{name}{len(upper)}"
        tensors[name] = amplitudes([_space(s) for s in (*upper, *lower)], len(upper))
    return f"{name}[{','.join(letters[s] for s in (*upper, *lower))}]"


def _symbols(factor: Any) -> list[Any]:
    """Indices of a factor, in order."""
    if isinstance(factor, second.AntiSymmetricTensor):
        return [*factor.upper, *factor.lower]
    if isinstance(factor, second.PermutationOperator | sympy.KroneckerDelta):
        return list(factor.args)
    return []


def _space(symbol: Any) -> str:
    if symbol.assumptions0.get("below_fermi"):
        return "o"
    if symbol.assumptions0.get("above_fermi"):
        return "v"
    raise wrong(
        f"index {symbol} is neither below nor above the Fermi level",
        "give it below_fermi=True or above_fermi=True, or use evaluate_deltas(..) first",
    )


def _letter(symbol: Any, used: set[str]) -> str:
    """The symbol's own letter if it fits its space and is free, else another one."""
    pool = LETTERS[_space(symbol)]
    own: str = symbol.name.strip("_")
    choices = [own] if own[:1] in pool and is_name(own) and own.isalnum() else []
    choices += [x + n for n in ("", *map(str, range(1, 100))) for x in pool]
    letter = next((x for x in choices if x not in used), "")
    if not letter:
        raise wrong("a term has more than 600 indices", "write it as several equations")
    used.add(letter)
    return letter
