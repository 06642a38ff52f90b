#!/usr/bin/env bash
# SymPy 1.14.0: convert_indexed_to_array turns a sum of products of matrix elements into an array
# expression. In sum_j A[i,j] B[j,i] the index i stands in both factors and is not summed (the
# diagonal of a matrix product). The result is one contraction over three axes, sum_x B[x,x] A[x,j]:
# another number, without a word. The same sum with B[i,j] raises an IndexError.
# Output seen: "sum: [19, 50], array expression: [29, 42], with B[i,j]: IndexError".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q sympy==1.14.0
"$folder/venv/bin/python" - <<'PYTHON'
from sympy import Matrix, MatrixSymbol, Sum, symbols
from sympy.tensor.array.expressions import convert_indexed_to_array

i, j = symbols("i j", integer=True)
a, b = MatrixSymbol("A", 2, 2), MatrixSymbol("B", 2, 2)
values = {a: Matrix([[1, 2], [3, 4]]), b: Matrix([[5, 6], [7, 8]])}

term = Sum(a[i, j] * b[j, i], (j, 0, 1))
right = [term.subs(i, n).doit().subs(values).doit() for n in range(2)]
expression = convert_indexed_to_array(term).as_explicit()
got = [expression[n].subs(values).doit() for n in range(2)]
try:
    convert_indexed_to_array(Sum(a[i, j] * b[i, j], (j, 0, 1)))
    other = "no error"
except IndexError:
    other = "IndexError"
print(f"sum: {right}, array expression: {got}, with B[i,j]: {other}")
if (right, got, other) != ([19, 50], [29, 42], "IndexError"):
    raise SystemExit("SymPy no longer does what stands above")
PYTHON
