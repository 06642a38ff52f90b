"""Names of spaces, indices and blocks, as chemists write them."""

from __future__ import annotations

from dataclasses import replace

from ...ir.system import System
from ...ir.tensor import Index, Space, Tensor, distinct
from ...ir.term_rewriting import fresh_index
from .labels import UNLABELLED, Flow, Pattern, has_labels


class SpinSpaces:
    """The spaces and indices of each spin.

    Where ``closed``, both spins have the same ones, with half as many orbitals. Otherwise beta is
    written in upper case, or both get a letter: ``o`` and ``O``, ``O_a`` and ``O_b``.
    """

    def __init__(self, system: System, closed: bool) -> None:
        self._closed = closed
        self._spaces: dict[tuple[Space, str], Space] = {}
        names = {space.name for space in system.spaces}
        spins = "a" if closed else "ab"
        for spin in spins:
            for space in system.spaces:
                self._add(space, spin, names)
        self.spaces = tuple(dict.fromkeys(self._spaces.values()))
        self._indices: dict[tuple[Index, str], Index] = {}
        self._taken = {i.name for i in _indices(system)}

    def space(self, space: Space, spin: str) -> Space:
        """The space of a spin, ``a`` or ``b``; a space without spins is its own."""
        alone = self._closed or not has_labels(space)
        return self._spaces[space, "a" if alone else spin]

    def index(self, index: Index, spin: str) -> Index:
        """The index of one spin."""
        space = self.space(index.space, spin)
        if space.name == index.space.name or spin != "b":
            return Index(index.name, space)
        if (index, spin) not in self._indices:
            new = Index(index.name.upper(), space)
            if new.name in self._taken:
                new = fresh_index(Index(f"{index.name}_b", space), self._taken)
            self._taken.add(new.name)
            self._indices[index, spin] = new
        return self._indices[index, spin]

    def _add(self, space: Space, spin: str, names: set[str]) -> None:
        if not has_labels(space):
            self._spaces[space, "a"] = space
            return
        name = space.name
        if not self._closed:
            upper = name.upper()
            if name.islower() and upper not in names:
                name = upper if spin == "b" else name
            else:
                name = f"{name}_{spin}"
        extent = space.extent
        if extent is not None:
            extent = extent // 2 if spin == "b" else (extent + 1) // 2
        parts = tuple(self._spaces[part, spin] for part in space.parts)
        self._spaces[space, spin] = replace(space, name=name, extent=extent, parts=parts)


def _indices(system: System) -> tuple[Index, ...]:
    held = [i for e in system.equations for i in e.lhs.indices]
    held += [i for e in system.equations for t in e.terms for i in (*t.sums, *t.indices)]
    return distinct(tuple(held))


def block_name(
    tensor: Tensor, pattern: Pattern, axes: tuple[int, ...], spaces: tuple[Space, ...]
) -> str:
    """Name of a block in unrestricted equations.

    A name that ends in the names of its spaces, such as ``v_oovv``, gets those of the block,
    ``spaces``: ``v_oOvV``. Others get the spins: ``t2ab`` where the same spins enter and leave,
    else all. Axis k of the block is axis ``axes[k]`` of the tensor, in whose order ``pattern`` has
    the spins.
    """
    renamed = _with_spaces(tensor, spaces)
    if renamed:
        return renamed
    return _with_letters(tensor.name, _spins(pattern, axes))


def closed_shell_name(
    tensor: Tensor,
    pattern: Pattern,
    axes: tuple[int, ...],
    spaces: tuple[Space, ...],
    flow: Flow | None,
) -> str:
    """Name of a block in closed-shell equations: the tensor's own for its first balanced block.

    That is the block in which the same spins, alpha first, enter and leave. ``v_ovov`` with the
    last two axes exchanged is ``v_ovvo``, that is <ia|bj>.
    """
    in_order = axes == tuple(range(tensor.rank))
    if flow is not None and in_order:
        entering, leaving = (
            [x for x, f in zip(pattern, flow, strict=True) if f == direction]
            for direction in (1, -1)
        )
        alpha = entering.count("a")
        if entering == leaving == sorted(entering) and 0 <= 2 * alpha - len(entering) <= 1:
            return tensor.name
    spins = pattern.replace(UNLABELLED, "")
    return (not in_order and _with_spaces(tensor, spaces)) or f"{tensor.name}_{spins}"


def _with_spaces(tensor: Tensor, spaces: tuple[Space, ...]) -> str | None:
    """The name with the names of other spaces at its end; None if it does not end in its own."""
    own = "".join(space.name for space in tensor.spaces)
    if not own or not tensor.name.endswith(own):
        return None
    return tensor.name.removesuffix(own) + "".join(space.name for space in spaces)


def _spins(pattern: Pattern, axes: tuple[int, ...]) -> str:
    spins = "".join(pattern[k] for k in axes if pattern[k] != UNLABELLED)
    half = len(spins) // 2
    return spins[:half] if spins[:half] == spins[half:] else spins


def _with_letters(name: str, letters: str) -> str:
    if not letters:
        return name
    return f"{name}{letters}" if name[-1].isdigit() else f"{name}_{letters}"
