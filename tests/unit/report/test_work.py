"""The work of compiling with a report grows in proportion to the number of terms."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tcgen.compiler.driver import compile_system
from tcgen.compiler.tracer import Tracer
from tcgen.frontend import read_spec
from tcgen.options import Options


def text(terms: int) -> str:
    """A sum of products of other tensors; every fifth one is an array of its own."""
    lines = []
    for n in range(terms):
        product = f"{n + 1}*sum(i,j,k) a{n % 7}[i,j]*b{n % 5}[j,k]*c{n % 3}[k,i]"
        lines.append(f"w{n} = {product}\ne += w{n}*w{n}" if n % 5 == 0 else f"e += {product}")
    names = [f"{x}{n}[o,o]" for x, count in (("a", 7), ("b", 5), ("c", 3)) for n in range(count)]
    head = f"space o = 4\nindex i j k : o\ninput {', '.join(names)}\noutput e\n"
    return head + "\n".join(lines) + "\n"


def calls(work: Callable[[], object]) -> int:
    """The number of functions of tcgen that are called."""
    count = 0

    def called(frame: object, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def compiled(terms: int, progress: Callable[[str], None] = lambda _: None) -> object:
    options = Options(target="numpy", optimize=False)
    return compile_system(read_spec(text(terms)), options, Tracer(progress))


def test_three_times_the_terms_are_three_times_the_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    compiled(1)  # imports
    small, large = (calls(lambda n=n: compiled(n)) for n in (8, 24))
    assert large < 3.5 * small


def test_progress_names_the_stages(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    seen: list[str] = []
    compiled(2, seen.append)
    assert seen == ["system", "program", "plan", "module", "emit", "report"]
