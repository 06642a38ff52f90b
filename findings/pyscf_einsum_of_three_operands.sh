#!/usr/bin/env bash
# PySCF 2.14.0: lib.einsum takes the keywords alpha and out. With two operands both are used; with
# three the result is not multiplied by alpha and out stays as it was, without an error.
# Output seen: "two operands: 2 times the product, out is written; three: 1 times, out is not".
# The script fails if three operands are treated as two are, or are refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyscf==2.14.0
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from pyscf import lib

a, b, c = np.random.default_rng(1).random((3, 3, 3))


def times(subscripts, *operands):
    product = operands[0] @ operands[1] @ (operands[2] if operands[2:] else np.eye(3))
    out = np.zeros((3, 3))
    result = lib.einsum(subscripts, *operands, alpha=2, out=out)
    factor = round((result / product).mean())
    assert np.allclose(result, factor * product)
    return factor, bool(np.allclose(out, result))


two, three = times("ij,jk->ik", a, b), times("ij,jk,kl->il", a, b, c)
if (two, three) != ((2, True), (1, False)):
    raise SystemExit(f"factor and whether out is written: {two} of two operands, {three} of three")
print("two operands: 2 times the product, out is written; three: 1 times, out is not")
PYTHON
