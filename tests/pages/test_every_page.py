"""Every page at two widths and in both schemes: axe, contrast, overflow, weight, complaints.

A complaint of the browser, such as an error in its console, fails a test (tests/conftest.py).
"""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGES = ("curves", "run", "episodes", "reader", "compare", "workflow", "blocks", "bench",
         "bench overview", "crossplay", "evaluation", "leaderboard", "transcripts", "report",
         "docs")  # fmt: skip
BY_A_THEME = {"docs"}  # smaller faults of the theme are its own
SERIOUS = {"serious", "critical"}
TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0
MOST_BYTES = 300_000
AXE_OPTIONS = {
    "resultTypes": ["violations"],
    "preload": False,
    "rules": {"target-size": {"enabled": True}},
}
CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf-8")
STICKING_OUT = """[...document.querySelectorAll(
    ".agent, .writes, .reads, .tile, .chart, .episode, .run, .near li, .judge, .card")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1
        && getComputedStyle(box).overflowX === "visible")
    .map((box) => `${box.className}: ${box.scrollWidth} in ${box.clientWidth}`)"""
LOADED = """["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
    .map((entry) => entry.encodedBodySize)"""


@pytest.fixture(scope="module")
def axe():
    package = pytest.importorskip(
        "axe_playwright_python", reason="axe is not installed: pip install axe-playwright-python"
    )
    return Path(package.__file__).with_name("axe.min.js").read_text("utf-8")


@pytest.fixture(params=PAGES)
def name(request):
    return request.param


@pytest.fixture(params=[390, 1440])
def width(request):
    return request.param


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture
def page(addresses, open_page, name, width, scheme):
    size = {"width": width, "height": 900}
    opened = open_page(viewport=size, color_scheme=scheme, has_touch=width == 390)
    assert opened.goto(addresses[name]).status == 200
    opened.wait_for_load_state()
    return opened


def test_a_page_is_accessible_legible_and_fits_into_its_window(page, axe, name):
    assert page.locator("h1").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(STICKING_OUT) == []
    drawn = page.evaluate(CONTRAST)
    assert drawn["texts"]
    assert [one for one in drawn["texts"] if one["contrast"] < TEXT_CONTRAST] == []
    assert [one for one in drawn["lines"] if one["contrast"] < LINE_CONTRAST] == []
    page.evaluate(axe)
    report = page.evaluate("(options) => axe.run(document, options)", AXE_OPTIONS)
    found = {
        one["id"]: [(node["target"], node["html"]) for node in one["nodes"]]
        for one in report["violations"]
        if one["impact"] in SERIOUS or name not in BY_A_THEME
    }
    assert found == {}


@pytest.mark.parametrize("width", [1440], indirect=True)
@pytest.mark.parametrize("scheme", ["light"], indirect=True)
def test_the_first_load_of_a_page_is_light(page):
    assert 0 < sum(page.evaluate(LOADED)) <= MOST_BYTES


def test_pale_texts_and_lines_are_found(open_page):
    page = open_page()
    page.set_content(
        "<body style='background: white'><p style='color: #999'>pale</p><p>dark</p>"
        "<svg width=9 height=9><g class=series><polyline points='0,0 9,9' stroke='#ccc'/></g></svg>"
    )
    found = page.evaluate(CONTRAST)
    assert [round(one["contrast"], 1) for one in found["texts"]] == [2.8, 21.0]
    assert [round(one["contrast"], 1) for one in found["lines"]] == [1.6]
