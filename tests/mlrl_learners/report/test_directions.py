"""A direction override in a name must not turn the figures beside it around."""

from html.parser import HTMLParser

from mlrl_learners.monitor.pages.layout import frame
from mlrl_learners.report.charts import Chart, Series, draw
from mlrl_learners.report.html import isolated, page, tag, without_overrides
from mlrl_learners.report.transcript_markup import Side, compare
from mlrl_learners.runs.stored import decode_episode

OVERRIDE = "\u202e"
OWN_LINE = {"div", "pre", "h1", "h2", "p"}  # a block is a paragraph of its own


class Places(HTMLParser):
    """Collects the innermost elements of texts that hold an override, and whether `bdi` does."""

    def __init__(self, markup):
        super().__init__()
        self.stack, self.found = [], []
        self.feed(markup)
        self.close()

    def handle_starttag(self, name, attributes):
        self.stack.append(name)

    def handle_startendtag(self, name, attributes):
        pass

    def handle_endtag(self, name):
        self.stack.pop()

    def handle_data(self, data):
        if OVERRIDE in data:
            self.found.append((self.stack[-1], "bdi" in self.stack))


def an_episode(name):
    check = {"name": name, "passed": True, "status": name}
    turn = {
        "observations": {name: "words"},
        "actions": {name: "words"},
        "rewards": {name: 0.5, "waiter": 0.5},
        "components": {name: {name: 0.5}},
        "diagnostics": {name: {"checks": [check]}},
    }
    opponents = {name: name}
    row = {"task_id": name, "seed": 1, "return": 0.5, "turns": [turn], "opponents": opponents}
    return decode_episode(row)


def test_names_beside_figures_are_isolated():
    shown = compare([Side("title", [an_episode(f"{OVERRIDE}name")])], limit=1)
    places = Places(shown).found
    assert len(places) >= 8
    assert [place for place, is_isolated in places if not is_isolated] == []


def test_what_an_agent_wrote_keeps_its_characters_on_lines_of_its_own():
    episode = an_episode("name")
    turn = episode.turns[0]
    turn.actions["name"] = f"{OVERRIDE}words"
    shown = compare([Side("title", [episode])], limit=1)
    assert {place for place, _ in Places(shown).found} <= OWN_LINE
    assert f"{OVERRIDE}words" in shown


def test_a_chart_holds_no_override():
    name = f"{OVERRIDE}name"
    assert OVERRIDE not in draw(Chart(name, "x", "y", [Series(name, [(1, 1)], "marks")]))


def test_the_title_of_a_window_holds_no_override():
    assert OVERRIDE not in page(f"{OVERRIDE}name", "")
    assert OVERRIDE not in frame(f"{OVERRIDE}name")


def test_an_isolated_name_cannot_end_its_isolation():
    assert isolated("a\u2069</bdi>b") == tag("bdi", "a\u2069</bdi>b")
    assert "</bdi>b" not in isolated("a</bdi>b")


def test_names_without_tags_lose_every_direction_character():
    assert without_overrides("a\u202eb\u2066c\u2069 \u05d0") == "a\ufffdb\ufffdc\ufffd \u05d0"
