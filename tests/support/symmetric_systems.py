"""Contractions with symmetric arrays, dense or packed, and their values by the interpreter."""

from __future__ import annotations

from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays

HEAD = "space o\nspace v\nindex i j k l m : o\nindex a b c d e f : v\n"
# Packed arrays without elements do not show the extents: other arrays do.
EXTENTS = "input n_o[o], n_v[v]\noutput z\nz = n_o[i]*n_o[i] + n_v[a]*n_v[a]\n"
PAIRS = "antisymmetric (0,1) (2,3)"
TRIPLES = "antisymmetric (0,1,2) (3,4,5)"
CASES = {
    "ladder": f"input w[v,v,v,v] {PAIRS}{{}}\ninput t[o,o,v,v] {PAIRS}{{}}\n"
    f"output r[o,o,v,v]{{}}\nr[i,j,a,b] = 1/2*t[i,j,e,f]*w[a,b,e,f]",
    "other orders": f"input w[v,v,v,v] {PAIRS}{{}}\ninput t[v,v,o,o] {PAIRS}{{}}\n"
    f"output r[v,v,o,o]{{}}\nr[b,a,i,j] = t[f,e,j,i]*w[e,f,b,a] - w[a,b,e,f]*t[e,f,i,j]",
    "rows alone": "input w[v,v]\ninput t[o,o,v,v] antisymmetric (0,1){half}\n"
    "output r[o,o,v,v]{half}\nr[i,j,a,b] = t[i,j,a,e]*w[b,e]",
    "a symmetric sum": "input w[v,v,o] symmetric (0,1){half}\ninput t[o,v,v] symmetric (1,2)\n"
    "output r\nr[i,j] = t[i,e,f]*w[e,f,j]",
    "a symmetric sum of three": "input w[v,v,v,o] symmetric (0,1,2){three}\n"
    "input t[o,v,v,v] symmetric (1,2,3)\noutput r\nr[i,j] = 1/3*t[i,a,b,c]*w[a,b,c,j]",
    "triples": f"input w[v,v,v,v] {PAIRS}{{}}\ninput t[o,o,o,v,v,v] {TRIPLES}{{triples}}\n"
    "output r[o,o,o,v,v,v]\nr[i,j,k,a,b,c] = 1/2*P(c/ab) w[a,b,e,f]*t[i,j,k,e,f,c]",
    "sums of three": f"input x[o,o,o,v,v,v] {TRIPLES}{{triples}}\n"
    f"input y[v,v,v,o,o,o] {TRIPLES}{{triples}}\n"
    "output r\nr[i,l] = x[i,j,k,a,b,c]*y[a,b,c,l,j,k]",
    "a sum that one factor makes antisymmetric": f"input w[v,v,v,v] {PAIRS}{{}}\n"
    "input t[o,v,o,v] symmetry (0,1)<->(2,3)\noutput r\nr[i,j,a,b] = t[i,e,j,f]*w[a,b,e,f]",
    "a sum that one factor makes symmetric": "input w[v,v,v,o] symmetric (0,1,2){three}\n"
    "input t[o,v,v,v]\noutput r\nr[i,j] = t[i,a,b,c]*w[c,a,b,j]",
    "four": "input x[o,o,o,o,v] antisymmetric (0,1,2,3){four}\ninput y[v,v]\n"
    "output r[o,o,o,o,v]{four}\nr[i,j,k,l,a] = x[i,j,k,l,b]*y[b,a]",
    "a matrix times a vector": "input w[v,v,v,v] symmetric (0,1) (2,3){both}\n"
    "input p[v,v] symmetric (0,1){half}\noutput r[v,v]{half}\nr[a,b] = 2*w[a,b,c,d]*p[c,d]",
    "a vector times a matrix": "input w[v,v,o] antisymmetric (0,1){half}\n"
    "input p[v,v] antisymmetric (0,1){half}\noutput r\nr[i] = w[a,b,i]*p[b,a]",
    "inner products": "input w[o,v,v,v] symmetric (1,2,3){inner}\n"
    "input p[o,v,v,v] symmetric (1,2,3){inner}\noutput r\nr[i] = w[i,a,b,c]*p[i,c,a,b]",
    "an intermediate": f"input w[v,v,v,v] {PAIRS}{{}}\ninput t[o,o,v,v] {PAIRS}{{}}\ninput s[o,v]\n"
    f"output r[o,o,v,v]{{}}\nx[i,j,a,b] = t[i,j,a,b] + P(a,b) s[i,a]*s[j,b]\n"
    "y[i,j,a,b] = 1/2*x[i,j,e,f]*w[a,b,e,f]\nr[i,j,a,b] = y[i,j,e,f]*w[e,f,a,b] + 2*x[i,j,a,b]",
    "several products": "input t[o,o,o,v] antisymmetric (0,1,2){three}\ninput f[v,v]\n"
    "input w[o,o,v,v] antisymmetric (0,1){half}\ninput u[o,v]\noutput r[o,o,o,v]\n"
    "x[i,j,k,a] = t[i,j,k,b]*f[b,a] + w[i,j,a,b]*u[k,b]\n"
    "r[i,j,k,a] = x[i,j,k,a] - x[i,k,j,a] + x[j,k,i,a]",
}
STORED = {
    "": " packed (0,1) (2,3)",
    "half": " packed (0,1)",
    "three": " packed (0,1,2)",
    "triples": " packed (0,1,2) (3,4,5)",
    "four": " packed (0,1,2,3)",
    "both": " packed (0,1) (2,3)",
    "inner": " packed (1,2,3)",
}


# Signs of the packed outputs that are not antisymmetric.
SIGNS = {"a matrix times a vector": "symmetric"}


def written(name: str, *, packed: bool) -> str:
    """The text of a case with its arrays dense or packed."""
    pack = STORED if packed else dict.fromkeys(STORED, "")
    text = CASES[name].replace("{}", pack[""])
    for key, value in pack.items():
        text = text.replace(f"{{{key}}}", value)
    for line in text.splitlines():
        # A packed output is declared symmetric like its inputs.
        if line.startswith("output") and " packed " in line:
            groups = line[line.index(" packed ") + len(" packed ") :]
            text = text.replace(line, f"{line} {SIGNS.get(name, 'antisymmetric')} {groups}")
    return f"{HEAD}{text}\n{EXTENTS}"


def right(text: str, program: Program, extents: dict[str, int], dtype: str) -> None:
    """Compare a program with the interpreter."""
    system = read_spec(text)
    arrays = random_arrays(system, extents, dtype=dtype, seed=3)
    wanted = evaluate_system(system, arrays, extents)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    assert_same_values(program(**arrays), wanted, rtol=tolerance, atol=tolerance)
