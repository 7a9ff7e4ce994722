"""Tools of the charts in a real browser: zoom, highlight, groups, enlarging."""

import re

import pytest

expect = pytest.importorskip("playwright.sync_api").expect  # repeats until it holds


@pytest.fixture
def two(run, other_run):
    for one, seed in ((run, 1), (other_run, 2)):
        (one.path / "config.yaml").write_text(
            f"learner:\n  name: magrpo\ntrain:\n  iterations: 12\n  seed: {seed}\n"
        )
        for iteration in range(1, 13):
            one.train(iteration, iteration / 12 * seed / 2, **{"aux/loss": 0.5})
    return run


@pytest.fixture
def page(served, window, two):
    opened = window(viewport={"width": 1440, "height": 900})
    opened.goto(f"{served}/?chosen=1&run=first&run=second&smoothing=1")
    return opened


def at(drawing, share):
    box = drawing.bounding_box()
    return box["x"] + box["width"] * share, box["y"] + box["height"] / 2


def x_range(page):
    text = page.locator("#charts svg.large").first.get_attribute("data-x")
    return [float(value) for value in text.split()[:2]]


def until(page, is_true, tries=200):
    """Wait for the server's next drawing; the page's policy forbids Playwright's own wait."""
    while not is_true() and tries:
        page.wait_for_timeout(50)
        tries -= 1
    assert is_true()


def is_within(page, low, high):
    found = x_range(page)
    return low <= found[0] and found[1] <= high


def test_dragging_zooms_and_a_button_shows_the_whole_range_again(page):
    drawing = page.locator("#charts svg.large").first
    page.mouse.move(*at(drawing, 0.4))
    page.mouse.down()
    page.mouse.move(*at(drawing, 0.7))
    page.mouse.up()
    until(page, lambda: is_within(page, 2, 11))
    expect(page).to_have_url(re.compile(r"from=[\d.]+&to=[\d.]+"))
    low, high = x_range(page)
    page.reload()
    until(page, lambda: x_range(page) == [low, high])
    page.click("#unzoom")
    until(page, lambda: x_range(page) == [1, 12])
    until(page, lambda: "from=" not in page.url)


def test_a_chart_is_zoomed_by_keys(page):
    page.locator("#charts svg.large").first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("+")
    until(page, lambda: is_within(page, 1, 7))
    page.keyboard.press("0")
    until(page, lambda: x_range(page) == [1, 12])


def test_a_run_is_singled_out_in_all_charts_and_stays_so_when_they_are_renewed(page, two):
    page.locator("[data-single=second]").click()
    expect(page.locator("[data-single=second]")).to_have_attribute("aria-pressed", "true")
    until(page, lambda: page.locator("#charts .series.on[data-run=second]").count() > 1)
    two.train(13, 0.5)
    page.wait_for_selector("#runs >> text=13 of 12")
    until(page, lambda: page.locator("#charts.dimmed .series.on").count() > 1)
    page.keyboard.press("Escape")
    expect(page.locator("#charts.dimmed")).to_have_count(0)


def test_clicking_a_line_singles_it_out(page):
    place = page.evaluate(
        """() => {
            const line = document.querySelector("#charts [data-run=second] polyline");
            const {x, y} = line.points[6];
            const at = new DOMPoint(x, y).matrixTransform(line.getScreenCTM());
            return [at.x, at.y];
        }"""
    )
    page.mouse.click(*place)
    expect(page.locator("[data-single=second]")).to_have_attribute("aria-pressed", "true")


def test_runs_that_differ_by_their_seed_are_drawn_as_mean_and_band(page):
    page.select_option("[name=group]", "seed")
    page.wait_for_selector("#charts .band", state="attached")
    expect(page.locator("#charts svg.large g.series.line")).to_have_count(1)
    page.select_option("[name=group]", "")
    page.wait_for_selector("#charts [data-run=first]", state="attached")


def test_a_logarithmic_axis_is_chosen(page):
    page.check("[name=log]")
    page.wait_for_selector("#charts svg.large[data-y$=log]", state="attached")
    page.locator("#charts svg.large").first.focus()
    page.keyboard.press("End")
    expect(page.locator("#values")).to_contain_text("second 1")


def test_a_chart_is_enlarged_by_key_and_left_by_escape(page):
    page.locator("#charts svg.small").nth(1).focus()
    page.keyboard.press("f")
    page.wait_for_selector(".enlarged")
    box = page.locator(".enlarged").bounding_box()
    assert (box["width"], box["height"]) == (1440, 900)
    page.keyboard.press("Escape")
    expect(page.locator(".enlarged")).to_have_count(0)
