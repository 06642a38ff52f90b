"""CUDA texts compile for the devices they are made for, with nothing in local memory."""

from __future__ import annotations

import shutil

import pytest

from support import cuda_compile
from support.cuda_compile import CompileError, KernelUse, compile_by_nvcc, compile_cuda, kernel_uses
from support.cuda_device import Compiling
from support.messages import mentions
from support.paths import CUDA_KERNELS

pytestmark = pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
ARCHITECTURES = (80, 90)
FILES = sorted(path.name for path in CUDA_KERNELS.glob("*.cu") if path.name != "ptx.cu")


def test_the_wheel_is_found_where_the_test_extra_is_installed() -> None:
    library = cuda_compile.nvrtc_library()
    if library is None:
        pytest.skip(cuda_compile.MISSING)
    assert library.name.startswith("libnvrtc.so.")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("file", FILES)
def test_kernels_of_the_emulators_tests_are_cuda(file: str, arch: int) -> None:
    """What is proven by emulation is proven of something that a device would take."""
    code = CUDA_KERNELS.joinpath("ptx.cu").read_text() + CUDA_KERNELS.joinpath(file).read_text()
    uses = compile_cuda(code, arch)
    assert uses
    assert [use for use in uses if use.stack or use.spills] == []


def test_shared_memory_and_registers_are_read() -> None:
    (use,) = compile_cuda(CUDA_KERNELS.joinpath("transpose.cu").read_text(), 90)
    assert use.name == "transpose"
    assert use.shared == 16 * 17 * 8
    assert 0 < use.registers <= 255


SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) crowded(double *x, long long n) {
    double y[40];
#pragma unroll
    for (int i = 0; i < 40; ++i) y[i] = x[i * n];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 40; ++i) x[i * n + 1] = y[i] * y[39 - i];
}
extern "C" __global__ void indexed(double *x, int n) {
    double y[40];
    for (int i = 0; i < 40; ++i) y[i] = x[i];
    for (int i = 0; i < n; ++i) x[i] = y[i * 7 % 40];
}
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_spills_and_local_memory_are_seen(arch: int) -> None:
    crowded, indexed = compile_cuda(SPILLING, arch)
    assert crowded.name == "crowded"
    assert crowded.spills > 0
    assert indexed.name == "indexed"
    assert indexed.stack == 40 * 8
    assert indexed.spills == 0


def test_text_that_does_not_compile() -> None:
    with pytest.raises(CompileError, match=mentions("kernels.cu(1)")):
        compile_cuda('extern "C" __global__ void f(double *x) { x[0] = y; }', 90)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_says_it_in_the_same_words() -> None:
    crowded, indexed = kernel_uses(compile_by_nvcc(SPILLING, 90))
    assert crowded.spills > 0
    assert indexed.stack == 40 * 8
    with pytest.raises(CompileError, match="identifier"):
        compile_by_nvcc("__global__ void f() { y = 1; }", 90)


def test_fragments_of_sm_90_are_refused_for_sm_80() -> None:
    code = CUDA_KERNELS.joinpath("ptx.cu").read_text().replace("#if __CUDA_ARCH__ >= 900", "#if 1")
    code += (
        'extern "C" __global__ void f(double *x) {'
        "double d[4] = {x[0]}, a[2] = {x[1]}, b[1] = {x[2]};"
        "tc_mma_m16n8k4(d, a, b); x[threadIdx.x] = d[0]; }"
    )
    assert compile_cuda(code, 90)
    with pytest.raises(CompileError):
        compile_cuda(code, 80)


def test_words_of_ptxas() -> None:
    log = """\
ptxas info    : Compiling entry function 'spill2' for 'sm_90'
ptxas info    : Function properties for spill2
ptxas         .     784 bytes stack frame, 840 bytes spill stores, 920 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 784 bytes cumulative stack size
ptxas info    : Compiling entry function 'g' for 'sm_90'
ptxas info    : Function properties for g
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 2176 bytes smem, 400 bytes cmem[0]
"""
    assert kernel_uses(log) == (
        KernelUse("g", 14, 0, 0, 2176),
        KernelUse("spill2", 32, 784, 1760, 0),
    )


def test_texts_of_other_tests_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that no device takes fails the test that generates it, if it is in the sample."""
    monkeypatch.setattr(Compiling, "one_in", 1)
    Compiling.take("__global__ void f() {}")
    with pytest.raises(CompileError, match="undefined"):
        Compiling.take("__global__ void f() { y = 1; }")
    texts = [f"__global__ void f{n}() {{}}" for n in range(200)]
    taken: list[str] = []
    monkeypatch.setattr(cuda_compile, "compile_cuda", lambda code, _: taken.append(code))
    monkeypatch.setattr(Compiling, "one_in", 32)
    for text in texts:
        Compiling.take(text)
    assert 0 < len(set(taken)) < 40
