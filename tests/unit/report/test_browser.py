"""The page of a report in headless Chromium: keys, clicks, sliders, nothing from the network.

The browser is driven through its own protocol on two pipes: one JSON object, one zero byte.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tcgen
from support.marks import slow_where
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.ir.executed import executed_by
from tcgen.ir.iteration_domain import Range, points
from tcgen.options import Options
from tcgen.report import report_html, report_json
from tcgen.report.charts import after_fusion, before_fusion
from tcgen.report.counts import domain_rows, live_bytes
from tcgen.runtime.memory import memory_use

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
SECONDS = 300  # time limit of the browser, on a busy machine


class Browser:
    """One window; ``events`` collects what it reports by itself."""

    def __init__(self, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --remote-debugging-pipe"
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "{CHROMIUM}" {flags} --user-data-dir="{profile}" about:blank '
                f"3<&{theirs_in} 4>&{theirs_out}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.alarm = threading.Timer(SECONDS, self.process.kill)
        self.alarm.start()
        self.reader, self.writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.rest, self.number, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.alarm.cancel()
        self.process.terminate()
        self.process.wait()
        self.reader.close()
        self.writer.close()

    def message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.reader.fileno(), 1 << 20)
            assert more, "chromium has gone"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        asked: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            asked["sessionId"] = self.session
        self.writer.write(json.dumps(asked).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, path: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while all(e.get("method") != "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def run(self, script: str) -> Any:
        """Value of a script in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def click(self, selector: str) -> None:
        """A press of the mouse in the middle of an element."""
        x, y = self.run(
            f"(() => {{const e = document.querySelector({selector!r});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


CASES: dict[str, tuple[str, str, dict[str, int]]] = {
    "allam_figure1": ("linear", "numpy", {}),
    "df_ladder": ("linear", "numpy", {"o": 3, "v": 4, "x": 5}),
    "ccsd_closed_shell": ("linear", "numpy", {"o": 3, "v": 4}),
    "mp2_df": ("memory", "numpy", {"o": 5, "v": 40, "x": 60}),
}


@pytest.fixture(scope="module", params=slow_where(lambda name: name == "ccsd_closed_shell", CASES))
def case(request: pytest.FixtureRequest) -> Compilation:
    objective, target, extents = CASES[request.param]
    options = Options(extents=tuple(sorted(extents.items())), target=target, objective=objective)
    return compile_system(read_system(tcgen.spec_path(request.param)), options)


@pytest.fixture
def page(case: Compilation, browser: Browser, tmp_path: Path) -> Browser:
    path = tmp_path / "report.html"
    path.write_text(case.artifact.text("report.html"))
    browser.open(path)
    return browser


def numbers(page: Browser) -> list[str]:
    found: list[str] = page.run("[...document.querySelectorAll('[data-number]')].map("
                                "e => e.dataset.number + ' ' + e.textContent)")  # fmt: skip
    return sorted(found, key=lambda n: int(n.split()[0]))


def column(page: Browser, section: str, place: int) -> list[str]:
    found: list[str] = page.run(
        f"[...document.querySelectorAll('#{section} tbody tr')]"
        f".map(r => r.cells[{place}].textContent)"
    )
    return found


def dearest_first(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps as the page shows them."""
    return sorted(steps, key=lambda step: -step["executed"])


def choose(page: Browser, extents: dict[str, int]) -> None:
    """Type each extent into its number, as a person does."""
    for space, extent in extents.items():
        page.run(f"(() => {{const e = document.getElementById('number-{space}');"
                 "e.focus(); e.select()})()")  # fmt: skip
        page.call("Input.insertText", text=str(extent))


PEAKS = (
    "[...document.querySelectorAll('[aria-labelledby=h-memory] tr:nth-child(5) [data-number],"
    "#glance div:nth-child(2) [data-number]')].map(e => [e.dataset.number, e.dataset.value])"
)
LABEL = "document.querySelector('[aria-labelledby=h-memory] tr:nth-child(5) th').innerText"


def test_numbers_at_chosen_extents_are_those_of_python(
    case: Compilation, page: Browser, browser: Browser, tmp_path: Path
) -> None:
    """Every number but the peak of a call, also where sums pass 2^53."""
    peak = {number for number, _ in page.run(PEAKS)}
    for scale in (1, 1000):
        extents = {s: n * scale + 7 + k for k, (s, n) in enumerate(case.plan.extents)}
        choose(page, extents)
        changed = [n for n in numbers(page) if n.split()[0] not in peak]
        drawn = page.run("[...document.querySelectorAll('[data-band]')].map("
                         "e => e.getAttribute('d'))")  # fmt: skip
        executed = executed_by(case.module)
        report = report_json(case.plan, case.artifact.manifest, executed, extents)
        steps = column(page, "sequence", 0)
        for place, kind in ((4, "flops"), (5, "executed")):
            shown = dict(zip(steps, column(page, "sequence", place), strict=True))
            assert shown == {f"s{s['id']}": f"{s[kind]:,}" for s in report["steps"]}
        assert column(page, "arrays", 7) == [f"{a['bytes']:,}" for a in report["arrays"]]
        python = tmp_path / "python.html"
        made = report_html(case.system, case.plan, case.artifact.manifest, executed, report)
        python.write_text(made)
        browser.open(python)
        assert [n for n in numbers(browser) if n.split()[0] not in peak] == changed
        assert len(drawn) == browser.run("document.querySelectorAll('[data-band]').length")
        peaks = [
            before_fusion(case.plan.program, "float64").peak(extents),
            after_fusion(case.plan, "float64").peak(extents),
        ]
        assert peaks == [
            int(n)
            for n in browser.run(
                "[...document.querySelectorAll('figcaption [data-value]')]"
                ".map(e => e.dataset.value)"
            )
        ]
        browser.open(tmp_path / "report.html")


@pytest.mark.parametrize("extent", [0, 4, 11, 10**9])
def test_points_of_tiles_and_triangles_are_those_of_python(page: Browser, extent: int) -> None:
    o = ("o",)
    triangle = (Range(o), Range(o, bound=0, past=1), Range(o, bound=1, past=1))
    tiles = (Range(o, step=3), Range(o, step=3, bound=0, past=1), Range(o, base=1, tile=3))
    page.run(f"extents.o = {extent}n")
    for domain in (triangle, tiles, (*tiles, Range(o, bound=2)), (Range(("o", "o"), fixed=-1),)):
        rows = domain_rows(domain)
        shown = page.run(f"domainPoints({json.dumps(rows)}).toString()")
        assert int(shown) == points(domain, {"o": extent})


def test_peak_is_exact_at_the_extents_of_the_page_and_a_labelled_bound_elsewhere(
    case: Compilation, page: Browser
) -> None:
    manifest, own = case.artifact.manifest, case.plan.extent_of
    exact = [memory_use(manifest, own, threads=1).peak] * 3
    for scale in (0, 1, 1000):
        extents = {s: n * scale + 2 + 3 * k for k, (s, n) in enumerate(case.plan.extents)}
        choose(page, extents)
        shown = [int(value) for _, value in page.run(PEAKS)]
        assert shown == [max(poly.value(extents) for poly in live_bytes(manifest))] * 3
        assert shown[0] <= memory_use(manifest, extents, threads=1).peak
        assert "lower bound" in page.run(LABEL)
        page.click("#reset")
        assert [int(value) for _, value in page.run(PEAKS)] == exact
        assert "lower bound" not in page.run(LABEL)


def test_script_draws_what_python_draws(case: Compilation, page: Browser) -> None:
    """The same outlines: where a drawing is redone at its own extents, its box stays."""
    boxes = ("[...document.querySelectorAll('[data-band]')].map(e => {const b = e.getBBox();"
             "return [b.x, b.y, b.width, b.height]}).flat()")  # fmt: skip
    ticks = "[...document.querySelectorAll('.tick')].map(e => e.textContent)"
    before = page.run(boxes), page.run(ticks)
    page.click("#reset")
    assert page.run(boxes) == pytest.approx(before[0], abs=0.2)
    assert page.run(ticks) == before[1]
    page.click("#own")
    lower = page.run(
        "[...document.querySelectorAll('.typeset msub')].map(e => {"
        "const [a, b] = [...e.children].map(c => c.getBoundingClientRect());"
        "return (b.top + b.bottom) - (a.top + a.bottom)})"
    )
    assert all(distance > 0 for distance in lower)
    shown = "document.querySelector('#equations details').open"
    assert page.run(shown) is False
    page.click("#equations summary")
    assert page.run(shown) is True


def test_memory_is_drawn_twice_only_where_fusion_changes_it(
    browser: Browser, tmp_path: Path
) -> None:
    system = read_system(tcgen.spec_path("mp2_df"))
    for objective, drawings in (("none", ["after"]), ("memory", ["before", "after"])):
        options = Options(
            extents=(("o", 3), ("v", 4), ("x", 5)), target="numpy", objective=objective
        )
        path = tmp_path / f"{objective}.html"
        path.write_text(compile_system(system, options).artifact.text("report.html"))
        browser.open(path)
        names = browser.run("[...document.querySelectorAll('.drawing[id]')].map(e => e.id)")
        assert names == drawings
        choose(browser, {"o": 7})
        assert browser.run("document.querySelectorAll('.elsewhere').length") == 1
        assert f"objective {objective}" in browser.run("document.querySelector('header').innerText")


BRIGHT = """(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,SCREENSHOT";
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, image.width, image.height);
  const red = data.filter((_, n) => n % 4 === 0);
  return red.filter((value) => value > 127).length / red.length;
})()"""


def test_screenshots_are_light_and_dark(browser: Browser, tmp_path: Path) -> None:
    """Pixels, not only styles: most of a screenshot is the background."""
    options = Options(extents=(("o", 3), ("v", 4)), target="numpy")
    made = compile_system(read_system(tcgen.spec_path("mp2_closed_shell")), options)
    path, empty = tmp_path / "report.html", tmp_path / "empty.html"
    path.write_text(made.artifact.text("report.html"))
    empty.write_text("<title>none</title>")  # the page itself loads no images
    bright = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.call("Emulation.setEmulatedMedia", features=[feature])
        browser.open(path)
        data = browser.call("Page.captureScreenshot", format="png")["data"]
        browser.open(empty)
        bright.append(browser.run(BRIGHT.replace("SCREENSHOT", data)))
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert bright[0] > 0.75
    assert 0 < bright[1] < 0.25


@pytest.mark.parametrize("width", [360, 900, 1400])
def test_the_page_fits_its_window_and_drawings_can_be_read(
    case: Compilation, page: Browser, width: int
) -> None:
    """A drawing that is wider than the window is scrolled, and its letters stay large enough."""
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=800, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    assert page.run("document.documentElement.scrollWidth") <= width
    letters = page.run(
        "[...document.querySelectorAll('.drawing svg')].map(e => 12 *"
        "e.getBoundingClientRect().width / e.viewBox.baseVal.width)"
    )
    assert letters
    assert min(letters) > 10
    page.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(case: Compilation, page: Browser, scheme: str) -> None:
    """Contrast of text with the page by WCAG 2.1: at least 4.5, also of the quieter text."""
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    colours = page.run(
        "['body', 'p.soft', 'nav a', '.tick', '.letter.on'].map(s => {const e ="
        "document.querySelector(s); return e && (e instanceof SVGElement ? getComputedStyle(e).fill"
        ": getComputedStyle(e).color)}).concat(getComputedStyle(document.body).backgroundColor)"
    )
    *texts, _letter, back = [_luminance(c) for c in colours]
    assert (back > 0.5) == (scheme == "light")
    for text in texts:
        assert (max(text, back) + 0.05) / (min(text, back) + 0.05) >= 4.5
    page.call("Emulation.setEmulatedMedia", features=[])


def _luminance(colour: str | None) -> float:
    channels = [int(n) / 255 for n in (colour or "rgb(0, 0, 0)")[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_page_prints(case: Compilation, page: Browser) -> None:
    """On paper the controls are gone and nothing is cut off to the right."""
    page.call("Emulation.setEmulatedMedia", media="print")
    for hidden in ("nav", "#reset", "input[type=range]", ".choice"):
        assert page.run(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="")
    assert page.call("Page.printToPDF", printBackground=True)["data"].startswith("JVBERi0")
