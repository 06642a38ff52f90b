"""A System as readable .spec text, which reads back to a System with equal values.

Permutations are written as P(i,j), P(i/j,k), S(ia,jb) if one of these operators, or a product of
two or three, is exactly the list of the term; otherwise each permutation has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, groupby, permutations
from math import prod
from typing import TypeAlias

from ...errors import TcgenError
from ...ir.expr import Const, Delta, Expr, Pow, Prod, Quot, Sum, format_expr
from ...ir.reduction import Reduction
from ...ir.system import Apply, Equation, Factor, Permutation, System, Term, factor_indices
from ...ir.tensor import (
    Index,
    Ref,
    Role,
    Space,
    Symmetry,
    Tensor,
    distinct,
    exchanged,
    first_image,
    symmetry_group,
)
from ...ir.term_rewriting import fresh_index, rename_equation, rename_term, without_perms
from .attributes import word_of
from .names import RESERVED
from .operators import Signed, compose, position_images, slash_operator, tuple_operator

_Images = dict[tuple[int, ...], int]
_ONE: Signed = ((1, ()),)
_WIDTH = 100  # characters of a line of grouped terms
Group: TypeAlias = tuple[Permutation, ...]
"""Permutations of left indices that leave a term unchanged up to sign, with the identity."""


def spec_text(
    system: System,
    *,
    heading: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    grouped: bool = False,
) -> str:
    """The system in the .spec language.

    Spaces, indices, inputs, outputs, then one equation for each intermediate and output. Index
    letters that two spaces share, or that are the name of a space, get a number.

    Args:
        system: a verified system.
        heading: comment lines after the name of the system.
        notes: comments behind the declarations of inputs, by name.
        grouped: write consecutive terms with one operator as one sum, P(i,j) (x - y).

    Raises:
        TcgenError: the language cannot express the system: a tensor has a reserved name, a
            generated input has a stored layout, or an array is a slice of a larger one.

    Example:
        >>> from tcgen.frontend import read_spec
        >>> system = read_spec('''space o
        ... index i j : o
        ... input x[o,o] symmetric (0,1)
        ... output y
        ... y[i,j] = P(i,j) x[i,k1]*x[j,k1]
        ... index k1 : o''')
        >>> print(spec_text(system), end="")
        # spec
        space o
        index i j k1 : o
        input  x[o,o] symmetric (0,1)
        output y
        <BLANKLINE>
        y[i,j] = P(i,j) x[i,k1]*x[j,k1]
    """
    _refuse_unwritable(system)
    system = _with_own_letters(system)
    letters: dict[Space, list[str]] = {}
    for index in _indices(system):
        letters.setdefault(index.space, []).append(index.name)
    lines = [f"# {system.name}"]
    lines += [f"# {line}" for line in heading]
    lines += [f"# {name} is {text} in the source" for name, text in system.written]
    spaces = list(system.spaces)
    spaces += [s for s in letters if s not in spaces]
    lines += [_space_line(space) for space in spaces]
    lines += [f"index {' '.join(names)} : {space.name}" for space, names in letters.items()]
    lines += _input_lines(system, notes or {})
    outputs = [_output(tensor, system) for tensor in system.outputs]
    lines += [note for _, notes in outputs for note in notes]
    lines += [f"output {line}" for line, _ in outputs]
    for equation in system.equations:
        lines += ["", *(_grouped_lines if grouped else _equation_lines)(equation)]
    return "\n".join(lines) + "\n"


def _refuse_unwritable(system: System) -> None:
    for tensor in system.tensors:
        if tensor.name in RESERVED:
            raise TcgenError(
                f"a .spec cannot have a tensor named {tensor.name}: the language reserves that "
                f"name; rename it in the source"
            )
        if tensor.role is Role.GENERATED and (tensor.storage.order or tensor.storage.packed):
            raise TcgenError(
                f"a .spec cannot say that the generated input {tensor.name} has a stored layout: "
                f"its tiles come in declared order"
            )
        if tensor.storage.within:
            raise TcgenError(
                f"a .spec cannot say that the array of {tensor.name} is a slice of a larger one"
            )


def _input_lines(system: System, notes: Mapping[str, str]) -> list[str]:
    """Declarations of inputs, and their comments in one column."""
    written = [(tensor, *_declaration(tensor)) for tensor in system.inputs]
    commented = [len(text) for tensor, text, _ in written if tensor.name in notes]
    width = max(commented, default=0)
    lines = []
    for tensor, text, left_out in written:
        note = f"{text:<{width}}  # {notes[tensor.name]}" if tensor.name in notes else text
        lines += [*left_out, f"input  {note}"]
    return lines


def _indices(system: System) -> tuple[Index, ...]:
    """All indices, left ones first within each equation."""
    indices: list[Index] = []
    for equation in system.equations:
        indices += equation.lhs.indices
        for term in equation.terms:
            indices += term.indices
    return distinct(tuple(indices))


def _with_own_letters(system: System) -> System:
    """The system with index names that are unique and different from those of spaces."""
    taken = {s.name for s in system.spaces} | set(RESERVED)
    names: dict[Index, Index] = {}
    every = _indices(system)
    used = taken | {i.name for i in every}
    for index in every:
        new = index
        legal = index.name.isascii() and index.name.isidentifier()
        if index.name in taken or not legal:
            stem = Index(
                "".join(c for c in index.name if c.isascii() and c.isalpha()) or "i", index.space
            )
            new = fresh_index(stem, used)
        taken.add(new.name)
        used.add(new.name)
        names[index] = new
    equations = tuple(rename_equation(e, names) for e in system.equations)
    return replace(system, equations=equations)


def _space_line(space: Space) -> str:
    text = f"space {space.name}"
    if space.parts:
        return f"{text} = {' + '.join(p.name for p in space.parts)}"
    text += f" {space.kind}" if space.kind else ""
    text += (" graded" if space.graded else "") + (" strict" if space.strict else "")
    return text if space.extent is None else f"{text} = {space.extent}"


def _declaration(tensor: Tensor) -> tuple[str, list[str]]:
    """An input without its keyword, and comments on symmetry that has no words."""
    axes = ",".join(s.name for s in tensor.spaces)
    text = f"{tensor.name}[{axes}]" if axes else tensor.name
    words, left_out = symmetry_text(tensor)
    text += words + _storage(tensor)
    if tensor.quantity is not None:
        text += f" from {word_of(tensor.quantity)}"
    if tensor.real:
        text += " real"
    if tensor.role is Role.GENERATED:
        text += " generated"
    if tensor.is_input and not tensor.volatile:
        text += " constant"
    if tensor.default is not None:
        text += f" = {tensor.default}"
    return text, [f"# {line}" for line in left_out]


def _output(tensor: Tensor, system: System) -> tuple[str, list[str]]:
    text, notes = _declaration(tensor)
    if system.equation(tensor).lhs.tensor.spaces == tensor.spaces:
        text = tensor.name + text.removeprefix(tensor.name).partition("]")[2]
    return text + (" accumulate" if tensor.accumulate else ""), notes


def _storage(tensor: Tensor) -> str:
    text = ""
    if tensor.conserves is not None:
        sides = (f"({','.join(map(str, side))})" for side in tensor.conserves)
        text += f" conserves {'->'.join(sides)}"
    if tensor.label:
        text += " label"
    if tensor.charge is not None:
        text += f" charge {tensor.charge}"
    if tensor.storage.order:
        text += f" stored ({','.join(map(str, tensor.storage.order))})"
    for packing in tensor.storage.packed:
        text += f" packed ({','.join(map(str, packing.axes))})"
    return text


def _equation_lines(equation: Equation) -> list[str]:
    """One line for each term; those of an accumulating output start with +=."""
    lhs = equation.lhs
    written = [pair for term in equation.terms for pair in _written_out(term, lhs)]
    texts = [_term_text(term, operator) for term, operator in written]
    used = {i for term, _ in written for i in term.indices}
    missing = [i for i in lhs.indices if i not in used]
    if missing:
        # The language requires each left index on the right side; delta[i,i] is 1.
        ones = "*".join(f"delta[{i},{i}]" for i in missing)
        texts = [f"{texts[0]}*{ones}", *texts[1:]] if texts else [f"0*{ones}"]
    texts = texts or ["0"]
    lines = []
    for n, text in enumerate(texts):
        minus = text.startswith("-")
        if n == 0:
            lines.append(f"{lhs} {'+=' if lhs.tensor.accumulate else '='} {text}")
        else:
            lines.append(f"{lhs} {'-=' if minus else '+='} {text[1:] if minus else text}")
    return lines


def _grouped_lines(equation: Equation) -> list[str]:
    """A sum for each run of terms with one operator, in lines of at most ``_WIDTH`` characters."""
    lhs, lines = equation.lhs, list[str]()
    written = [pair for term in equation.terms for pair in _written_out(term, lhs)]
    for operator, run in groupby(written, key=lambda pair: pair[1]):
        terms = [term for term, _ in run]
        equals = "+=" if lines or lhs.tensor.accumulate else "="
        if len(terms) == 1:
            text = _term_text(terms[0], operator)
            minus = equals == "+=" and text.startswith("-")
            lines.append(f"{lhs} {'-=' if minus else equals} {text[1:] if minus else text}")
            continue
        line, before = f"{lhs} {equals} {operator}(", len(lines)
        indent = " " * len(line)
        for n, text in enumerate(_term_text(term, "") for term in terms):
            sign, size = ("- ", text[1:]) if text.startswith("-") else ("+ ", text)
            signed = f" {sign}{size}" if n else text
            if n and len(line) + len(signed) >= _WIDTH:
                lines.append(line)
                line, signed = indent, signed[1:]
            line += signed
        whole = not operator and len(lines) == before
        lines.append(line.replace("(", "", 1) if whole else f"{line})")
    return lines or _equation_lines(equation)


def _written_out(term: Term, lhs: Ref) -> list[tuple[Term, str]]:
    """The term and its operator, or each of its permutations if no operator expresses them."""
    if term.perms:
        operator = operator_text(term.perms, lhs.indices, invariant_exchanges(term, lhs.indices))
        if operator:
            return [(term, operator)]
    return [(moved, "") for moved in without_perms(term, lhs)]


def _term_text(term: Term, operator: str) -> str:
    if term.reduction is not Reduction.SUM:
        (factor,) = term.factors
        assert isinstance(factor, Apply)
        text = format_expr(factor.expr)
        text = f"({text})" if isinstance(factor.expr, Sum) else text
        return f"{term.reduction.value}({','.join(i.name for i in term.sums)}) {text}"
    coeff, factors = _spread(term.factors)
    coeff *= term.coeff
    counts: dict[Index, int] = {}
    for factor in factors:
        held = factor.indices if isinstance(factor, Ref) else factor_indices(factor)
        if isinstance(factor, Delta):
            held = (factor.left, factor.right)
        for index in held:
            counts[index] = counts.get(index, 0) + 1
    single = [i.name for i in term.sums if counts.get(i, 0) == 1]
    head = operator + (f"sum({','.join(single)}) " if single else "")
    product, below = [], []
    for factor in factors:
        match factor:
            case Apply(Quot(Const(Fraction(numerator=1, denominator=1)), den)):
                below.append(f"/{_bracketed(den)}")
            case Apply(expr):
                product.append(_atom(expr))
            case _:
                product.append(format_expr(factor))
    if not product and below:
        product = ["1"] if abs(coeff) == 1 or head else []
    body = "*".join(product) + "".join(below)
    sign, size = ("-" if coeff < 0 else ""), abs(coeff)
    if not body:
        return f"{sign}{head}{size}"
    if size == 1:
        return f"{sign}{head}{body}"
    return f"{sign}{size}{body if body.startswith('/') else f'*{head}{body}'}"


def _spread(factors: Iterable[Factor]) -> tuple[Fraction, list[Factor]]:
    """Make products inside atoms factors, since the language would read them as brackets."""
    coeff, spread = Fraction(1), list[Factor]()
    for factor in factors:
        if not isinstance(factor, Apply):
            spread.append(factor)
            continue
        match factor.expr:
            case Const(value):
                coeff *= value
            case Prod(args):
                number, more = _spread(_factor(a) for a in args)
                coeff *= number
                spread += more
            case Quot(num, den) if num != Const(Fraction(1)):
                number, more = _spread((_factor(num), Apply(Quot(Const(Fraction(1)), den))))
                coeff *= number
                spread += more
            case Quot(_, Const(value)) if value:
                coeff /= value
            case Ref() | Delta() as plain:
                spread.append(plain)
            case _:
                spread.append(factor)
    return coeff, spread


def _factor(expr: Expr) -> Factor:
    return expr if isinstance(expr, Ref | Delta) else Apply(expr)


def _atom(expr: Expr) -> str:
    """Text of an expression that is read as one atom."""
    text = format_expr(expr)
    match expr:
        case Pow() | Quot():
            return text
        case _ if text.endswith(")") and not text.startswith("("):
            return text
        case _:
            return f"({text})**1"


def _bracketed(expr: Expr) -> str:
    text = format_expr(expr)
    match expr:
        case Ref() | Delta() | Pow():
            return text
        case _ if text.endswith(")") and text[0].isalpha() and "[" not in text.partition("(")[0]:
            return text if not isinstance(expr, Prod | Quot) else f"({text})"
        case _:
            return f"({text})"


def symmetry_text(tensor: Tensor) -> tuple[str, list[str]]:
    """Attributes that declare a tensor's symmetry, and sentences on symmetry they cannot express.

    Leaving out a symmetry costs operations but does not change values.

    Example:
        >>> from tcgen.ir.tensor import Role, Space
        >>> o = Space("o")
        >>> swaps = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1))
        >>> symmetry_text(Tensor("t", (o, o, o, o), Role.INPUT, symmetry=swaps))
        (' antisymmetric (0,1) (2,3)', [])
    """
    if not tensor.symmetry:
        return "", []
    whole = set(symmetry_group(tensor))
    chosen: list[_Phrase] = []
    reached: set[Symmetry] = set(symmetry_group(replace(tensor, symmetry=())))
    for phrase in _phrases(tensor):
        if phrase.symmetry not in whole or phrase.symmetry in reached:
            continue
        chosen.append(phrase)
        reached = set(symmetry_group(replace(tensor, symmetry=tuple(p.symmetry for p in chosen))))
        if reached == whole:
            break
    text = ""
    for word in ("symmetric", "antisymmetric", "symmetry", "antisymmetry", "hermitian"):
        axes = [p.axes for p in chosen if p.word == word]
        text += f" {word} {' '.join(axes)}" if axes else ""
    left_out = []
    for symmetry in tensor.symmetry:
        if symmetry not in reached and not (tensor.real and symmetry.conj):
            sign = "-" if symmetry.sign < 0 else ""
            left_out.append(
                f"{tensor.name} also equals {sign}{tensor.name} with its axes taken in the order "
                f"{symmetry.perm}, which .spec cannot express"
            )
    return text, left_out


@dataclass(frozen=True, slots=True)
class _Phrase:
    word: str
    axes: str
    symmetry: Symmetry


def _phrases(tensor: Tensor) -> Iterator[_Phrase]:
    """All symmetries that the language can express for this many axes: pairs, then exchanges."""
    rank, spaces = tensor.rank, tensor.spaces
    for gap in range(1, rank):
        for first in range(rank - gap):
            second = first + gap
            if spaces[first] == spaces[second]:
                perm = exchanged(rank, (first, second))
                axes = f"({first},{second})"
                yield _Phrase("symmetric", axes, Symmetry(perm))
                yield _Phrase("antisymmetric", axes, Symmetry(perm, -1))
    involutions = [s for s in symmetry_group(tensor) if _pairs(s.perm)]
    for symmetry in sorted(involutions, key=lambda s: (s.conj, s.sign < 0, s.perm)):
        if symmetry.sign == 1 or not symmetry.conj:
            pairs = _pairs(symmetry.perm)
            left, right = (",".join(str(p[k]) for p in pairs) for k in (0, 1))
            equal = "symmetry" if symmetry.sign == 1 else "antisymmetry"
            word = "hermitian" if symmetry.conj else equal
            yield _Phrase(word, f"({left})<->({right})", symmetry)


def _pairs(perm: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs that an involution exchanges; () for the identity and for other permutations."""
    pairs = tuple((k, image) for k, image in enumerate(perm) if k < image)
    return pairs if exchanged(len(perm), *pairs) == perm else ()


@lru_cache(maxsize=1024)
def operator_text(
    perms: tuple[Permutation, ...], left: tuple[Index, ...], symmetry: Group = ()
) -> str:
    """``P(i,j) P(a,b) `` for a list of permutations, or "" if no product of operators equals it.

    ``perms`` includes the identity. Permutations that differ by one of ``symmetry``, which leaves
    the term unchanged, are equal, so a list of cosets is P(k/ij) with any representatives.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> left = tuple(Index(x, Space("o")) for x in "ija")
        >>> cyclic = tuple(Permutation(s, p) for s, p in ((1, (0, 1, 2)), (1, (1, 2, 0)),
        ...                                               (1, (2, 0, 1))))
        >>> exchange = (Permutation(1, (0, 1, 2)), Permutation(-1, (1, 0, 2)))
        >>> operator_text(cyclic, left), operator_text(cyclic, left, exchange)
        ('', 'P(a/ij) ')
    """
    short = _antisymmetriser(perms, left, symmetry)
    return short or _product(perms, left, ()) or _product(perms, left, symmetry)


def _antisymmetriser(
    perms: tuple[Permutation, ...], left: tuple[Index, ...], symmetry: Group
) -> str:
    """P(i/jk) P(ab/cd) of the classes in which a term is antisymmetric, without any search."""
    text, whole = "", _ONE
    for classes in antisymmetric_classes(perms, left, symmetry):
        if len(classes) > 1:
            mark = "," if all(len(c) == 1 for c in classes) else "/"
            text += f"P({mark.join(map(_together, classes))}) "
            whole = compose(whole, slash_operator(classes, True))
    given = {(p.sign, p.images) for p in perms}
    written = {(sign, position_images(names, left)) for sign, names in whole}
    same = given == written and len(perms) == len(written)
    if text and not same:
        wanted = _cosets(given, symmetry)
        same = wanted is not None and _images(whole, left, symmetry) == wanted
    return text if same else ""


def antisymmetric_classes(
    perms: Iterable[Permutation], left: tuple[Index, ...], symmetry: Group
) -> list[tuple[tuple[Index, ...], ...]]:
    """For left indices that permutations mix: classes of those whose exchange changes the sign.

    ``symmetry`` leaves the term unchanged up to its sign. Small classes come first.
    """
    mixed = {k: {k} for k in range(len(left))}
    for perm in perms:
        for k, image in enumerate(perm.images):
            if image not in mixed[k]:
                mixed |= dict.fromkeys(both := mixed[k] | mixed[image], both)
    signs = {p.images: p.sign for p in symmetry}
    found = []
    for group in {min(g): sorted(g) for g in mixed.values() if len(g) > 1}.values():
        classes: list[list[int]] = []
        for k in group:
            same = [c for c in classes if signs.get(exchanged(len(left), (c[0], k))) == -1]
            if same:
                same[0].append(k)
            else:
                classes.append([k])
        found.append(tuple(tuple(left[k] for k in c) for c in sorted(classes, key=len)))
    return found


def _product(perms: tuple[Permutation, ...], left: tuple[Index, ...], symmetry: Group) -> str:
    """The operators whose product has these cosets."""
    wanted = _cosets(((p.sign, p.images) for p in perms), symmetry)
    if wanted is None:
        return ""
    usable: list[tuple[str, Signed]] = []
    sizes: list[int] = []
    for text, signed in _operators(left):
        images = _images(signed, left, symmetry)
        if images is not None and all(wanted.get(k) == sign for k, sign in images.items()):
            if len(images) == len(wanted):
                return f"{text} "
            usable.append((text, signed))
            sizes.append(len(images))
    for count in (2, 3):
        for chosen in permutations(range(len(usable)), count):
            if prod(sizes[n] for n in chosen) != len(wanted):
                continue
            whole: Signed = ((1, ()),)
            for n in chosen:
                whole = compose(whole, usable[n][1])
            if _images(whole, left, symmetry) == wanted:
                return "".join(f"{usable[n][0]} " for n in chosen)
    return ""


def invariant_exchanges(term: Term, left: tuple[Index, ...]) -> Group:
    """Exchanges of two left indices, and their products, that leave the term unchanged up to sign.

    Declared symmetries of tensors are used, and summed indices may change names in pairs.
    """
    signs = {tuple(range(len(left))): 1}
    for one, other in combinations(range(len(left)), 2):
        sign = _exchanged(term, left[one], left[other])
        if sign:
            signs[exchanged(len(left), (one, other))] = sign
    generators = list(signs.items())
    pending = list(signs)
    while pending:
        first = pending.pop()
        for second, sign in generators:
            both = tuple(first[k] for k in second)
            if both not in signs:
                signs[both] = signs[first] * sign
                pending.append(both)
    return tuple(Permutation(sign, images) for images, sign in signs.items())


def _exchanged(term: Term, one: Index, other: Index) -> int:
    """Sign of the term after the exchange; 0 if it is a different term."""
    if one.space != other.space:
        return 0
    plain = _written(term, {})
    pairs = [(x, y) for x, y in combinations(term.sums, 2) if x.space == y.space]
    for count in (0, 1, 2):
        for chosen in combinations(pairs, count):
            names = {one: other, other: one}
            for x, y in chosen:
                names |= {x: y, y: x}
            sign, factors = _written(term, names)
            if factors == plain[1]:
                return sign * plain[0]
    return 0


def _written(term: Term, names: Mapping[Index, Index]) -> tuple[int, list[str]]:
    """Sign and factors after a renaming, each tensor with the first of its equal index orders."""
    sign, texts = 1, list[str]()
    for factor in rename_term(term, names).factors:
        if isinstance(factor, Ref):
            one, factor = first_image(factor)
            sign *= one
        texts.append(str(factor))
    return sign, sorted(texts)


def _images(signed: Signed, left: tuple[Index, ...], symmetry: Group) -> _Images | None:
    return _cosets(((sign, position_images(renaming, left)) for sign, renaming in signed), symmetry)


def _cosets(images: Iterable[tuple[int, tuple[int, ...]]], symmetry: Group) -> _Images | None:
    """One representative of each coset with its sign; None if a coset occurs twice."""
    cosets: _Images = {}
    for sign, one in images:
        same = [(tuple(one[k] for k in p.images), sign * p.sign) for p in symmetry]
        first, value = min(same, default=(one, sign))
        if first in cosets:
            return None
        cosets[first] = value
    return cosets


def _operators(left: tuple[Index, ...]) -> Iterator[tuple[str, Signed]]:
    """Operators on these letters, the plain ones first."""
    for first, second in combinations(left, 2):
        if first.space == second.space:
            for word, signed in (("P", True), ("S", False)):
                operator = tuple_operator(((first,), (second,)), signed)
                yield f"{word}({first},{second})", operator
    for group in combinations(left, 3):
        if len({i.space for i in group}) == 1:
            for word, signed in (("P", True), ("S", False)):
                yield (
                    f"{word}({','.join(map(str, group))})",
                    tuple_operator(tuple((i,) for i in group), signed),
                )
                for one in group:
                    rest = tuple(i for i in group if i != one)
                    text = f"{word}({one}/{_together(rest)})"
                    yield text, slash_operator(((one,), rest), signed)
    for rows in (2, 3):
        for firsts in combinations(left, rows):
            yield from _tuples(left, firsts)


def _tuples(left: tuple[Index, ...], firsts: tuple[Index, ...]) -> Iterator[tuple[str, Signed]]:
    """S(ia,jb), P(ia,jb), S(ia,jb,kc): ``firsts`` paired with letters after them."""
    if len({i.space for i in firsts}) > 1:
        return
    others = [i for i in left if i not in firsts and left.index(i) > left.index(firsts[0])]
    for seconds in permutations(others, len(firsts)):
        if len({i.space for i in seconds}) > 1:
            continue
        items = tuple(zip(firsts, seconds, strict=True))
        for word, signed in (("S", False), ("P", True)):
            names = ",".join(_together(item, "({})") for item in items)
            yield f"{word}({names})", tuple_operator(items, signed)


def _together(letters: tuple[Index, ...], several: str = "{}") -> str:
    """The letters as one word; longer names with commas, in the form ``several``."""
    names = [i.name for i in letters]
    return "".join(names) if all(len(n) == 1 for n in names) else several.format(",".join(names))
