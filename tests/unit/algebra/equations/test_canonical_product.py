"""Canonical form of products, merging of like terms, deltas and symmetries of tensors."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from support.messages import mentions
from tcgen.algebra.equations.canonical_product import FREE, atom_of, canonical_product, free_group
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.errors import TcgenError
from tcgen.frontend import read_spec
from tcgen.ir.expr import Call, Const, Delta, Prod, Quot, Sum
from tcgen.ir.system import Apply, Equation, Term
from tcgen.ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor, symmetry_group
from tcgen.ir.term_rewriting import resolve_deltas

O, V = Space("o", kind="occupied"), Space("v", kind="virtual")
P = Space("p", parts=(O, V))
ANTI = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1))
T2 = Tensor("t2", (O, O, V, V), Role.INPUT, symmetry=ANTI)
W = Tensor("w", (O, O, V, V), Role.INPUT, symmetry=ANTI)
T4 = Tensor(
    "t4",
    (O,) * 4 + (V,) * 4,
    Role.INPUT,
    symmetry=tuple(
        Symmetry(tuple(swap.get(k, k) for k in range(8)), -1)
        for swap in ({p: p + 1, p + 1: p} for p in (0, 1, 2, 4, 5, 6))
    ),
)
SPACE_OF = dict.fromkeys("ijklmn", O) | dict.fromkeys("abcdef", V) | dict.fromkeys("pq", P)


def idx(letters: str) -> tuple[Index, ...]:
    return tuple(Index(x, SPACE_OF[x]) for x in letters)


def form(*factors: object, left: str = "", complex_values: bool = False):
    atoms = tuple(atom_of(f, complex_values) for f in factors)
    return canonical_product(atoms, {i: ("left", k) for k, i in enumerate(idx(left))})


def test_names_and_order_of_factors_do_not_matter() -> None:
    one = form(Ref(T2, idx("ikac")), Ref(W, idx("klcd")), left="ilad")
    two = form(Ref(W, idx("mled")), Ref(T2, idx("imae")), left="ilad")
    assert one.key == two.key
    assert one.sign == two.sign


def test_every_image_under_symmetry_has_one_form() -> None:
    one = form(Ref(T2, idx("ikac")), Ref(W, idx("klcd")), left="ilad")
    for first, second in ((s, t) for s in permutations("ik") for t in permutations("kl")):
        other = form(
            Ref(T2, idx("".join(first) + "ac")), Ref(W, idx("".join(second) + "cd")), left="ilad"
        )
        sign = (-1) ** ((first != ("i", "k")) + (second != ("k", "l")))
        assert other.key == one.key
        assert other.sign == sign * one.sign


def test_left_indices_keep_their_places() -> None:
    assert (
        form(Ref(T2, idx("ijab")), left="ijab").key
        != form(Ref(Tensor("s", T2.spaces, Role.INPUT), idx("ijab")), left="ijab").key
    )
    plain = Tensor("s", (O, O), Role.INPUT)
    assert form(Ref(plain, idx("ij")), left="ij").key != form(Ref(plain, idx("ji")), left="ij").key


def test_antisymmetric_tensor_with_a_repeated_index_vanishes() -> None:
    assert form(Ref(T2, idx("iiab")), left="ab").sign == 0
    symmetric = Tensor("s", (O, O), Role.INPUT, symmetry=(Symmetry((1, 0)),))
    assert form(Ref(T2, idx("ijab")), Ref(symmetric, idx("ij")), left="ab").sign == 0


def test_quadruples_with_a_large_group() -> None:
    one = form(Ref(T4, idx("ijklabcd")), Ref(W, idx("klcd")), left="ijab")
    two = form(Ref(W, idx("lkdc")), Ref(T4, idx("kjildcba")), left="ijab")
    assert one.key == two.key
    # t4[k,j,i,l,d,c,b,a] with w[l,k,d,c]: rename k<->l is even in w and t4 alike
    assert one.sign * two.sign in (1, -1)


def test_symmetries_of_a_product_are_found() -> None:
    colours = dict.fromkeys(idx("ijab"), FREE)
    atoms = (
        atom_of(Ref(T2, idx("ijcd")), False),
        atom_of(Ref(Tensor("v", (V,) * 4, Role.INPUT, symmetry=ANTI), idx("abcd")), False),
    )
    found = free_group(canonical_product(atoms, colours), colours)
    assert sorted(sign for _, sign in found) == [-1, -1, 1, 1]


def test_hermitian_counts_only_in_real_programs() -> None:
    h = Tensor("h", (O, O), Role.INPUT, symmetry=(Symmetry((1, 0), 1, conj=True),))
    keys = [form(Ref(h, idx(x)), left="ij").key for x in ("ij", "ji")]
    assert keys[0] == keys[1]
    keys = [form(Ref(h, idx(x)), left="ij", complex_values=True).key for x in ("ij", "ji")]
    assert keys[0] != keys[1]


def test_contradicting_symmetry_is_refused_by_name() -> None:
    h = Tensor(
        "h", (O, O), Role.INPUT, symmetry=(Symmetry((1, 0), 1, conj=True), Symmetry((1, 0), -1))
    )
    assert form(Ref(h, idx("ij")), left="ij", complex_values=True).sign
    with pytest.raises(TcgenError, match=mentions("h zero real")):
        form(Ref(h, idx("ij")), left="ij")


def test_denominator_symmetry_is_seen() -> None:
    e = Tensor("e", (O,), Role.INPUT)

    def denominator(letters: str) -> Apply:
        i, j = (Ref(e, idx(x)) for x in letters)
        return Apply(Quot(Const(Fraction(1)), Sum((i, j))))

    assert form(denominator("ij"), left="ij").key == form(denominator("ji"), left="ij").key
    assert len(atom_of(denominator("ij"), False).group) == 2
    root = Apply(Call("sqrt", Prod((Ref(e, idx("i")), Const(Fraction(2))))))
    assert (
        form(root, left="i").key
        == form(Apply(Call("sqrt", Prod((Const(Fraction(2)), Ref(e, idx("i")))))), left="i").key
    )


def test_like_terms_merge_exactly_and_zeros_go() -> None:
    y = Tensor("y", (O, O, V, V), Role.OUTPUT)
    third = Fraction(1, 3)
    terms = (
        Term(third, (Ref(T2, idx("ijab")),)),
        Term(third, (Ref(T2, idx("jiab")),)),
        Term(Fraction(1, 7), (Ref(W, idx("ijab")),)),
        Term(third, (Ref(W, idx("jiba")),)),
    )
    (only,) = NormalForms(complex_values=False).clean(Equation(Ref(y, idx("ijab")), terms)).terms
    assert only.coeff == Fraction(10, 21)


def test_delta_is_carried_out() -> None:
    x = Tensor("x", (O, V), Role.INPUT)
    term = Term(Fraction(1), (Delta(*idx("ij")), Ref(x, idx("ja"))), idx("j"))
    done = resolve_deltas(term)
    assert done is not None
    assert [str(f) for f in done.factors] == ["x[i,a]"]
    assert done.sums == ()
    assert resolve_deltas(Term(Fraction(1), (Delta(*idx("ia")),), ())) is None
    part = resolve_deltas(
        Term(
            Fraction(1),
            (Delta(*idx("pi")), Ref(Tensor("z", (P,), Role.INPUT), idx("p"))),
            idx("p"),
        )
    )
    assert part is not None
    assert [str(f) for f in part.factors] == ["z[i]"]
    left = Term(Fraction(1), (Delta(*idx("ij")),))
    assert resolve_deltas(left) == left


def test_equations_written_differently_have_one_value() -> None:
    head = "space o\nspace v\nindex i j k l : o\nindex a b c d : v\n"
    head += (
        "input t[o,o,v,v] antisymmetric (0,1) (2,3)\ninput g[o,o,v,v] antisymmetric (0,1) (2,3)\n"
    )
    one = read_spec(head + "output e\ne = g[i,j,a,b]*t[i,j,a,b]\n", "a.spec")
    two = read_spec(head + "output e\ne = -g[k,l,c,d]*t[l,k,c,d]\n", "b.spec")
    forms = NormalForms(complex_values=False)
    values = [forms.vector(s.equations[0]).value() for s in (one, two)]
    assert values[0] == values[1] != {}


def test_factors_without_common_indices_are_labelled_apart() -> None:
    """A power of a sum has factorially many labellings, which are not visited."""
    u = Tensor("u", (O, O), Role.INPUT, symmetry=(Symmetry((1, 0), -1),))
    x = Tensor("x", (O, V), Role.INPUT)
    pairs = [(Index(f"i{n}", O), Index(f"j{n}", O)) for n in range(12)]
    sums = [Ref(Tensor("w", (O, O), Role.INPUT), pair) for pair in pairs]
    i, a = idx("ia")
    forms = [
        canonical_product(
            tuple(atom_of(f, False) for f in (*factors, Ref(x, (i, a)))), {i: FREE, a: FREE}
        )
        for factors in (sums, sums[::-1])
    ]
    assert forms[0].key == forms[1].key
    assert forms[0].exact
    assert set(forms[0].order[:2]) == {i, a}
    fewer = canonical_product(tuple(atom_of(f, False) for f in (*sums[1:], Ref(x, (i, a)))), {})
    assert fewer.key != forms[0].key
    zero = Ref(u, (Index("k", O), Index("k", O)))
    vanishing = canonical_product(tuple(atom_of(f, False) for f in (*sums, zero)), {})
    assert vanishing.sign == 0


def test_what_cannot_be_labelled_exactly_is_still_a_form() -> None:
    u = Tensor("u", (O,), Role.INPUT)
    indices = tuple(Index(f"i{n}", O) for n in range(9))
    form = canonical_product(
        tuple(atom_of(Ref(u, (i,)), False) for i in indices), dict.fromkeys(indices, FREE)
    )
    assert not form.exact
    assert set(form.order) == set(indices)
    assert len(form.ties) == 1


def test_a_symmetry_of_too_many_equal_factors_cannot_be_shown() -> None:
    letters = [f"i{n}" for n in range(9)]
    product = "*".join(f"u[{i}]" for i in letters)
    text = (
        "space o\nindex i : o\ninput u[o]\n"
        f"output r[{','.join('o' * 9)}] symmetric (7,8)\nr[{','.join(letters)}] = {product}\n"
    )
    with pytest.raises(TcgenError, match=mentions("symmetry r cannot shown equal factors drop")):
        normalised(read_spec(text))


@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric"])
def test_a_group_of_too_many_permutations_is_refused(kind: str) -> None:
    axes = ",".join(map(str, range(12)))
    text = f"space o\nindex i : o\ninput u[{','.join('o' * 12)}] {kind} ({axes})\noutput e\ne = 1\n"
    with pytest.raises(TcgenError, match=mentions("u 14,400 permutations fewer axes")):
        read_spec(text)
    assert len(symmetry_group(T4)) == 576
