"""Every page by keyboard alone at both widths, and by touch on a narrow screen."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect  # repeats until it holds

pytestmark = pytest.mark.slow

PAGES = ("curves", "run", "episodes", "reader", "compare", "bench", "bench overview", "crossplay",
         "evaluation", "leaderboard", "transcripts", "report", "docs")  # fmt: skip
WIDE = {"viewport": {"width": 1440, "height": 900}}
NARROW = {"viewport": {"width": 390, "height": 844}}
TOUCH = {**NARROW, "has_touch": True, "is_mobile": True}
MOST_STOPS = 600
WATCH = """() => {
    window.stops = new Set();
    window.unseen = [];
    document.addEventListener("focusin", ({ target }) => {
        const style = getComputedStyle(target);
        const isSeen = style.outlineStyle !== "none" || style.boxShadow !== "none";
        if (!isSeen && !target.matches("body")) window.unseen.push(target.outerHTML.slice(0, 120));
        window.stops.add(target);
    });
}"""
MISSED = """() => {
    const wanted = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']";
    const isThere = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled;
    return [...document.querySelectorAll(wanted)]
        .filter((one) => isThere(one) && one.type !== "radio" && !window.stops.has(one))
        .filter((one) => one.tabIndex >= 0)
        .map((one) => one.outerHTML.slice(0, 120));
}"""


@pytest.fixture(params=[WIDE, NARROW], ids=["wide", "narrow"])
def page(request, addresses, open_page):
    return open_page(**request.param)


@pytest.fixture
def phone(addresses, open_page):
    return open_page(**TOUCH)


def tab_to(page, selector):
    """Press Tab until the first element with a selector has the focus."""
    target = page.locator(selector).first
    for _ in range(MOST_STOPS):
        if target.evaluate("(one) => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


@pytest.mark.parametrize("name", PAGES)
def test_tab_reaches_every_control_and_shows_which_has_the_focus(page, addresses, name):
    page.goto(addresses[name])
    page.wait_for_load_state()
    page.evaluate(WATCH)
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body || !document.hasFocus()"):
            break
    assert page.evaluate(MISSED) == []
    assert page.evaluate("window.unseen") == []


def test_a_run_is_followed_from_its_curves_to_a_comparison_by_keyboard(page, addresses):
    page.goto(addresses["curves"])
    page.wait_for_selector("#charts svg[data-x]:visible")
    tab_to(page, "[data-single]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#charts.dimmed")
    tab_to(page, "#runs a >> text=overview")
    page.keyboard.press("Enter")
    page.wait_for_selector(".overview .tiles")
    tab_to(page, "nav >> text=Episodes")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.episodes")
    page.wait_for_load_state()  # the script that reads keys
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.agent")
    page.goto(addresses["reader"])
    tab_to(page, ".compare-form select")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=words that differ are marked")
    page.wait_for_selector("mark, del, ins")


def test_results_are_found_sorted_and_read_by_keyboard(page, addresses):
    page.goto(addresses["leaderboard"])
    tab_to(page, "#search")
    page.keyboard.type("reference")
    expect(page.locator("#status")).to_contain_text("row")
    tab_to(page, "section:visible thead button")
    page.keyboard.press("Enter")
    expect(page.locator("section:visible thead [aria-sort]")).to_have_count(1)
    tab_to(page, "section:visible tbody tr:visible th a")
    page.keyboard.press("Enter")
    page.wait_for_selector("details.episode")
    tab_to(page, "details.episode >> nth=1 >> summary >> nth=0")
    page.keyboard.press("Enter")
    expect(page.locator("details.episode[open]")).to_have_count(2)


def test_a_report_is_unfolded_by_keyboard(page, addresses):
    page.goto(addresses["report"])
    before = page.locator("details[open]").count()
    tab_to(page, "details:not([open]) > summary")
    page.keyboard.press("Enter")
    expect(page.locator("details[open]")).to_have_count(before + 1)


def test_a_run_is_followed_from_its_curves_to_a_comparison_by_touch(phone, addresses):
    phone.goto(addresses["curves"])
    chart = phone.locator("#charts svg:visible").first
    chart.scroll_into_view_if_needed()
    chart.tap()
    expect(phone.locator("#values")).to_contain_text(" at ")
    phone.locator("button.enlarge:visible").first.tap()
    phone.wait_for_selector(".enlarged")
    phone.locator(".enlarged button.enlarge").tap()
    phone.locator("#runs a >> text=overview").first.tap()
    phone.wait_for_selector(".overview .tiles")
    phone.locator("nav >> text=Episodes").first.tap()
    phone.locator("[data-row]").first.tap()
    phone.wait_for_selector("article.agent")
    phone.goto(addresses["reader"])
    phone.locator(".chip:not([aria-current])").last.tap()
    phone.wait_for_url(lambda url: "path=" in url)
    phone.locator(".reads > summary").first.tap()
    phone.goto(addresses["reader"])
    phone.locator(".compare-form button").tap()
    phone.wait_for_selector("text=words that differ are marked")


def test_results_are_sorted_and_read_by_touch(phone, addresses):
    phone.goto(addresses["leaderboard"])
    phone.locator("section:visible thead button").first.tap()
    expect(phone.locator("section:visible thead [aria-sort]")).to_have_count(1)
    phone.locator("section:visible tbody tr:visible th a").first.tap()
    phone.wait_for_selector("details.episode")
    phone.locator("details.episode >> nth=1 >> summary >> nth=0").tap()
    expect(phone.locator("details.episode[open]")).to_have_count(2)


def test_a_report_and_the_first_page_are_used_by_touch(phone, addresses):
    phone.goto(addresses["report"])
    before = phone.locator("details[open]").count()
    phone.locator("details:not([open]) > summary:visible").first.tap()
    expect(phone.locator("details[open]")).to_have_count(before + 1)
    phone.goto(addresses["docs"])
    phone.locator("label[for=__navigation]:visible").first.tap()
    expect(phone.locator(".sidebar-brand").first).to_be_visible()
