"""Programs of quantum chemistry on a GPU, and their equations by ``cupy.einsum``.

CCSD, (T) and MP2, whose integrals are in memory or fitted, and CCD over spin orbitals, whose arrays
are antisymmetric. The integrals of ``ccsd`` and ``ccd_spin_orbital`` are bound: they stay on the
GPU between iterations. Rates count each product of the equations once, of antisymmetric results and
sums their distinct elements: of (T) each triple i >= j >= k (closed shell), and each i < j < k and
a < b (spin orbitals). MP2 from integrals in memory is limited by the rate of a copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import gpu_measure
from gpu_measure import Arrays, Case, table

__all__ = ["TOLERANCE", "measure", "names", "prepare", "table"]
# Largest difference relative to the largest value.
TOLERANCE = 1e-10
EXTENTS = "programs.json"
Einsum = Callable[..., Any]
PLANNING = {"objective": "time", "memory_limit": "8GiB"}


def pair_gaps(x: Arrays) -> Any:
    """Denominators over i, j, a, b."""
    e_o, e_v = x["e_o"], x["e_v"]
    return e_o[:, None, None, None] + e_o[:, None, None] - e_v[:, None] - e_v


def triangle(n: int) -> Any:
    """Where a packed pair holds each element (p, q)."""
    import cupy

    p = cupy.arange(n)
    high, low = cupy.maximum(p[:, None], p), cupy.minimum(p[:, None], p)
    return high * (high + 1) // 2 + low


def ladder(x: Arrays, tau: Any, einsum: Einsum) -> Any:
    """Wabcd[a,b,c,d]*tau[i,j,c,d], with W for one a after the other."""
    t1, ovvv, where = x["t1"], x["v_ovvv"], triangle(x["e_v"].size)
    result = tau * 0
    for a in range(x["e_v"].size):
        w = x["v_vvvv"][where[a]][:, where].transpose(1, 0, 2)  # [b, c, d]
        w = w - einsum("kdc,kb->bcd", ovvv[:, :, a], t1) - einsum("kcbd,k->bcd", ovvv, t1[:, a])
        result[:, :, a] = einsum("bcd,ijcd->ijb", w, tau)
    return result


def ccsd(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """Residuals and energy of closed-shell CCSD, equation by equation of the spec."""
    t1, t2, f_ov = x["t1"], x["t2"], x["f_ov"]
    oovv, ovoo, ovov, ovvv = (x[f"v_{n}"] for n in ("oovv", "ovoo", "ovov", "ovvv"))
    singles = einsum("ia,jb->ijab", t1, t1)
    tau, half = t2 + singles, t2 / 2 + singles
    both = 2 * ovov - einsum("ibja->iajb", ovov)
    both_ooo = 2 * ovoo - einsum("kcli->lcki", ovoo)
    both_vvv = 2 * ovvv - einsum("kcad->kdac", ovvv)
    energy = 2 * (f_ov * t1).sum() + einsum("iajb,ijab->", both, tau)
    fki = x["f_oo"] + einsum("kcld,ilcd->ki", both, tau)
    fac = x["f_vv"] - einsum("kcld,klad->ac", both, tau)
    fkc = f_ov + einsum("kcld,ld->kc", both, t1)
    lki = fki + einsum("kc,ic->ki", f_ov, t1) + einsum("lcki,lc->ki", both_ooo, t1)
    lac = fac - einsum("kc,ka->ac", f_ov, t1) + einsum("kdac,kd->ac", both_vvv, t1)
    wklij = einsum("kilj->klij", x["v_oooo"]) + einsum("lcki,jc->klij", ovoo, t1)
    wklij = wklij + einsum("kclj,ic->klij", ovoo, t1) + einsum("kcld,ijcd->klij", ovov, tau)
    wakic = einsum("kcia->akic", ovov) + einsum("kcad,id->akic", ovvv, t1)
    wakic = wakic - einsum("kcli,la->akic", ovoo, t1) - einsum("ldkc,ilda->akic", ovov, half)
    wakic = wakic + einsum("ldkc,ilad->akic", both, t2) / 2
    wakci = einsum("kiac->akci", oovv) + einsum("kdac,id->akci", ovvv, t1)
    wakci = wakci - einsum("lcki,la->akci", ovoo, t1) - einsum("lckd,ilda->akci", ovov, half)
    x1 = einsum("iabc->abic", ovvv) - einsum("kibc,ka->abic", oovv, t1)
    x2 = einsum("iajk->akij", ovoo) + einsum("kcia,jc->akij", ovov, t1)
    r1 = f_ov - 2 * einsum("ki,ka->ia", einsum("kc,ic->ki", f_ov, t1), t1)
    r1 = r1 + einsum("ac,ic->ia", fac, t1) - einsum("ki,ka->ia", fki, t1)
    r1 = r1 + einsum("kc,kica->ia", fkc, 2 * t2 - einsum("ikca->kica", t2))
    r1 = r1 + einsum("ki,ka->ia", einsum("kc,ic->ki", fkc, t1), t1)
    r1 = r1 + 2 * einsum("kcia,kc->ia", ovov, t1) - einsum("kiac,kc->ia", oovv, t1)
    r1 = r1 + einsum("kdac,ikcd->ia", both_vvv, tau) - einsum("lcki,klac->ia", both_ooo, tau)
    one = einsum("abic,jc->ijab", x1, t1) - einsum("akij,kb->ijab", x2, t1)
    one = one + einsum("ac,ijcb->ijab", lac, t2) - einsum("ki,kjab->ijab", lki, t2)
    one = one + 2 * einsum("akic,kjcb->ijab", wakic, t2) - einsum("akci,kjcb->ijab", wakci, t2)
    one = one - einsum("akic,kjbc->ijab", wakic, t2) - einsum("bkci,kjac->ijab", wakci, t2)
    r2 = einsum("iajb->ijab", ovov) + einsum("klij,klab->ijab", wklij, tau)
    r2 = r2 + ladder(x, tau, einsum) + one + einsum("jiba->ijab", one)
    return {"e": energy, "r1": r1, "r2": r2, "t2_new": t2 + r2 / pair_gaps(x)}


def ccsd_flops(n: dict[str, int]) -> float:
    """The ladder, eight products of o^3 v^3, and two of o^4 v^2."""
    o, v = n["o"], n["v"]
    return 2 * o**2 * v**4 + 16 * o**3 * v**3 + 4 * o**4 * v**2


def df_ladder(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The ladder, with integrals for one a after the other."""
    b_vv, tau = x["b_vv"], x["tau"]
    result = tau * 0
    for a in range(b_vv.shape[1]):
        result[:, :, a] = einsum("ebf,ijef->ijb", einsum("Pe,Pbf->ebf", b_vv[:, a], b_vv), tau)
    return {"r2": result}


def df_ladder_flops(n: dict[str, int]) -> float:
    """Integrals and ladder."""
    o, v, x = n["o"], n["v"], n["x"]
    return 2 * x * v**4 + 2 * o**2 * v**4


def mp2(x: Arrays, _: Einsum) -> dict[str, Any]:
    """The energy for one i after the other."""
    e_o, e_v, energy = x["e_o"], x["e_v"], 0.0
    for g, e_i in zip(x["g"], e_o, strict=True):  # g[a,j,b]
        gaps = e_i + e_o[:, None] - e_v[:, None, None] - e_v
        energy = energy + ((2 * g - g.transpose(2, 1, 0)) * g / gaps).sum()
    return {"e": energy}


def mp2_flops(n: dict[str, int]) -> float:
    """Nine operations for each integral."""
    return 9 * (n["o"] * n["v"]) ** 2


def mp2_df(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The integrals whole, then the energy."""
    b_ov = x["b_ov"]
    return mp2({**x, "g": einsum("Pia,Pjb->iajb", b_ov, b_ov)}, einsum)


def mp2_df_flops(n: dict[str, int]) -> float:
    """The integrals of i <= j."""
    o, v, x = n["o"], n["v"], n["x"]
    return x * o * (o + 1) * v**2


def gaps(x: Arrays, i: int, j: int, k: int) -> Any:
    """Denominators over a, b, c."""
    e_o, e_v = x["e_o"], x["e_v"]
    return e_o[i] + e_o[j] + e_o[k] - e_v[:, None, None] - e_v[:, None] - e_v


def triples(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The energy over spatial orbitals."""

    def of_triple(*ijk: int) -> Any:
        w: Any = 0.0
        y: Any = 0.0
        for p, q, r in permutations(range(3)):
            a, b, c = ("abc"[n] for n in (p, q, r))
            i, j, k = ijk[p], ijk[q], ijk[r]
            w = w + einsum(f"{a}{b}f,{c}f->abc", x["v_ovvv"][i], x["t2"][k, j])
            w = w - einsum(f"{a}m,m{b}{c}->abc", x["v_ovoo"][i, :, j], x["t2"][:, k])
            y = y + einsum(f"{a}{b},{c}->abc", x["v_ovov"][i, :, j], x["t1"][k])
            y = y + einsum(f"{a}{b},{c}->abc", x["t2"][i, j], x["f_ov"][k])
        y = w + 0.5 * y
        left = 4 * w + w.transpose(2, 0, 1) + w.transpose(1, 2, 0)
        turned = y.transpose(2, 1, 0) + y.transpose(0, 2, 1) + y.transpose(1, 0, 2)
        return (left / gaps(x, *ijk) * (y - turned / 3)).sum()

    occupied = range(x["e_o"].size)
    triples = ((i, j, k) for i in occupied for j in range(i + 1) for k in range(j + 1))
    orders = {1: 1, 2: 3, 3: 6}  # by how many of them differ
    return {"e_t": sum(orders[len(set(ijk))] * of_triple(*ijk) for ijk in triples) / 3}


def triples_spin_orbital(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The energy over spin orbitals."""

    def of_triple(i: int, j: int, k: int) -> Any:
        w: Any = 0.0
        y: Any = 0.0
        for sign, p, q, r in ((1, i, j, k), (-1, j, i, k), (-1, k, j, i)):
            w = w - sign * einsum("ae,ebc->abc", x["t2"][q, r], x["v_ovvv"][p])
            w = w - sign * einsum("mbc,ma->abc", x["t2"][p], x["v_ooov"][q, r])
            y = y + sign * einsum("a,bc->abc", x["t1"][p], x["v_oovv"][q, r])
            y = y + sign * einsum("a,bc->abc", x["f_ov"][p], x["t2"][q, r])
        w, y = (t - t.transpose(1, 0, 2) - t.transpose(2, 1, 0) for t in (w, y))
        return (w * (w + y) / gaps(x, i, j, k)).sum()

    return {"e_t": sum(of_triple(*ijk) for ijk in combinations(range(x["e_o"].size), 3)) / 6}


def triples_flops(n: dict[str, int]) -> float:
    """Twelve products for each triple."""
    o, v = n["o"], n["v"]
    return 12 * v**3 * (v + o) * o * (o + 1) * (o + 2) / 6


def triples_spin_flops(n: dict[str, int]) -> float:
    """Three products of each kind over a < b for each triple."""
    o, v = n["o"], n["v"]
    return 3 * v * v * (v - 1) * (v + o) * o * (o - 1) * (o - 2) / 6


def ccd(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """Residual and energy over spin orbitals."""
    t2, oovv = x["t2"], x["v_oovv"]
    pairs = einsum("ijcd,klcd->ijkl", t2, oovv) / 2 + x["v_oooo"]
    rings = einsum("klcd,jlbd->kcjb", oovv, t2)
    virtual = x["f_vv"] - einsum("klbd,klcd->bc", t2, oovv) / 2
    occupied = x["f_oo"] + einsum("jlcd,klcd->jk", t2, oovv) / 2
    over_a = einsum("bc,ijac->ijab", virtual, t2) + einsum("ikac,kcjb->ijab", t2, rings)
    over_i = -einsum("jk,ikab->ijab", occupied, t2)
    crossed = einsum("ikac,jckb->ijab", t2, x["v_ovov"])
    over_i = over_i - crossed + crossed.transpose(0, 1, 3, 2)
    r2 = oovv + einsum("abcd,ijcd->ijab", x["v_vvvv"], t2) / 2
    r2 = r2 + einsum("ijkl,klab->ijab", pairs, t2) / 2
    r2 = r2 + over_a - over_a.transpose(0, 1, 3, 2) + over_i - over_i.transpose(1, 0, 2, 3)
    return {"e": einsum("ijab,ijab->", oovv, t2) / 4, "r2": r2}


def ccd_flops(n: dict[str, int]) -> float:
    """The ladder over pairs of each kind, two products of o^3 v^3, and two of pairs of occupied."""
    o, v = n["o"], n["v"]
    pairs_o, pairs_v = o * (o - 1) / 2, v * (v - 1) / 2
    return 2 * pairs_o * pairs_v**2 + 4 * (o * v) ** 3 + 4 * pairs_o**2 * pairs_v


CASES = (
    Case(
        "ccsd",
        "ccsd_closed_shell",
        ({"o": 30, "v": 200},),
        ccsd,
        ccsd_flops,
        bound=(
            *("f_oo", "f_ov", "f_vv", "v_oooo", "v_oovv", "v_ovoo", "v_ovov", "v_ovvv"),
            *("v_vvvv", "e_o", "e_v"),
        ),
    ),
    Case(
        "df_ladder",
        "df_ladder",
        ({"o": 30, "v": 300, "x": 900},),
        df_ladder,
        df_ladder_flops,
        planning=PLANNING,
    ),
    Case("mp2", "mp2_closed_shell", ({"o": 50, "v": 300},), mp2, mp2_flops),
    Case(
        "mp2_df",
        "mp2_df",
        ({"o": 30, "v": 200, "x": 600},),
        mp2_df,
        mp2_df_flops,
        planning=PLANNING,
    ),
    Case(
        "ccd_spin_orbital",
        "ccd_spin_orbital",
        ({"o": 24, "v": 120},),
        ccd,
        ccd_flops,
        bound=("f_oo", "f_vv", "v_oooo", "v_oovv", "v_ovov", "v_vvvv"),
    ),
    Case(
        "t_closed_shell",
        "t_closed_shell",
        ({"o": 30, "v": 200}, {"o": 20, "v": 100}),
        triples,
        triples_flops,
        planning=PLANNING,
    ),
    Case(
        "t_spin_orbital",
        "t_spin_orbital",
        ({"o": 20, "v": 100}, {"o": 12, "v": 60}),
        triples_spin_orbital,
        triples_spin_flops,
        planning=PLANNING,
    ),
)


def prepare(folder: Path) -> None:
    """Save the compiled programs and their extents."""
    (folder / EXTENTS).write_text(json.dumps(gpu_measure.prepare(folder, CASES), indent=1) + "\n")


def names(folder: Path) -> list[str]:
    """The programs that were prepared."""
    return list(json.loads((folder / EXTENTS).read_text()))


def measure(folder: Path, name: str, repeat: int) -> dict[str, Any]:
    """One program: the largest relative difference, and the median seconds."""
    (case,) = (case for case in CASES if case.name == name)
    extents = json.loads((folder / EXTENTS).read_text())[name]
    return gpu_measure.measure(folder, case, extents, repeat)
