"""A CCSD iteration, the ladder of fitted integrals and MP2 on a GPU, beside ``cupy.einsum``.

    python benchmarks/gpu_ccsd.py prepare FOLDER                # here: tcgen, no GPU
    python FOLDER/gpu_ccsd.py run FOLDER [--json F]             # there: NumPy and CuPy alone

``mp2`` reads integrals from memory, so its share of the rate of a copy is what counts; ``mp2_df``
makes them. The integrals of ``ccsd`` are bound: they stay on the GPU between iterations. Rates
count every product of o^2 v^4, o^3 v^3 and o^4 v^2 in the equations of CCSD once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gpu_measure import Arrays, Case, main

Einsum = Callable[..., Any]


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
        planning={"objective": "time", "memory_limit": "8GiB"},
    ),
    Case("mp2", "mp2_closed_shell", ({"o": 50, "v": 300},), mp2, mp2_flops),
    Case(
        "mp2_df",
        "mp2_df",
        ({"o": 30, "v": 200, "x": 600},),
        mp2_df,
        mp2_df_flops,
        planning={"objective": "time", "memory_limit": "8GiB"},
    ),
)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", __file__, CASES))
