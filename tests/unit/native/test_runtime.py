"""The runtime in C by itself: it places blocks and numbers iterations as Python does."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tcgen.emit.c.contraction import contraction_abi
from tcgen.hardware import CACHE_LINE_BYTES
from tcgen.native.c_source import RUNTIME
from tcgen.records.arena import GRANTED, Block, Layout, place
from tcgen.records.loops import LoopVar
from tcgen.records.parts import count_iterations, iterations
from tcgen.records.tensors import Space
from tcgen.resources import template_text
from tcgen.runtime.cpu.blas import MAX_THREADS, ROUTINES
from tcgen.runtime.cpu.toolchain import find_compiler
from tcgen.runtime.symmetry import SAMPLES

DRIVER = """
int64_t placed(int count, int64_t alignment, const int64_t *bytes, const int *first,
    const int *last, const int *rank, int64_t *start)
{
    tcr_block block[count + 1];
    for (int n = 0; n < count; ++n) {
        block[n] = (tcr_block){bytes[n], 0, first[n], last[n], rank[n], n};
    }
    const int64_t extent = tcr_place(block, count, alignment);
    for (int n = 0; n < count; ++n) start[n] = block[n].start;
    return tcr_total(extent, alignment);
}

/* Loops over one space each, of the tiles and with the triangles given. */
static tcr_loop loops[8];
static const tcr_space spaces[] = {{1, (const int[]){0}}, {1, (const int[]){1}}};
static tcr_program program = {"x", .bases = 2, .space = spaces, .loop = loops};

int64_t counted(int count, const int *space, const int *tile, const int *below,
    const int64_t *extents)
{
    program.loops = count;
    for (int n = 0; n < count; ++n) loops[n] = (tcr_loop){space[n], tile[n], below[n]};
    return tcr_iterations(&program, extents, 0);
}

void numbered(int64_t number, const int64_t *extents, int64_t *values)
{
    const tcr_call call = {.program = &program, .extents = extents};
    tcr_iteration(&call, number, values);
}
"""


def ints(values: list[int]) -> ctypes.Array[ctypes.c_int]:
    return (ctypes.c_int * len(values))(*values)


def longs(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if find_compiler() is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("runtime")
    shutil.copytree(Path(__file__).parents[3] / "templates/c/runtime", folder / "runtime")
    (folder / "abi.h").write_text(contraction_abi())
    headers = ('"runtime/tcgen.h"', '"abi.h"', *(f'"runtime/{name}"' for name in RUNTIME[:3]))
    includes = "".join(f"#include {header}\n" for header in headers)
    (folder / "driver.c").write_text(f"{includes}{DRIVER}")
    command = [
        *find_compiler(),
        "-std=c11",
        "-shared",
        "-fPIC",
        "driver.c",
        "-o",
        "driver.so",
        "-lm",
    ]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "driver.so"))
    library.placed.restype = library.counted.restype = ctypes.c_int64
    return library


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_where_python_places_them(runtime: ctypes.CDLL, seed: int) -> None:
    draw = random.Random(seed)
    alignment = draw.choice((1, CACHE_LINE_BYTES))
    blocks = []
    for n in range(draw.choice((0, 1, 2, 7, 40))):
        first = draw.randrange(12)
        bytes_ = 8 * draw.choice((0, 1, 3, 8, 100, draw.randrange(500)))
        blocks.append(Block(str(n), bytes_, first, first + draw.randrange(6), draw.randrange(4)))
    start = longs([0] * len(blocks))
    total = runtime.placed(
        len(blocks),
        ctypes.c_int64(alignment),
        longs([b.bytes for b in blocks]),
        *(ints([getattr(b, name) for b in blocks]) for name in ("first", "last", "rank")),
        start,
    )
    offsets = tuple((b.name, n) for b, n in zip(blocks, start, strict=True))
    assert Layout(offsets, total, alignment) == place(tuple(blocks), alignment)


@pytest.mark.parametrize("extents", [(0, 3), (1, 1), (4, 3), (7, 5)])
@pytest.mark.parametrize(
    "loops",
    [
        "o",
        "o/2",
        "o<o",
        "o/2<o/2<o/2",
        "o<o v",
        "v/3 o<o<o v",
    ],
)
def test_iterations_have_the_numbers_of_python(
    runtime: ctypes.CDLL, loops: str, extents: tuple[int, int]
) -> None:
    bases = (Space("o"), Space("v"))
    chain: list[LoopVar] = []
    for mark, name, tile in re.findall(r"(<?)([ov])(?:/(\d))?", loops):
        below = chain[-1].name if mark else None
        space = bases["ov".index(name)]
        chain.append(LoopVar(f"i{len(chain)}", space, int(tile) if tile else None, below))
    known = {b.name: n for b, n in zip(bases, extents, strict=True)}
    given = (
        ints([bases.index(v.space) for v in chain]),
        ints([v.tile or 1 for v in chain]),
        ints([int(v.below is not None) for v in chain]),
    )
    count = runtime.counted(len(chain), *given, longs(list(extents)))
    assert count == count_iterations(chain, known)
    values = longs([0] * len(chain))
    for number, expected in enumerate(iterations(chain, known, 0, count)):
        runtime.numbered(ctypes.c_int64(number), longs(list(extents)), values)
        assert list(values) == list(expected.values())


def test_numbers_are_those_of_python() -> None:
    text = "".join(template_text(f"c/runtime/{name}") for name in RUNTIME)
    found = {name: int(number) for name, number in re.findall(r"(TCR_\w+)(?: =)? +(\d+)\b", text)}
    assert found["TCR_SAMPLES"] == SAMPLES
    assert found["TCR_MOST_THREADS"] == MAX_THREADS
    assert found["TCR_GRANTED"] == GRANTED
    assert found["TCR_ARENA_ALIGNMENT"] == CACHE_LINE_BYTES
    fields = re.search(
        r"void \*(\w+(?:, \*\w+)*);\n\} tcgen_blas", template_text("c/runtime/tcgen.h")
    )
    assert fields is not None
    assert fields[1].replace("*", "").split(", ") == list(ROUTINES)
