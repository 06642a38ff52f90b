"""What ptxas makes of a kernel, read from its machine code (SASS), without a device.

Reads cubins with nvdisasm, from the wheel nvidia-cuda-nvdisasm or from a toolkit. It counts
instructions and follows branches; it knows nothing of clocks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.cubin import uses_of

MISSING = "no nvdisasm: pip install nvidia-cuda-nvdisasm"
MEMORY = ("LDGSTS", "LDG", "STG", "LDS", "STS", "LDL", "STL")
_SECTION = re.compile(r"\s*\.section\s+\.text\.(\w+)")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)([^;]*);")
_LABEL = re.compile(r"(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``target``: the number of the instruction to which a branch goes."""

    guard: str
    name: str
    operands: str
    target: int | None

    @property
    def kind(self) -> str:
        """The name without its modifiers: ``LDG`` for ``LDG.E.128``."""
        return self.name.partition(".")[0]

    @property
    def bits(self) -> int:
        """Bits that a thread moves, of an access to memory."""
        sizes = [int(x) for x in self.name.split(".") if x in ("64", "128")]
        return sizes[0] if sizes else 32


@dataclass(frozen=True, slots=True)
class Loop:
    """The instructions from the target of a branch backwards to the branch.

    Attributes:
        code: all of them, guarded paths included.
        product: the instruction that multiplies, as ``DMMA.16x8x8`` or ``DFMA``.
        products: how many of them the loop has.
        path: instructions on the way through the loop that meets most products, copies most to
            shared memory, and is the shortest of those.
    """

    code: tuple[Instruction, ...]
    product: str
    products: int
    path: int

    @property
    def per_product(self) -> float:
        """Instructions that a warp executes for each product if no tile is partial."""
        return self.path / self.products

    @property
    def static_per_product(self) -> float:
        """Instructions of the loop for each product, those of paths for partial tiles included."""
        return len(self.code) / self.products


@dataclass(frozen=True, slots=True)
class Kernel:
    """The machine code of a kernel, and what a thread and a block of it take.

    Attributes:
        registers: of 32 bits, for each thread.
        stack: bytes of local memory for each thread, which is device memory.
        shared: bytes of static shared memory for each block.
    """

    name: str
    code: tuple[Instruction, ...]
    registers: int
    stack: int
    shared: int

    def count(self, prefix: str) -> int:
        """How many instructions begin with that name."""
        return sum(i.name.startswith(prefix) for i in self.code)

    def widths(self, kind: str) -> dict[int, int]:
        """How many instructions of a kind of :data:`MEMORY` move how many bits."""
        return dict(sorted(Counter(i.bits for i in self.code if i.kind == kind).items()))

    def share(self, kind: str, bits: int = 128) -> float:
        """The part of the bytes of a kind that instructions of that width move; 1 of no bytes."""
        widths = self.widths(kind)
        total = sum(width * count for width, count in widths.items())
        return bits * widths.get(bits, 0) / total if total else 1.0

    def main_loop(self) -> Loop | None:
        """The innermost loop with the most products of the widest kind; None without one."""
        return max(
            self._product_loops(), key=lambda loop: (loop.products, -loop.path), default=None
        )

    def outside(self) -> int:
        """How many instructions no innermost loop with products has: tables, first copies, stores.

        A division of 64 bits is a CALL of a function, whose instructions count once.
        """
        return len(self.code) - sum(len(loop.code) for loop in self._product_loops())

    def _product_loops(self) -> list[Loop]:
        for kind in ("DMMA", "HMMA", "DFMA", "FFMA"):
            if found := [loop for loop in loops(self.code, kind) if loop.products]:
                return found
        return []

    def divergent_products(self) -> list[Instruction]:
        """Matrix products where lanes may be apart.

        Lanes part at a branch behind BSSY and meet at its BSYNC, or at a WARPSYNC. A region with a
        barrier of the whole block is entered by all lanes or by none.
        """
        uniform = self._uniform_regions()
        open_, parted, synced, found = set[str](), set[str](), False, []
        targets = {i.target for i in self.code if i.target is not None}
        for number, instruction in enumerate(self.code):
            if number in targets or instruction.kind in ("BRA", "BREAK", "BRX", "JMP", "EXIT"):
                synced = False
                parted |= open_
            barrier = re.search(r"\bB\d+\b", instruction.operands)
            if instruction.kind == "BSSY" and barrier:
                if number not in uniform:
                    open_.add(barrier[0])
            elif instruction.kind == "BSYNC" and barrier:
                open_.discard(barrier[0])
                parted.discard(barrier[0])
            elif instruction.kind == "WARPSYNC":
                synced = True
            elif instruction.kind in ("DMMA", "HMMA") and parted and not synced:
                found.append(instruction)
        return found

    def _uniform_regions(self) -> set[int]:
        """The numbers of the BSSY whose region has a barrier of the block."""
        begun: dict[str, int] = {}
        regions = set[int]()
        for number, instruction in enumerate(self.code):
            barrier = re.search(r"\bB\d+\b", instruction.operands)
            if instruction.kind == "BSSY" and barrier:
                begun[barrier[0]] = number
            elif instruction.kind == "BSYNC" and barrier:
                begun.pop(barrier[0], None)
            elif instruction.kind == "BAR":
                regions.update(begun.values())
        return regions


@cache
def disassembler() -> str | None:
    """Where nvdisasm is: in a wheel, or on the path."""
    for folder in sys.path:
        for found in sorted(Path(folder, "nvidia").glob("*/bin/nvdisasm"), reverse=True):
            return str(found)
    return shutil.which("nvdisasm")


def can_read() -> bool:
    """True if this machine has what reads cubins."""
    return disassembler() is not None


def kernels_of(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin, by name.

    Raises:
        RuntimeError: nvdisasm is missing, or refuses the file.
        ValueError: it is no cubin.
    """
    uses = uses_of(cubin)
    found = disassembler()
    if found is None:
        raise RuntimeError(MISSING)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([found, "-c", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"nvdisasm: {done.stderr}")
    code = instructions(done.stdout)
    return {
        name: Kernel(name, code[name], use.registers, use.stack, use.shared)
        for name, use in uses.items()
    }


def instructions(text: str) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each section of what nvdisasm prints."""
    sections: dict[str, list[tuple[str, str, str]]] = {}
    labels: dict[str, int] = {}
    current: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        if match := _SECTION.match(line):
            current = sections.setdefault(match[1], [])
        elif match := _INSTRUCTION.match(line):
            current.append((match[1] or "", match[2], match[3].strip()))
        elif match := _LABEL.match(line):
            labels[match[1]] = len(current)
    return {
        name: tuple(Instruction(*parts, _target(parts, labels)) for parts in code)
        for name, code in sections.items()
    }


def _target(parts: tuple[str, str, str], labels: dict[str, int]) -> int | None:
    found = _TARGET.search(parts[2]) if parts[1].startswith("BRA") else None
    return labels.get(found[1]) if found else None


def loops(code: tuple[Instruction, ...], kind: str) -> list[Loop]:
    """The innermost loops that have instructions of a kind."""
    ends: dict[int, int] = {}
    for number, instruction in enumerate(code):
        if instruction.target is not None and instruction.target <= number:
            ends[instruction.target] = number
    with_products = {
        start: end
        for start, end in ends.items()
        if any(i.kind == kind for i in code[start : end + 1])
    }
    return [
        _loop(code, start, end, kind)
        for start, end in with_products.items()
        if not any(
            start <= s and e <= end and (s, e) != (start, end) for s, e in with_products.items()
        )
    ]


def _loop(code: tuple[Instruction, ...], start: int, end: int, kind: str) -> Loop:
    products = Counter(i.name for i in code[start : end + 1] if i.kind == kind)
    product = products.most_common(1)[0][0]
    # Ways to an instruction: products and bits copied to shared memory, negated; instructions.
    best: dict[int, tuple[int, int, int]] = {start: (0, 0, 0)}
    for at in range(start, end):
        if at not in best:
            continue
        passed, copied, executed = best[at]
        here = code[at]
        way = (
            passed - (here.kind == kind),
            copied - (here.bits if here.kind == "LDGSTS" else 0),
            executed + 1,
        )
        after = [] if _leaves(here) else [at + 1]
        if here.target is not None and at < here.target <= end:
            after.append(here.target)
        for next_ in after:
            best[next_] = min(best.get(next_, way), way)
    path = best[end][2] + 1 if end in best else len(code[start : end + 1])
    return Loop(code[start : end + 1], product, products.total(), path)


def _leaves(instruction: Instruction) -> bool:
    """True if the next instruction is not executed after this one."""
    always = instruction.guard in ("", "@PT", "@UPT")
    return always and instruction.kind in ("BRA", "EXIT", "RET", "BRX", "JMP")


def table(kernels: Iterable[Kernel]) -> str:
    """Lines for people: a kernel, what it takes, its main loop, its widths."""
    lines = []
    for kernel in kernels:
        lines.append(
            f"{kernel.name}: {kernel.registers} registers, {kernel.shared} bytes shared, "
            f"{kernel.stack} local, {len(kernel.code)} instructions, {kernel.outside()} outside of "
            f"loops with products, {kernel.count('CALL')} calls"
        )
        if loop := kernel.main_loop():
            lines.append(
                f"  main loop: {loop.products} {loop.product}, {loop.path} instructions on its "
                f"path ({loop.per_product:.1f} each), {len(loop.code)} in all "
                f"({loop.static_per_product:.1f} each), "
                f"{sum(i.kind == 'BAR' for i in loop.code)} barriers"
            )
        for kind in MEMORY:
            if widths := kernel.widths(kind):
                counts = ", ".join(f"{count} of {width}" for width, count in widths.items())
                evicted = sum(i.kind == kind and ".EF" in i.name for i in kernel.code)
                streamed = f", {evicted} streaming" if evicted else ""
                lines.append(
                    f"  {kind}: {counts} bits ({kernel.share(kind):.0%} of bytes by 128{streamed})"
                )
        if apart := kernel.divergent_products():
            lines.append(f"  {len(apart)} matrix products where lanes may be apart")
    return "\n".join(lines)
