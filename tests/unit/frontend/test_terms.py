"""Term lists in JSON: coefficients, permutations, blocks, denominators and what can be wrong."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.messages import mentions, says
from support.paths import DATA
from tcgen.errors import SpecError, TcgenError
from tcgen.frontend import read, read_spec, read_terms
from tcgen.frontend.exact_numbers import exact
from tcgen.frontend.terms import _KEYS, read_symmetry
from tcgen.interp import evaluate_system
from tcgen.ir.system import Permutation, System, Term
from tcgen.ir.tensor import Role, Symmetry

LISTS = sorted([*(DATA / "eqs").glob("*.json"), *(DATA / "equations").glob("*.json")])


def terms(*targets: dict[str, Any], **fields: Any) -> System:
    system = read_terms(json.dumps({"targets": targets, **fields}), "t.json")
    system.verify()
    return system


def target(out: str, *items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"out": out, "terms": list(items), **fields}


def term(coef: Any, *factors: str, **fields: Any) -> dict[str, Any]:
    return {"coef": coef, "factors": list(factors), **fields}


def error(data: Any) -> str:
    with pytest.raises(SpecError) as caught:
        read_terms(data if isinstance(data, str) else json.dumps(data), "t.json")
    return str(caught.value)


@pytest.mark.parametrize("path", LISTS, ids=lambda p: p.stem)
def test_every_list_is_read(path: Path) -> None:
    system = read(path)
    system.verify()
    data = json.loads(path.read_text())
    assert len(system.equations) == len(data["targets"])
    names = set(re.findall(r"\w+", json.dumps([t["terms"] for t in data["targets"]])))
    unread = [name for name in data["tensors"] if name not in names]
    assert len(system.warnings) == bool(unread)
    assert all(says(warning, f"no term reads {' '.join(unread)}") for warning in system.warnings)
    count = sum(len(e.terms) for e in system.equations)
    assert count == sum(len(t["terms"]) for t in data["targets"])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.3333333333333333, Fraction(1, 3)),
        (-1.3333333333333333, Fraction(-4, 3)),
        (0.027777777777777776, Fraction(1, 36)),
        (0.16666666666666669, Fraction(1, 6)),
        (0.1, Fraction(1, 10)),
        (0.123456789012345, Fraction("0.123456789012345")),
        (2, Fraction(2)),
        ("1/4", Fraction(1, 4)),
    ],
)
def test_coefficients_are_exact(value: Any, wanted: Fraction) -> None:
    assert exact(value) == wanted


def test_blocks_are_as_few_as_symmetry_allows() -> None:
    names = [t.name for t in read(DATA / "eqs" / "rccsd_sa.json").inputs]
    blocks = ["v_oooo", "v_ooov", "v_oovv", "v_ovov", "v_ovvv", "v_vvvv", "f_oo", "f_ov", "f_vv"]
    assert names == [*blocks, "t1", "t2"]
    system = terms(
        target("r[i,a]", term(2, "v[a,j,i,j]")), tensors={"v": {"antisym": [[0, 1], [2, 3]]}}
    )
    assert system.pretty() == "r[i,a] = sum(j) -2*v_ovoo[j,a,i,j]\n"
    assert system.inputs[0].family == "v"
    assert system.inputs[0].symmetry == (Symmetry((0, 1, 3, 2), -1),)


def test_targets_that_nothing_reads_are_outputs() -> None:
    system = terms(
        target("r[i]", term(1, "w[i,j]", "x[j]")), target("w[i,j]", term(1, "y[i]", "y[j]"))
    )
    assert [(t.name, t.role) for t in system.tensors[2:]] == [("w", Role.TEMP), ("r", Role.OUTPUT)]


def test_indices_that_are_not_on_the_left_are_summed_once_or_more() -> None:
    system = terms(target("r[i]", term(1, "x[i,j]"), term(1, "x[i,j]", "y[j]", denom=["d[j]"])))
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((2, 2)), "y": rng.random(2), "d": rng.random(2) + 1}
    out = evaluate_system(system, arrays, {"o": 2})
    wanted = arrays["x"].sum(1) + arrays["x"] @ (arrays["y"] / arrays["d"])
    np.testing.assert_allclose(out["r"], wanted, rtol=1e-13)


def test_denominators_are_quotients() -> None:
    text = terms(target("e", term(0.25, "x[i]", "y[a]", denom=["eo[i]", "-ev[a]"]))).pretty()
    assert text == "e = sum(i,a) 1/4*x[i]*y[a]*(1/(eo[i] - ev[a]))\n"


def test_permutations_and_antisymmetrizers() -> None:
    perms = [[1, ["i", "j"]], [-1, ["j", "i"]]]
    listed = terms(target("r[i,j]", term(1, "x[i]", "y[j]", perms=perms)))
    short = terms(target("r[i,j]", term(1, "x[i]", "y[j]"), antisymmetrize=[["i", "j"]]))
    wanted = (Permutation(1, (0, 1)), Permutation(-1, (1, 0)))
    assert listed.equations[0].terms[0].perms == short.equations[0].terms[0].perms == wanted
    three = terms(target("r[i,j,k]", term(1, "x[i,j,k]"), antisymmetrize=[["i", "j", "k"]]))
    assert sum(p.sign for p in three.equations[0].terms[0].perms) == 0


def test_a_target_may_come_in_parts_with_other_letters() -> None:
    parts = (target("r[i,j]", term(1, "x[i,j]")), target("r[j,k]", term(1, "x[j,i]", "x[i,k]")))
    x = np.random.default_rng(0).random((3, 3))
    out = evaluate_system(terms(*parts), {"x": x}, {"o": 3})
    np.testing.assert_allclose(out["r"], x + x @ x)


def test_ranges_that_are_given_win_over_the_convention() -> None:
    system = terms(
        target("e", term(1, "x[W]", "x[W]")), ranges={"x": {"letters": "P Q W (also W1)"}}
    )
    assert [s.name for s in system.spaces] == ["x"]
    assert [s.name for s in terms(target("e", term(1, "x[W]", "x[W]"))).spaces] == ["q"]


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({"sym": "sym"}, [((1, 0), 1)]),
        ({"sym": ["pq=qp"]}, [((1, 0), 1)]),
        ({"sym": "t[i,a]=-t[a,i]"}, [((1, 0), -1)]),
        ({"antisym": [[0, 1]]}, [((1, 0), -1)]),
        ({}, []),
    ],
)
def test_symmetry_of_a_matrix(declared: dict[str, Any], wanted: list[Any]) -> None:
    assert [(s.perm, s.sign) for s in read_symmetry(declared, 2)] == wanted


@pytest.mark.parametrize(
    ("text", "perms"),
    [
        ("8-fold", [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)]),
        ("antisym(0,1) antisym(2,3) swap(01,23)", [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)]),
        ("sym(2,3)", [(0, 1, 3, 2)]),
        ("t2[i,j,a,b]=t2[j,i,b,a]", [(1, 0, 3, 2)]),
        ("pqrs=rqps", [(2, 1, 0, 3)]),
    ],
)
def test_symmetry_of_four_axes(text: str, perms: list[tuple[int, ...]]) -> None:
    assert [s.perm for s in read_symmetry({"sym": text}, 4)] == perms


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "t.json:1:2 JSON"),
        ([], "targets"),
        ({"targets": []}, "targets"),
        ({"targets": [3], "tensors": 1, "ranges": 2}, "tensors is 1 write {"),
        ({"targets": [target("e", term(1, "x"))], "tensors": {"x": 1}}, "tensor x object"),
        ({"targets": [target("e", term(1, "x"))], "ranges": {"o": 1}}, "range o list"),
        ({"targets": [target("e", term(1, "x", denom="d"))]}, "term 1 denom is write ["),
        ({"targets": [{"terms": []}]}, "target out"),
        ({"targets": [{"out": "r[i"}]}, "target terms"),
        ({"targets": [target("r[i")]}, "target name[i,j]"),
        ({"targets": [target("r[i,i]")]}, "indices distinct"),
        ({"targets": [target("r[i]", {"coef": 1})]}, "target r term 1 factors"),
        (
            {"targets": [target("e", {"factors": ["x"]})]},
            "term 1 coefficient None number",
        ),
        ({"targets": [target("e", term("a", "x"))]}, "coefficient 'a' number"),
        ({"targets": [target("e", term(1, "x[i"))]}, "'x[i' name[i,j]"),
        ({"targets": [target("e", term(1, "x[z]"))]}, "index z range"),
        ({"targets": [target("e", term(1, "x[i]", "x[a]"))]}, "x[a] x[o]"),
        (
            {"targets": [target("e", term(1, "x[i]"))], "tensors": {"x": {"axes": ["w"]}}},
            "tensor x axis w range",
        ),
        (
            {"targets": [target("e", term(1, "x"))], "tensors": {"x": {"axes": [], "sym": "odd"}}},
            "symmetry 'odd'",
        ),
        (
            {"targets": [target("e", term(1, "v[i,j]"))], "tensors": {"v": {"sym": "pqr=qpr"}}},
            "symmetry names axes tensor 2",
        ),
        (
            {"targets": [target("e", term(1, "f[i,j]"), term(1, "f[i]"))]},
            "term 2 f indices",
        ),
        (
            {"targets": [target("r[i,j]", term(1, "x[i,j]", perms=[[1, ["i", "k"]]]))]},
            "perms",
        ),
        (
            {"targets": [target("r[i,j]", term(1, "x[i,j]"), antisymmetrize=[["i", "j"]] * 2)]},
            "antisymmetrize share letters",
        ),
        (
            {"targets": [target("r[i]", term(1, "x[i]"), antisymmetrize=[["i", "j"]])]},
            "antisymmetrize ['i', 'j']",
        ),
        (
            {"targets": [target("r[i]", term(1, "u[i]")), target("u[i]", term(1, "r[i]"))]},
            "circular r -> u -> r",
        ),
        (
            {"targets": [target("r[i,a]", term(1, "x[i,a]"), antisymmetrize=[["i", "a"]])]},
            "antisymmetrize ['i', 'a']",
        ),
        (
            {"targets": [target("r[i]", term(1, "x[i]"), antisymmetrize=[["i", "i"]])]},
            "antisymmetrize ['i', 'i']",
        ),
        (
            {"targets": [target("r[i,a]", term(1, "x[i,a]", perms=[[-1, ["a", "i"]]]))]},
            "perms -1",
        ),
        (
            {
                "targets": [target("e", term(1, "x[i,a]"))],
                "tensors": {"x": {"axes": ["o", "v"], "sym": "sym(0,1)"}},
            },
            "tensor x symmetry axes ranges",
        ),
        (
            {
                "targets": [target("e", term(1, "x[i,j]"))],
                "tensors": {"x": {"axes": ["o", "o"], "sym": "sym(0,1) antisym(0,1)"}},
            },
            "tensor x zero",
        ),
        (
            {"targets": [target("e", term(1, "x[i]"))], "ranges": {"o": ["i"], "v": ["a", "i"]}},
            "letter i ranges o v",
        ),
    ],
)
def test_what_is_wrong_names_file_target_and_term(data: Any, message: str) -> None:
    found = error(data)
    assert says(found, message)
    assert found.startswith("t.json:1:")


def test_all_problems_of_a_list_are_reported() -> None:
    found = error({"targets": [target("e", term("a", "x"), term(1, "x[i"))]})
    assert "term 1" in found
    assert "term 2" in found


def test_files_that_cannot_be_read_are_explained(tmp_path: Path) -> None:
    with pytest.raises(TcgenError, match=mentions("no.spec")):
        read(tmp_path / "no.spec")
    for name in ("a.f90", "a"):
        (tmp_path / name).touch()
    with pytest.raises(TcgenError, match=mentions("suffix .f90 .spec")):
        read(tmp_path / "a.f90")
    with pytest.raises(TcgenError, match=mentions("suffix")):
        read(tmp_path / "a")
    (tmp_path / "b.spec").write_bytes(b"space o\n\xff")
    with pytest.raises(TcgenError, match=mentions("UTF-8")):
        read(tmp_path / "b.spec")


def test_a_system_is_named_after_its_file_or_list() -> None:
    text = '{"targets": [{"out": "e", "terms": [{"coef": 1, "factors": ["x"]}]}]}'
    assert read_terms(text, "some-list.json").name == "some_list"
    assert read_spec("input x\noutput e\ne = x", "2nd.spec").name == "_2nd"
    assert read(DATA / "equations" / "mp2_cs_energy.json").name == "mp2_cs_energy"


def read_one(out: str, **fields: Any) -> System:
    return read_terms(json.dumps({"targets": [{"out": out, "terms": [fields]}]}), "t.json")


def test_a_sign_before_a_delta_counts() -> None:
    system = read_one("r[i,j]", coef=1, factors=["-delta[i,j]", "x"])
    assert system.equations[0].terms[0].coeff == -1


def test_permutations_are_counted() -> None:
    """A permutation that is listed twice is added twice."""
    perms = [[1, ["i", "j"]], [-1, ["j", "i"]], [1, ["i", "j"]], [-1, ["j", "i"]]]
    system = read_one("r[i,j]", coef=1, factors=["x[i,j]"], perms=perms)
    (term,) = system.equations[0].terms
    assert (term.coeff, len(term.perms)) == (2, 2)
    thrice = read_one("r[i,j]", coef=1, factors=["x[i,j]"], perms=[perms[0]] * 3)
    assert thrice.equations[0].terms == (Term(Fraction(3), term.factors),)


@pytest.mark.parametrize(
    ("out", "factor", "message"),
    [
        ("r[i,j]", "x[i]", "index j term"),
        ("r[i]", "x[i,]", "'x[i,]' form"),
        ("r[i]", "x[i j]", "'x[i j]' form"),
        ("r[i]", "x[,i]", "'x[,i]' form"),
        ("r[i]", "x\u00e9[i]", "form"),
        ("r[i,]", "x[i]", "r[i,] form"),
        ("v_ov[i,a]", "v[i,a]", "two v_ov"),
    ],
)
def test_references_are_names_and_letters(out: str, factor: str, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(message)):
        read_one(out, coef=1, factors=[factor])


WHOLE: dict[str, Any] = {
    "name": "ccd",
    "note": "n",
    "n_targets": 2,
    "n_terms": 2,
    "ranges": {"o": ["i", "j"], "v": {"letters": "a b", "meaning": "virtual"}},
    "tensors": {
        "t2": {"axes": ["o", "o", "v", "v"], "antisym": [[0, 1]], "constant": True},
        "v": {"sym": "antisym(0,1)", "blocks": "by index ranges", "note": "n"},
    },
    "targets": [
        target("e", term(0.25, "v[i,j,a,b]", "t2[i,j,a,b]", denom=["eo[i]"])),
        target("r[i,j]", term(1, "f[i,j]", perms=[[1, ["i", "j"]], [-1, ["j", "i"]]], note="n")),
    ],
}


def objects(data: Any) -> Iterator[dict[str, Any]]:
    """Objects whose keys are those of the format, not names of tensors or ranges."""
    yield data
    yield from data["tensors"].values()
    yield data["ranges"]["v"]
    for one in data["targets"]:
        yield one
        yield from one["terms"]


def test_each_key_that_is_unknown_or_repeated_is_refused() -> None:
    """A misspelt key was ignored, and with it its permutations or symmetry."""
    read_terms(json.dumps(WHOLE), "t.json")
    for number, found in enumerate(objects(WHOLE)):
        for key in found:
            for other in (key[:-1], key + "s", key.upper(), key.replace("o", "0") + "_"):
                data = copy.deepcopy(WHOLE)
                changed = list(objects(data))[number]
                changed[other] = changed[key]
                assert says(error(data), f"no key '{other}'")
            text = json.dumps(found)
            twice = f"{text[:-1]}, {json.dumps(key)}: null}}"
            assert says(error(json.dumps(WHOLE).replace(text, twice, 1)), f"'{key}' twice")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"antisymmetrise": [["i", "j"]]}, "target r[i,j] 'antisymmetrize'"),
        ({"terms": [term(1, "x[i,j]", perm=[])]}, "target r term 1 'perms'"),
        (
            {"terms": [term(1, "x[i,j]", antisymmetrize=[["i", "j"]])]},
            "term 1 'antisymmetrize' key target",
        ),
        (
            {
                "terms": [term(1, "x[i,j]", perms=[[1, ["i", "j"]]])],
                "antisymmetrize": [["i", "j"]],
            },
            "term 1 perms antisymmetrize",
        ),
        ({"terms": [term(1, "x[i,j]", perms=[[True, ["i", "j"]]])]}, "perms True"),
        ({"terms": [term(1, "x[i,j]", perms={})]}, "perms {}"),
        ({"terms": [term(1, "x[i,j]", denom=0)]}, "denom is 0 write ["),
        ({"terms": [term(1, True, "x[i,j]")]}, "True form"),  # type: ignore[arg-type]
        ({"antisymmetrize": ""}, "antisymmetrize"),
    ],
)
def test_what_would_lose_permutations_is_refused(data: dict[str, Any], message: str) -> None:
    whole = {"out": "r[i,j]", "terms": [term(1, "x[i,j]")], **data}
    assert says(error({"targets": [whole]}), message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tensors": {"x": {"axes": ["o", "o"], "constant": "false"}}}, "x constant 'false'"),
        ({"tensors": {"x": {"axes": ["o", "o"], "antisym": [[True, 0]]}}}, "antisym True"),
        ({"tensors": {"x": {"axes": ["o", "o"], "shape": ["o", "o"]}}}, "x axes shape"),
        ({"tensors": {"x": {"blocks": ["oo"]}}}, "x blocks"),
        ({"tensors": {"x": {"sym": 0}}}, "x sym is 0 write sym(0,1)"),
        ({"tensors": {"x": {"antisym": False}}}, "x antisym is False write [[0, 1]"),
        ({"tensors": {"x": {"axes": 0}}}, "x axes is 0 write"),
        ({"n_terms": True}, "n_terms is True write integer"),
        ({"ranges": {"o": {"letter": "i j"}}}, "range o 'letters'"),
        ({"n_terms": 2}, "n_terms 2 1"),
        ({"n_targets": 0}, "n_targets 0 1"),
    ],
)
def test_headers_and_tensors_are_checked(fields: dict[str, Any], message: str) -> None:
    assert says(error({"targets": [target("r[i,j]", term(1, "x[i,j]"))], **fields}), message)


@pytest.mark.parametrize(
    ("level", "key"),
    [(level, key) for level, keys in _KEYS.items() for key, kind in keys.items() if kind.types],
)
def test_values_of_other_types_are_refused(level: str, key: str) -> None:
    for value in (0, False, 1.5, "", [], {}, None):
        whole: dict[str, Any] = {
            "ranges": {"o": {"letters": "i j"}},
            "tensors": {"x": {}},
            "targets": [target("r[i,j]", term(1, "x[i,j]"))],
        }
        levels = {
            "list": whole,
            "range": whole["ranges"]["o"],
            "tensor": whole["tensors"]["x"],
            "target": whole["targets"][0],
            "term": whole["targets"][0]["terms"][0],
        }
        levels[level][key] = value
        if type(value) not in _KEYS[level][key].types:
            assert key in error(whole) or key == "factors", value


def test_a_long_symmetry_is_refused_at_once() -> None:
    """Work grows with the text: a quadratic reader takes minutes here."""
    for text in (
        "a" * 300_000,
        "[" * 300_000,
        "a=" * 100_000,
        "sym(0,1)" * 30_000 + "q",
        "pq=" + " " * 300_000,
    ):
        with pytest.raises(ValueError, match="symmetry"):
            read_symmetry({"sym": text}, 4)
