"""The leaderboard in a browser; what a browser complains of fails a test (tests/conftest.py)."""

import re
from pathlib import Path

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")
pytest.importorskip("jinja2")

from mlrl_learners.bench.leaderboard import build, write
from mlrl_learners.bench.leaderboard.build import UNKNOWN

expect = pytest.importorskip("playwright.sync_api").expect  # repeats until it holds

RESULTS = Path(__file__).parents[3] / "benchmarks/results"
WIDE = {"viewport": {"width": 1200, "height": 900}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    write(build(RESULTS), folder)
    return folder


@pytest.fixture
def page(open_page, pages):
    opened = open_page(**WIDE)
    opened.goto((pages / "index.html").as_uri())
    return opened


def visible_rows(page):
    return page.locator("section:visible tbody tr:visible")


def first_names(page):
    return page.locator("section:visible").first.locator("tbody th a").all_inner_texts()


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_into_the_window(open_page, pages, width, scheme):
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for file in [pages / "index.html", *sorted((pages / "transcripts").glob("*.html"))[:2]]:
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (color == "rgb(251, 251, 250)") == (scheme == "light")


def test_trained_actors_are_shown_at_first_and_found_in_every_table(page):
    assert visible_rows(page).filter(has_text="trained by").count() > 0
    page.select_option("#group", "writing-v4-mlrl-story-v1-test")
    page.fill("#search", "trained")
    assert visible_rows(page).count() > 0
    assert (
        page.locator("section:visible").count()
        == page.locator("section:visible:has(tbody tr:not([hidden]))").count()
    )
    expect(page.locator("#status")).to_have_text(re.compile(r"^\d+ rows? in \d+ tables?$"))
    page.fill("#search", "no such actor")
    expect(page.locator("#status")).to_have_text("0 rows in 0 tables")


def test_whole_suites_come_first_and_one_environment_can_be_chosen(page):
    main = page.locator("section[data-main=yes]").count()
    assert page.locator("section:visible").count() == main > 5
    page.select_option("#group", "writing-v4-mlrl-story-v1-test")
    expect(page.locator("section:visible h2")).to_have_text(["writing v4 mlrl/story-v1:test"])
    expect(page).to_have_url(re.compile("#writing-v4-mlrl-story-v1-test$"))
    page.reload()
    expect(page.locator("section:visible")).to_have_count(1)


def test_it_opens_with_the_main_result_and_every_actor_by_suite(page):
    assert re.search(r"earns 0\.\d+ .*best of \d untrained actors", page.inner_text(".lead"))
    cells = page.locator("table.overview tbody tr")
    assert cells.filter(has_text="trained: ").count() > 0
    page.click("table.overview thead a >> text=writing v4 >> nth=0")
    expect(page).to_have_url(re.compile("#writing-v4"))


def test_a_heading_sorts_by_keyboard_both_ways(page):
    page.select_option("#group", "writing-v4-mlrl-story-v1-test")
    names = first_names(page)
    button = page.locator("section:visible thead button").first
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("section:visible thead [aria-sort=ascending]")).to_have_count(1)
    assert first_names(page) == sorted(names)
    page.keyboard.press("Enter")
    expect(page.locator("section:visible thead [aria-sort=descending]")).to_have_count(1)
    assert first_names(page) == sorted(names, reverse=True)


def test_figures_that_nobody_knows_are_last_in_either_order(page):
    page.select_option("#group", "writing-v4-mlrl-story-v1-test")
    section = page.locator("section:visible")
    for order in ("descending", "ascending"):
        section.get_by_role("button", name="tokens written").click()
        expect(section.locator(f"thead [aria-sort={order}]")).to_have_count(1)
        shown = section.locator("tbody td:nth-child(5)").all_inner_texts()
        known = [text for text in shown if text != UNKNOWN]
        assert len(known) < len(shown)
        assert shown[: len(known)] == known


def test_filter_hides_rows_and_dims_their_marks(page):
    page.fill("#search", "naive")
    expect(page.locator("#status")).to_contain_text("rows")
    page.wait_for_selector("section:visible .mark.faint")
    names = visible_rows(page).locator("th").all_inner_texts()
    assert {text.split("\n")[0] for text in names} == {"naive concatenation"}


def test_an_actor_leads_to_its_transcripts(page):
    page.select_option("#group", "writing-v4-mlrl-story-v1-test")
    page.click("section:visible tbody th a >> nth=0")
    expect(page.locator("h1")).to_contain_text("on writing")
    expect(page.locator(".writes").first).to_be_visible()
