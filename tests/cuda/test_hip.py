"""AMD's compiler takes the texts, behind definitions of three functions that HIP 5.2 lacks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.kernel_families import FAMILIES, compiled
from support.marks import slow_where

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(shutil.which("hipcc") is None, reason="no hipcc"),
]
# Products by fma() and copies by loads and stores, as before sm_80. Lanes count from 0 to 31.
DEFINITIONS = """\
#include <hip/hip_runtime.h>
#define __CUDA_ARCH__ 750
template <typename T>
__device__ T __shfl_down_sync(unsigned, T x, int lanes) { return __shfl_down(x, lanes, 32); }
template <typename T> __device__ void __stcs(T *place, T x) { *place = x; }
__device__ inline void __syncwarp() {}
"""
GPUS = ("gfx90a", "gfx1030")  # of 64 and of 32 lanes


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", slow_where(lambda name: name != "tiles", FAMILIES))
def test_the_text_of_a_family(name: str, gpu: str, tmp_path: Path) -> None:
    source = tmp_path / "kernels.hip"
    source.write_text(f"{DEFINITIONS}{compiled(name)[1].text('kernels.cu')}")
    options = (f"--offload-arch={gpu}", "--cuda-device-only", "-std=c++17", "-S")
    command = ["hipcc", *options, "-o", str(tmp_path / "kernels.s"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ".amdhsa_kernel" in tmp_path.joinpath("kernels.s").read_text()
