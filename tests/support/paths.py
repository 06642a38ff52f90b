"""Where the checkout keeps what tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"
CUDA_KERNELS = TESTS / "support" / "cuda_emulator" / "kernels"
