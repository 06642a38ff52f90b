"""Gradings: groups as products of cyclic groups, and the elements of orbitals."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

import tcgen
from tcgen import ArgumentError, Grading


@pytest.mark.parametrize("moduli", [(), (1,), (2,), (2, 2, 2), (3,), (4,), (2, 3), (3, 1, 2)])
def test_tables_are_those_of_an_abelian_group(moduli: tuple[int, ...]) -> None:
    g = Grading(moduli, {})
    h = len(g)
    assert h == int(np.prod(moduli)) == len(g.elements) == len(g.names)
    for a, b in product(range(h), repeat=2):
        wanted = tuple(
            (x + y) % m for x, y, m in zip(g.elements[a], g.elements[b], moduli, strict=True)
        )
        assert g.elements[g.addition[a, b]] == wanted
    assert all(g.addition[a, g.negation[a]] == 0 for a in range(h))
    assert g.own_inverse == all(g.negation[a] == a for a in range(h))


@pytest.mark.parametrize("group", ["C1", "Cs", "Ci", "C2", "C2v", "C2h", "D2", "D2h"])
def test_products_of_irreps_are_the_xor_of_their_numbers(group: str) -> None:
    g = Grading.from_orbsym(group)
    numbers = np.arange(len(g))
    assert np.array_equal(g.addition, numbers[:, None] ^ numbers)
    assert g.names[0] in ("A", "Ag", "A1", "A'")


def test_irreps_of_d2h_are_in_the_order_of_pyscf_and_linear_molecules_count_modulo_10() -> None:
    names = ["Ag", "B1g", "B2g", "B3g", "Au", "B1u", "B2u", "B3u"]
    assert Grading.from_orbsym("D2h").names == tuple(names)
    g = Grading.from_orbsym("Dooh", o=[0, 5, 6, 7], v=[14, 2, 15, 10])
    assert g == Grading.from_orbsym("D2h", o=[0, 5, 6, 7], v=[4, 2, 5, 0])
    assert g.name == "D2h"
    # p orbitals of an atom are 106, 105 and 107 in SO3
    assert Grading.from_orbsym("SO3", p=[106, 105, 107]).orbitals("p") == (6, 5, 7)


def test_sizes_orders_and_starts() -> None:
    g = Grading((2, 2), {"o": [3, 0, 3, 1], "v": []})
    assert g["o"] == (1, 1, 0, 2)
    assert g["v"] == (0, 0, 0, 0)
    assert g.orbitals("o") == (3, 0, 3, 1)
    assert g.order("o").tolist() == [1, 3, 0, 2]
    assert g.starts("o") == (0, 1, 2, 2, 4)
    assert g.spaces == ("o", "v")
    assert "o" in g
    assert "x" not in g


def test_k_points_are_sorted_with_the_last_axis_fastest() -> None:
    g = Grading.from_kmesh((2, 1, 3), o=[1, 1, 0, 2, 1, 1], v=(2,) * 6)
    assert g["o"] == (1, 1, 0, 2, 1, 1)
    assert g.elements[4] == (1, 0, 1)
    assert g.addition[4, 5] == g.element((0, 0, 0))
    assert not g.own_inverse


def test_spins_and_products_with_point_groups() -> None:
    spin = Grading.spin(o=[0, 1, 0], v=np.array([1, 0]))
    assert spin.names[1] == "+1/2"
    assert spin.names[-1] == "-1/2"
    assert spin["o"] == (0, 2, 0, 0, 0, 0, 0, 0, 1)
    both = spin * Grading.from_orbsym("C2v", o=[0, 0, 3], v=[1, 2])
    assert len(both) == 36
    assert both.orbitals("o") == (spin.element("+1/2") * 4, 8 * 4, 4 + 3)
    assert both.element("-1/2|B2") == 35
    assert both.moduli == (9, 2, 2)


def test_a_grading_is_a_value() -> None:
    one, other = (Grading((2,), {"o": [0, 1]}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Grading((2,), {"o": [1, 0]})
    assert one != Grading((2,), {"o": [0, 1]}, ["+", "-"])
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.moduli = (3,)  # type: ignore[misc]
    assert repr(one) == "<Grading Z2: o = 1+1>"
    assert repr(Grading.from_orbsym("Cs")) == "<Grading Cs (A' A\")>"
    assert tcgen.Grading is Grading


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: Grading((0,), {}), "(0,) at least 1"),
        (lambda: Grading((2.0,), {}), "2.0 integer"),  # type: ignore[list-item]
        (lambda: Grading((100, 100), {}), "10,000 4,096 smaller"),
        (lambda: Grading((2,), {"o": [0, 2]}), "orbital 1 o Z2 2 0, 1"),
        (lambda: Grading((2,), {"o": [True]}), "orbital 0 o integer"),
        (lambda: Grading((2,), {"o": 3}), "o=3 list"),  # type: ignore[dict-item]
        (lambda: Grading((2,), {1: [0]}), "1 name of a space"),  # type: ignore[dict-item]
        (lambda: Grading((2,), {}, ["a"]), "names 2 different"),
        (lambda: Grading.from_orbsym("Td", o=[0]), "Td D2h abelian subgroup"),
        (lambda: Grading.from_orbsym("C2v", o=[0, 4]), "orbital 1 o C2v 4 A1, A2, B1, B2"),
        (lambda: Grading.from_kmesh((1, 2), o=[1, 2, 3]), "o 2 numbers 1 x 2"),
        (lambda: Grading.from_kmesh((1, 2), o=[1, -2]), "o 2 numbers"),
        (lambda: Grading.spin(o=[0, 2]), "o 0 for alpha 1 for beta"),
        (lambda: Grading.spin(order=4, o=[0]), "order=4 odd"),
        (lambda: Grading((2,), {"o": [0]}) * Grading((2,), {"o": [0, 1]}), "1 and 2 orbitals o"),
        (lambda: Grading((2,), {"o": [0]}) * Grading((2,), {}), "1 and no orbitals o"),
        (lambda: Grading((2,), {"o": [0]})["v"], "v graded o irreps"),
        (lambda: Grading.from_orbsym("D2h").element("B4u"), "D2h 'B4u' Ag, B1g"),
        (lambda: Grading((2, 2), {}).element((1,)), "(1,) 0,0, 0,1"),
    ],
)
def test_errors_name_the_space_the_orbital_and_the_elements(make: object, facts: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()  # type: ignore[operator]
    for fact in facts.split(" "):
        assert fact in str(caught.value)
