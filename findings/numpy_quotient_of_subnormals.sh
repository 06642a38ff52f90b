#!/usr/bin/env bash
# NumPy 2.4.6: a complex number below 5.6e-309 divided by itself is inf + nan i, in complex128 and,
# below 2.9e-39, in complex64. Python's complex numbers and real arrays of NumPy give 1. NumPy
# multiplies by the reciprocal of a part of the divisor, which is infinite for such a number.
# Output seen: "Python (1+0j) real 1.0 complex128 (inf+nanj) complex64 (inf+nanj)". The script fails
# if a quotient of complex arrays is finite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np

small = 1e-309
assert complex(small) / complex(small) == 1 and np.array([small])[0] > 0
print("Python", complex(small) / complex(small), end=" ")
print("real", (np.array([small]) / np.array([small]))[0], end=" ")
for name, number in (("complex128", small), ("complex64", 1e-39)):
    array = np.array([number], name)
    assert array[0] != 0
    quotient = (array / array)[0]
    print(name, quotient, end=" ")
    if np.isfinite(quotient):
        raise SystemExit("NumPy divides subnormal complex numbers")
print()
PYTHON
