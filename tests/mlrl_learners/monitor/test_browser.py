"""The monitor in a real browser; any complaint of the browser fails a test (tests/conftest.py)."""

import re

import pytest

from mlrl_learners.monitor.index import EpisodeIndex, Hits

expect = pytest.importorskip("playwright.sync_api").expect  # repeats until it holds

NASTY = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
NARROW = {"viewport": {"width": 400, "height": 800}}


@pytest.fixture
def full(run, other_run, rows):
    """Two runs with curves; the first has a long list of episodes, one of them a tree."""
    for one in (run, other_run):
        for iteration in range(1, 13):
            one.train(iteration, iteration / 12, **{"aux/loss": 0.5, "train/tokens": 100})
    run.play(1, *(rows.rollout(n / 80, task=f"T/{n}", text=f"word{n}") for n in range(80)))
    run.play(2, rows.tree())
    return run


def wait_for_heading(page, words):
    """Wait for a page whose script listens to keys."""
    page.wait_for_selector(f"h1 >> text={words}")
    page.wait_for_load_state()


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", ["/", "/episodes?run=first", "/episode?run=first&key=80",
                                  "/run?run=first"])  # fmt: skip
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_into_a_narrow_window(window, served, full, path, scheme):
    page = window(**NARROW, color_scheme=scheme)
    page.goto(served + path)
    assert page.locator("h1").first.is_visible()
    assert fits(page)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_long_name_fits_into_the_window(window, served, run, other_run, rows, width):
    long = type(run)(run.path.parent / ("x" * 200))
    for one in (long, other_run):
        one.train(1)
        one.train(2)
    long.play(1, rows.rollout(task="y" * 200))
    page, name = window(viewport={"width": width, "height": 800}), long.path.name
    both = f"/?chosen=1&run={name}&run=second"
    for path in (f"/?chosen=1&run={name}", both, "/episodes?", "/episode?key=0&", "/run?"):
        page.goto(served + path + ("" if "chosen" in path else f"run={name}"))
        assert fits(page), path


def test_dark_mode_is_dark(window, served, full):
    page = window(color_scheme="dark")
    page.goto(served)
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", color)[:3])) < 60


def test_curves_renew_themselves_while_a_trainer_writes(window, served, full):
    page = window()
    page.goto(f"{served}/?chosen=1&run=first")
    page.wait_for_selector("#charts svg.large")
    assert "12 iterations" in page.inner_text("#runs")
    assert "to 0.833" in page.inner_html("#charts svg title >> nth=0")
    full.train(13, 0.125)  # the mean of the last five: (9 + 10 + 11 + 12 + 1.5) / 60
    page.wait_for_selector("#runs >> text=13 iterations")
    drawn = page.locator("#charts svg title", has_text="to 0.725").first
    drawn.wait_for(state="attached")


def test_runs_axis_and_smoothing_are_chosen_without_a_new_page(window, served, full):
    page = window()
    page.goto(f"{served}/?chosen=1&run=first")
    page.check("text=second")
    page.wait_for_selector("#charts [data-run=second]", state="attached")
    page.select_option("[name=axis]", "tokens")
    page.wait_for_selector("text=tokens sampled")
    page.locator("[name=smoothing]").focus()
    page.keyboard.press("Home")
    expect(page.locator("#smoothing")).to_have_text("1")
    for part in ("smoothing=1", "run=second", "axis=tokens"):
        expect(page).to_have_url(re.compile(part))
    page.reload()
    expect(page.get_by_role("checkbox", name="second")).to_be_checked()


def test_runs_are_found_by_a_part_of_their_name(window, served, full):
    page = window()
    page.goto(served)
    page.keyboard.press("/")
    page.keyboard.type("sec")
    expect(page.locator(".run:visible .name")).to_have_text(["second"])


def test_values_are_shown_under_the_pointer(window, served, full):
    page = window()
    page.goto(f"{served}/?chosen=1&run=first")
    box = page.locator("#charts svg.large").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    expect(page.locator("#values")).to_contain_text("Return mean return at 12")
    expect(page.locator("#values")).to_contain_text("training, mean of 5 0.83")


def cursors(page):
    return page.locator("#charts svg:visible .cursor")


def test_the_cursor_stands_in_every_chart_and_stays_when_charts_are_renewed(window, served, full):
    page = window()
    page.goto(f"{served}/?chosen=1&run=first")
    box = page.locator("#charts svg.large").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    charts = page.locator("#charts svg[data-x]:visible").count()
    assert charts > 1
    expect(cursors(page)).to_have_count(charts)
    full.train(13, 0.125)
    page.wait_for_selector("#runs >> text=13 iterations")
    page.locator("#charts svg title", has_text="to 0.725").first.wait_for(state="attached")
    expect(page.locator("#values")).to_contain_text("at 12")
    expect(cursors(page)).to_have_count(charts)


def test_the_cursor_is_moved_by_keys_and_keeps_the_focus(window, served, full):
    page = window()
    page.goto(f"{served}/?chosen=1&run=first")
    page.locator("#charts svg.large").first.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#values")).to_contain_text("at 11")
    expect(page.locator("[role=status].unseen")).to_contain_text("at 11")
    full.train(13, 0.125)
    page.locator("#charts svg title", has_text="to 0.725").first.wait_for(state="attached")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#values")).to_contain_text("at 12")
    page.keyboard.press("Home")
    expect(page.locator("#values")).to_contain_text(re.compile(r"at 1\b"))
    page.keyboard.press("Escape")
    expect(cursors(page)).to_have_count(0)


def test_values_are_shown_by_touch(window, served, full):
    page = window(**NARROW, has_touch=True)
    page.goto(f"{served}/?chosen=1&run=first")
    drawing = page.locator("#charts svg:visible").first
    drawing.scroll_into_view_if_needed()
    drawing.tap()
    expect(page.locator("#values")).to_contain_text("at ")
    page.locator("h1").first.tap()
    expect(cursors(page)).to_have_count(0)


def test_a_server_that_is_gone_is_announced_until_it_is_back(browser, served, full):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{served}/?chosen=1&run=first")
    page.wait_for_selector("#charts svg.large")
    page.route("**/*", lambda route: route.abort())
    page.wait_for_selector(".cut-off:visible >> text=has not answered since")
    page.unroute("**/*")
    page.wait_for_selector(".cut-off", state="hidden")
    context.close()


def test_episodes_are_searched_opened_and_left_by_keyboard(window, served, full):
    page = window()
    page.goto(f"{served}/episodes?run=first")
    page.keyboard.press("/")
    page.keyboard.type("word7")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "text=word7" in url)
    assert "low=" not in page.url  # empty fields are left out
    expect(page.locator("[data-row]")).to_have_count(11)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-row]:focus")).to_have_text("T/78")
    page.keyboard.press("Enter")
    wait_for_heading(page, "T/78")
    page.keyboard.press("j")
    wait_for_heading(page, "T/77")
    page.keyboard.press("k")
    wait_for_heading(page, "T/78")
    page.keyboard.press("u")
    page.wait_for_selector("table.episodes")
    assert "text=word7" in page.url


def test_up_leads_to_the_page_and_the_row_of_an_episode(window, served, full):
    page = window()
    page.goto(f"{served}/episodes?run=first&order=oldest&at=50")
    page.click("text=T/61")
    wait_for_heading(page, "T/61")
    assert page.inner_text(".crumbs") == "first / iteration 1"
    page.keyboard.press("u")
    page.wait_for_selector("table.episodes")
    expect(page.locator("[data-row]:focus")).to_have_text("T/61")
    expect(page.locator("[data-row]").first).to_have_text("T/50")


def test_a_search_goes_on_by_itself(window, served, full, monkeypatch):
    search = EpisodeIndex.search

    def ten_at_a_time(index, numbers, text, *, start, **limits):
        hits = search(index, numbers[: start + 10], text, start=start, **limits)
        return Hits(hits.numbers, hits.start, hits.end, len(numbers))

    monkeypatch.setattr(EpisodeIndex, "search", ten_at_a_time)
    page = window()
    page.goto(f"{served}/episodes?run=first&text=word7")
    page.wait_for_selector("text=11 found, 81 of 81 episodes searched")
    expect(page.locator("[data-row]")).to_have_count(11)
    expect(page.locator("[data-continue]")).to_have_count(0)


def test_branches_of_a_tree_are_walked_by_keyboard(window, served, full):
    page = window()
    page.goto(f"{served}/episode?run=first&key=80")
    assert page.locator(".turn").count() == 2
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url.endswith("path=1"))
    assert page.locator(".turn").count() == 1
    page.keyboard.press("[")
    page.wait_for_url(lambda url: url.endswith("path=0"))


def test_keys_are_explained_and_what_has_the_focus_is_seen(window, served, full):
    page = window()
    page.goto(f"{served}/episodes?run=first")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("[data-row]:focus")).to_have_count(1)
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_a_script_in_a_transcript_is_shown_and_not_run(window, served, run, rows):
    run.train(1)
    run.play(1, rows.rollout(task=NASTY, text=f"{NASTY}\n```html\n{NASTY}\n```"))
    page = window()
    for path in ("/episodes?run=first", "/episode?run=first&key=0"):
        page.goto(served + path)
        assert NASTY in page.inner_text("body")
        assert page.evaluate("window.hit") is None


def test_agents_are_read_side_by_side_and_one_below_the_other(window, served, full):
    page = window()
    page.goto(f"{served}/episode?run=first&key=80")
    aux, main = (page.locator(".agent").nth(index).bounding_box() for index in (0, 1))
    assert aux["y"] == main["y"]
    assert aux["x"] < main["x"]
    page.set_viewport_size(NARROW["viewport"])
    aux, main = (page.locator(".agent").nth(index).bounding_box() for index in (0, 1))
    assert aux["y"] < main["y"]


def test_new_episodes_are_announced_without_a_new_page(window, served, full, rows):
    page = window()
    page.goto(f"{served}/episodes?run=first")
    full.play(3, rows.rollout(task="T/new"))
    page.click("text=1 more")
    page.wait_for_selector("table.episodes >> text=T/new")


def test_the_page_works_without_its_script(browser, served, full):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served}/?chosen=1&run=first")
    page.select_option("[name=axis]", "seconds")
    page.click("text=Show")
    assert page.locator("text=seconds of training").first.is_visible()
    context.close()


def test_a_report_looks_alike_and_fits_into_a_narrow_window(window, full, tmp_path):
    from mlrl_learners.report import write_report

    page = window(**NARROW, color_scheme="dark")
    page.goto(write_report(full.path, tmp_path / "report.html").as_uri())
    assert page.locator("figure.chart svg").first.is_visible() or fits(page)
    assert fits(page)
