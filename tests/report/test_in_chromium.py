"""The page in Chromium: no violation, request or console line, nothing wider than the screen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import chromium
import commands
import pytest
from chromium import Chromium, served, text_of
from written_gold import HOSTILE, random_gold, write_gold

from rdmeta import pipeline, report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no chromium"),
]
needs_axe = pytest.mark.skipif(chromium.AXE is None, reason="there is no axe-core: make axe")
WIDTHS = (360, 900, 1600)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
RUN_AXE = """<script>axe.run().then(r => {
document.body.innerHTML = '<pre id="found"></pre>';
document.getElementById('found').textContent =
  JSON.stringify(r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)]));
})</script>"""
FRAME = """<!doctype html><title>t</title><body style="margin:0">
<iframe src="/page" height="800" style="border:0" id="f"></iframe><p id="found"></p>
<script>f.onload = () => { const d = f.contentDocument.documentElement;
document.getElementById('found').textContent = JSON.stringify(WIDTHS.map(width => {
  f.width = width; return [f.contentWindow.innerWidth, d.scrollWidth] })) }
</script>"""


def of_fleet(count: int, folder: Path) -> report.Report:
    """Returns the report of so many clusters, some with hostile names."""
    clusters = tuple(f"cluster-{each:03d}" for each in range(count))
    few = random_gold(4, clusters[:4], days=2)
    rows = {
        name: [{**row, "cluster_id": each} for each in clusters for row in found[:3]]
        for name, found in few.items()
    }
    names = dict(zip(clusters, HOSTILE, strict=False))
    return report.make(write_gold(folder / "out", rows, names))


def of_random(folder: Path) -> report.Report:
    out = write_gold(folder / "out", random_gold(2), {"one": HOSTILE[3]})
    return report.make(out, since="2026-10-29", compare="2026-10-29")


def of_scenario(name: str) -> Callable[[Path], report.Report]:
    """Returns what makes the report of a scenario."""

    def made(folder: Path) -> report.Report:
        done = commands.run("generate", name, str(folder / "made"), "--begin", "2026-11-02")
        assert done.code == 0, done.err
        plan = pipeline.plan([folder / "made"], folder / "out", in_place=True, gold=True)
        pipeline.run(plan, workers=1)
        return report.make(folder / "out")

    return made


# Chromium takes 20 s for a page of 50 clusters, and a minute for one of 500.
PAGES: list[Any] = [of_random]
PAGES += [
    pytest.param(make, id=name, marks=pytest.mark.nightly)
    for name, make in {
        "of_50": partial(of_fleet, 50),
        "of_500": partial(of_fleet, 500),
        **{name: of_scenario(name) for name in ("bad-friday", "quiet", "before-after", "dirty")},
    }.items()
]


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    made: Callable[[Path], report.Report] = request.param
    return made(tmp_path_factory.mktemp("gold")).html


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Chromium:
    return Chromium(tmp_path_factory.mktemp("chromium"))


def violations(browser: Chromium, page: str, *, dark: bool = False) -> Any:
    assert chromium.AXE is not None
    script = f"<script>{chromium.AXE.read_text(encoding='utf-8')}</script>{RUN_AXE}"
    with served({"/page": POLICY.sub("", page).replace("</body>", f"{script}</body>")}) as (at, _):
        return json.loads(text_of(browser.dom(f"{at}/page", dark=dark), "found"))


def widths_of(browser: Chromium, page: str) -> Any:
    """Returns the widths of a frame, each with that of the page in it."""
    frame = FRAME.replace("WIDTHS", json.dumps(WIDTHS))
    with served({"/page": page, "/frame": frame}) as (at, _):
        return json.loads(text_of(browser.dom(f"{at}/frame"), "found"))


def traces(browser: Chromium, page: str) -> tuple[list[str], list[str]]:
    """Returns what a page asks for besides itself, and its lines on the console."""
    with served({"/page": page}) as (at, asked):
        browser.dom(f"{at}/page")
    return [each for each in asked if each != "/page"], browser.console


def test_it_asks_for_nothing_and_writes_no_line(browser: Chromium, page: str) -> None:
    assert traces(browser, page) == ([], [])


def test_nothing_is_wider_than_the_screen(browser: Chromium, page: str) -> None:
    assert widths_of(browser, page) == [[width, width] for width in WIDTHS]


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_in_light_and_dark(browser: Chromium, page: str, dark: bool) -> None:
    assert violations(browser, page, dark=dark) == []


def test_planted_faults_are_found(browser: Chromium, tmp_path: Path) -> None:
    page = of_random(tmp_path).html
    image = page.replace("</main>", '<img src="/x.png" alt=""></main>')
    assert traces(browser, image)[1]
    assert "/x.png" in traces(browser, POLICY.sub("", image))[0]
    wide = page.replace("</main>", '<p style="width:700px">wide</p></main>')
    assert widths_of(browser, wide)[0][1] > 360
    if chromium.AXE is not None:
        pale = page.replace("--soft: #55555e", "--soft: #ccc").replace('<html lang="en">', "<html>")
        assert {each[0] for each in violations(browser, pale)} >= {
            "color-contrast",
            "html-has-lang",
        }
