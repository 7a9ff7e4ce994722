"""Groups of runs in the charts."""

from mlrl_learners.monitor.library import MonitoredRun
from mlrl_learners.monitor.pages.curves import View


def write_runs(folder, rates):
    runs = []
    for number, rate in enumerate(rates):
        path = folder / f"run-{number}"
        path.mkdir()
        (path / "config.yaml").write_text(
            f"learner:\n  name: magrpo\n  options:\n    optimizer: {{lr: {rate}}}\n"
            f"train:\n  iterations: 1\n  seed: {number}\n"
        )
        runs.append(MonitoredRun.at(path.name, path, 23))
    return runs


def test_a_group_keeps_its_colour_whichever_of_its_runs_are_drawn(tmp_path):
    runs = write_runs(tmp_path, rates=[1, 1, 2, 2, 3])
    whole = View.parse({"group": "seed"}, [run.name for run in runs], runs).lines()
    for chosen in (["run-1", "run-3", "run-4"], ["run-3"], ["run-0", "run-4"]):
        lines = View.parse({"group": "seed"}, chosen, runs).lines()
        assert {run: color for run, (_, color) in lines.items()} == {
            run: whole[run][1] for run in chosen
        }


def test_groups_have_the_colours_that_differ_most_whatever_those_of_their_runs(tmp_path):
    runs = write_runs(tmp_path, rates=[1, 1, 2, 2, 3, 4, 5, 6, 7])
    view = View.parse({"group": "seed"}, [run.name for run in runs], runs)
    lines = dict(view.lines().values())
    assert sorted(lines.values()) == list(range(7))
    assert {curves.name: curves.color for curves in view.curves()} == lines
    assert view.lines()["run-0"] == view.lines()["run-1"]
    assert {name for name in lines if "mean" in name} == {
        "run, mean of 2 runs",
        "run, mean of 2 runs, from run-2",
    }
