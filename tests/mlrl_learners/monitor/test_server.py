import http.client
import re
import urllib.error
import urllib.request
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.monitor.server import make_app, serve
from mlrl_learners.monitor.views import PAGES

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def ask(address, **headers):
    """Return status, headers and text of an answer."""
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - a server of ours
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def page(served, address, /, **words):
    status, _, text = ask(f"{served}{address}?{urlencode(words)}")
    assert status == 200
    return text


def test_every_page_runs_no_script_but_ours(served, run, rows):
    run.train(1)
    run.play(1, rows.rollout())
    for path in PAGES:
        status, headers, text = ask(f"{served}{path}?run=first&key=0&other=first")
        assert status == 200, path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        names = ("charts.js", "chart_tools.js", "monitor.js")
        scripts = [f'<script src="/static/{name}" defer="defer">' for name in names]
        assert re.findall("<script[^>]*>", text) in ([], scripts)


def test_nothing_a_model_writes_becomes_markup(served, run, rows):
    run.train(1, **{f"{NASTY}/loss": 1.0})
    run.play(1, rows.rollout(task=NASTY, text=f"{NASTY}\n```{NASTY}\n{NASTY}\n```"))
    run.append("failures.jsonl", {"iteration": 1, "task_id": NASTY, "message": NASTY})
    (run.path / "config.yaml").write_text(NASTY)
    for path in PAGES:
        text = page(
            served,
            path,
            run="first",
            key="0",
            other="first",
            text="script",
            task="<script>",
            chosen=1,
        )
        assert "<script>" not in text, path
        assert "<img" not in text, path
    assert "&lt;script&gt;alert(1)" in page(served, "/episode", run="first", key="0")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "localhost.evil.example"])
def test_a_foreign_name_for_this_machine_is_turned_away(served, run, host):
    run.train(1)
    for path in ("/", "/static/monitor.js", "/episodes?run=first"):
        assert ask(served + path, Host=host)[0] == 421


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py",
     "/static//etc/passwd", "/../../etc/passwd", "/static/monitor.py", "/nothing"],
)  # fmt: skip
def test_no_path_leads_out_of_the_house(served, path):
    connection = http.client.HTTPConnection(urlsplit(served).netloc)
    connection.request("GET", path)  # as it is: urllib would tidy it
    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize("name", ["../runs/first", "..", "/etc", "first/../first", "nothing"])
def test_a_run_that_is_not_listed_is_not_there(served, run, name):
    run.train(1)
    for path in ("/episodes", "/episode", "/run", "/report", "/fresh"):
        status, _, text = ask(f"{served}{path}?{urlencode({'run': name})}")
        assert status == 404
        assert "There is no run" in text


def test_only_reading_is_answered(served):
    for method in ("POST", "PUT", "DELETE"):
        request = urllib.request.Request(served, method=method, data=b"")  # noqa: S310
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(request)  # noqa: S310


def test_charts_are_sent_again_only_when_a_run_was_written(served, run):
    run.train(1)
    address = f"{served}/charts?run=first"
    _, headers, _ = ask(address)
    assert ask(address, **{"If-None-Match": headers["etag"]})[0] == 304
    run.train(2)
    assert ask(address, **{"If-None-Match": headers["etag"]})[0] == 200


def test_the_list_has_a_page_at_a_time_and_leads_on(served, run, rows):
    run.play(1, *(rows.rollout(n / 120, task=f"T/{n}") for n in range(120)))
    seen, path = [], "/episodes?run=first&order=best"
    while path:
        _, _, text = ask(served + path)
        seen += re.findall(r">T/(\d+)</a>", text)
        following = re.search(r'<a href="([^"]+)" rel="next"', text)
        path = following and following[1].replace("&amp;", "&")
    assert seen == [str(n) for n in reversed(range(120))]


def test_episodes_beside_one_are_those_of_its_list(served, run, rows):
    run.play(1, *(rows.rollout(n / 10, task=f"T/{n}", text=f"w{n % 2}") for n in range(6)))
    text = page(served, "/episode", run="first", key="2", text="w0", order="best")
    links = dict(re.findall(r'<a href="[^"]*key=(\d+)" rel="(\w+)"', text))
    assert links == {"4": "prev", "0": "next"}


def test_every_branch_of_a_tree_has_an_address(served, run, rows):
    run.play(1, rows.tree())
    first = page(served, "/episode", run="first", key="0")
    assert "better" in first
    assert "feedback" in first
    paths = set(re.findall(r"path=([\d.]+)", first))
    assert paths == {"0", "1", "0.0", "0.1"}
    other = page(served, "/episode", run="first", key="0", path="0.0")
    assert "worse" in other
    assert "better" not in other


def test_list_and_reader_agree_on_figures(served, run, rows):
    run.play(1, rows.tree(), rows.rollout(1.1025, task="T/1"))
    table, tree, single = (
        page(served, path, run="first", key=key)
        for path, key in (("/episodes", ""), ("/episode", 0), ("/episode", 1))
    )
    assert "1 of 3 solved" in table
    assert "1 of 3 solved" in tree
    assert 'col-best">1<' in table
    assert ", best 1<" in tree
    shown = [set(re.findall(r"1\.10\d+", text)) for text in (table, single)]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 1


def test_returns_that_were_not_earned_are_marked(served, run, rows):
    below = rows.node(rows.step(1.0), turn=1)
    left = {**rows.step(0.25), "terminated": False}
    run.play(1, rows.rollout(node=rows.node(rows.step(0.5, child=below), left)))
    text = page(served, "/episode", run="first", key=0)
    assert ">~1.25<" in text
    assert ">1.5 …<" in text


def test_colours_belong_to_runs_and_not_to_places(served, run, other_run):
    third = type(run)(run.path.parent / "third")
    for one in (run, other_run, third):
        for iteration in (1, 2):
            one.train(iteration)

    def color(*names):
        asked = urlencode([("chosen", 1), *(("run", name) for name in names)])
        text = ask(f"{served}/charts?{asked}")[2]
        return set(re.findall(r'class="series line (c\d+) d\d" data-name="third"', text))

    assert color("first", "second", "third") == color("second", "third")
    listed = page(served, "/")
    swatch = re.search(r"swatch series line (c\d+) [^>]*>(?:(?!</label>).)*third", listed)
    assert {swatch[1]} == color("second", "third")


def test_the_reader_leads_up_to_its_page_and_row(served, run, rows):
    run.play(1, *(rows.rollout(task=f"T/{n}", text="word") for n in range(120)))
    text = page(served, "/episode", run="first", key=40, order="oldest", at=0)
    assert 'href="/episodes?run=first&amp;order=oldest#row-40"' in text
    text = page(served, "/episode", run="first", key=60, order="oldest")
    assert 'href="/episodes?run=first&amp;order=oldest&amp;at=50#row-60"' in text
    text = page(served, "/episode", run="first", key=60, order="oldest", text="word", at=57)
    assert "order=oldest&amp;at=57#row-60" in text
    assert 'id="row-60"' in page(served, "/episodes", run="first", order="oldest", at=50)


def test_the_reader_names_its_run_and_iteration(served, run, rows):
    run.play(7, rows.rollout())
    text = page(served, "/episode", run="first", key=0)
    crumbs = text.partition('class="crumbs"')[2].partition("</nav>")[0]
    assert "<bdi>first</bdi>" in crumbs
    assert "iteration 7" in crumbs
    assert "first=7&amp;last=7" in crumbs


def test_searched_words_are_marked_where_an_agent_wrote_them(served, run, rows):
    other = rows.node(rows.step(0.1), rows.step(0.9, (1, 1)), texts=("the Needle", "hay"))
    run.play(1, rows.rollout(node=other))
    text = page(served, "/episode", run="first", key=0, text="needle")
    assert "the <mark>Needle</mark>" in text  # on a path that is not the best one
    assert "<mark>" not in page(served, "/episode", run="first", key=0)
    assert "<mark>" not in page(served, "/episode", run="first", key=0, text="task")


def test_a_search_that_goes_on_counts_from_its_start(served, run, rows):
    run.play(1, *(rows.rollout(task=f"T/{n}", text="word") for n in range(120)))
    words = {"run": "first", "text": "word"}
    text = page(served, "/episodes", **words, **{"at": 100, "from": 20, "found": 12})
    assert "32 found, 100 of 120 episodes searched" in text
    text = page(served, "/episodes", **words)
    assert "50 found, 50 of 120 episodes searched" in text
    assert "data-continue" not in text


def test_one_iteration_is_singular(served, run):
    run.train(1)
    assert "1 iteration " in page(served, "/")


def test_a_run_without_anything_says_what_to_wait_for(served, run):
    run.append("metrics.jsonl")
    assert "No iteration is finished yet" in page(served, "/", run="first")
    assert "No episode of training is there yet" in page(served, "/episodes", run="first")


def test_a_folder_without_runs_says_how_to_start_one(served):
    assert "mlrl train" in page(served, "/")


def test_new_episodes_are_announced(served, run, rows):
    run.play(1, rows.rollout())
    page(served, "/episodes", run="first")
    run.play(2, rows.rollout(), rows.rollout())
    assert "2 more" in page(served, "/fresh", run="first", seen=1)


def test_an_episode_that_was_set_aside_is_said_to_be_gone(served, run, rows):
    run.play(1, rows.rollout())
    status, _, text = ask(f"{served}/episode?run=first&key=7")
    assert status == 404
    assert "resumed run" in text


def test_the_report_of_a_run_can_be_taken_along(served, run):
    run.train(1)
    _, headers, text = ask(f"{served}/report?run=first")
    assert "attachment" in headers["content-disposition"]
    assert "mlrl report: first" in text


NAMES = ["run", "key", "path", "text", "task", "solved", "low", "high", "first", "last", "order",
         "source", "at", "seen", "axis", "smoothing", "chosen"]  # fmt: skip
VALUES = st.text(max_size=12) | st.sampled_from(
    ["first", "0", "-1", "1e999", "nan", "0.0.0", "9" * 40, "best", "evaluation", "tokens", "\0"]
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(sorted(PAGES)), st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_no_query_breaks_a_page(served, run, rows, path, words):
    if not (run.path / "metrics.jsonl").exists():
        run.train(1)
        run.play(1, rows.rollout(), rows.tree())
    words = {name: value.encode("utf-8", "replace").decode() for name, value in words.items()}
    status, _, _ = ask(f"{served}{path}?{urlencode({'run': 'first', **words})}")
    assert status in (200, 404)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com"])  # noqa: S104
def test_others_are_let_in_only_when_that_is_meant(tmp_path, host):
    with pytest.raises(ConfigError, match="--public"):
        serve(tmp_path, host=host)


def test_a_missing_folder_is_one_clear_error(tmp_path):
    with pytest.raises(RunDirError, match="nothing"):
        make_app(tmp_path / "nothing")


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "starlette.applications", None)
    with pytest.raises(ConfigError, match=r"mlrl\[monitor\]"):
        make_app(tmp_path)
