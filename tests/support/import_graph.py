"""Imports among the files of a package, those inside functions and for type checkers included.

``python tests/support/import_graph.py`` lists the circles. Names that a package loads by their text
(``__getattr__`` of ``tcgen/__init__.py``) are no imports here, nor is that a module loads the
``__init__`` of its own package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def import_graph(package: Path) -> Graph:
    """For each module the modules of the package that it imports."""
    names = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {name: set(_imported(name, path, names)) - {name} for name, path in names.items()}


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, path: Path, names: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                kept = len(parts) - node.level + (path.stem == "__init__")
                base = ".".join([*parts[:kept], *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield from ([full] if full in names else [base] if base in names else [])


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import each other, directly or by way of others (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


if __name__ == "__main__":
    imports = import_graph(Path(__file__).resolve().parents[2] / "tcgen")
    for circle in circles(imports):
        for module in circle:
            print(module, "->", ", ".join(sorted(imports[module] & set(circle))))
        print()
