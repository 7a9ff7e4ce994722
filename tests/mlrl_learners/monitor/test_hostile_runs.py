"""Pages of runs that somebody else made, or that are damaged."""

import json
import sys

import pytest

from mlrl_learners.monitor.views import PAGES
from mlrl_learners.report.configuration import options_of
from mlrl_learners.runs.files import RUN_FILES


@pytest.mark.parametrize("target", ["outside", "/dev/zero"])
def test_links_inside_a_run_are_not_followed(served, ask, run, target):
    outside = run.path.parent.parent / "outside"
    outside.write_text('{"iteration": 1, "secret": 1}\n')
    for name in RUN_FILES:
        (run.path / name).symlink_to(outside if target == "outside" else target)
    for path in PAGES:
        assert "secret" not in ask(f"{served}{path}?run=first&key=0")[2], path


HUGE = ["1e400", "-1e400", "1" * 400, "1" * 5000, "1e308", "NaN"]


@pytest.mark.parametrize("value", HUGE)
def test_no_number_breaks_a_page(served, ask, run, rows, value):
    run.train(1)
    run.play(1, rows.rollout())
    figures = {"env_id": "e", "split": "eval", "mean_return": 0.5, "interval": [0.1, 0.9]}
    run.append("evaluations.jsonl", {"iteration": 1, **figures, "episodes": []})
    for file in ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl"):
        text = (run.path / file).read_text()
        for name in ("iteration", "seconds", "train/return", "train/tokens", "mean_return"):
            row = json.dumps({**json.loads(text.splitlines()[0]), "iteration": 2, name: "?"})
            text += row.replace('"?"', value) + "\n"
        (run.path / file).write_text(text)
    for path in PAGES:
        assert ask(f"{served}{path}?run=first&key=0&other=first&axis=tokens")[0] == 200, path


def test_no_number_of_a_configuration_breaks_a_page(served, ask, run):
    run.train(1)
    for value in (".inf", ".nan", f"0x{'f' * 5000}", "-1e400"):
        (run.path / "config.yaml").write_text(f"train:\n  iterations: {value}\n")
        assert ask(served)[0] == 200, value


def test_a_page_that_fails_has_its_headers_and_one_sentence(served, ask, run, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("mlrl_learners.monitor.server.charts_stamp", fail)
    status, headers, text = ask(f"{served}/charts")
    assert status == 500
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "ZeroDivisionError" in text
    assert "secret" not in text


def test_a_configuration_that_would_take_long_to_parse_is_not_parsed(monkeypatch):
    module = sys.modules[options_of.__module__]
    monkeypatch.setattr(module, "parse_yaml", None)  # must not be called
    assert options_of("a: 1\n" * 200_000) == {}
