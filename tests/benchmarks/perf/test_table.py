import json

import pytest

from benchmarks.perf.__main__ import RESULTS
from benchmarks.perf.common import ROOT
from benchmarks.perf.table import BEGIN, END, HEADLINES_BEGIN, HEADLINES_END, write_page

FIGURE = {
    "title": "A step",
    "hardware": {
        "processor": "CPU",
        "cores": 2,
        "memory_gib": 8,
        "system": "Linux 6",
        "load_before": 0.5,
    },
    "rows": [
        {
            "what": "seconds",
            "unit": "s",
            "ours": {"median": 2.0, "min": 1.5, "max": 2.5, "n": 3},
            "peer": {"median": 6.0, "min": 5.0, "max": 7.0, "n": 3},
            "peer_name": "them",
            "ratio": 3.0,
        },
        {"what": "packages", "unit": "", "ours": 7},
        {"what": "once", "unit": "s", "ours": {"median": 4.0, "min": 4.0, "max": 4.0, "n": 1}},
    ],
}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "machine.json").write_text(json.dumps({"a": FIGURE}))
    return folder


def test_the_table_holds_both_sides_and_the_ratio(results, tmp_path):
    write_page(results, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "| A step | seconds | 2 s [1.5, 2.5] | 6 s [5, 7] (them) | 3.0\u00d7 | 3 | 0.5 |" in page
    assert "| A step | packages | 7 |  |  |  | 0.5 |" in page


def test_a_single_measurement_has_no_range(results, tmp_path):
    write_page(results, tmp_path / "page.md")
    assert "| A step | once | 4 s |  |  | 1 | 0.5 |" in (tmp_path / "page.md").read_text()


def test_the_page_of_the_project_has_the_tables_of_the_stored_results(tmp_path):
    stored = (ROOT / "docs" / "performance.md").read_text()
    page = tmp_path / "page.md"
    page.write_text(stored)
    write_page(RESULTS, page)
    assert page.read_text() == stored


def test_words_around_the_table_stay(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(results, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text


def test_writing_twice_changes_nothing(results, tmp_path):
    page = tmp_path / "page.md"
    write_page(results, page)
    first = page.read_text()
    write_page(results, page)
    assert page.read_text() == first


def test_the_table_names_dates_and_commits_of_its_measurements(results, tmp_path):
    runs = [{"date": "2026-11-28", "commit": commit} for commit in ("b", "a", "a")]
    runs.append({"date": "2026-11-27", "commit": "c"})
    figures = {str(place): {**FIGURE, "run": run} for place, run in enumerate(runs)}
    (results / "machine.json").write_text(json.dumps(figures))
    write_page(results, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "Linux 6; measured on 2026-11-27 (commit c), 2026-11-28 (commit a, b).\n" in page


def test_short_tables_name_their_machine(results, tmp_path):
    row = FIGURE["rows"][0] | {"what": "sampled tokens a second, float32"}
    for machine in ("one", "two"):
        hardware = FIGURE["hardware"] | {"processor": f"CPU {machine}"}
        figures = {"decoding": {"title": "Decoding", "hardware": hardware, "rows": [row]}}
        (results / f"{machine}.json").write_text(json.dumps(figures))
    page = tmp_path / "page.md"
    page.write_text(f"{HEADLINES_BEGIN}\n{HEADLINES_END}\n{BEGIN}\n{END}\n")
    write_page(results, page)
    short, _, _ = page.read_text().partition(HEADLINES_END)
    first, second = short.index("CPU one"), short.index("CPU two")
    assert short.count("sampled tokens per second") == 2
    assert first < short.index("sampled tokens per second") < second
