import re

import numpy as np
import pytest

from mlrl_learners.report.panels import Curves, EvaluationPoint, draw_panels
from mlrl_learners.report.run_groups import mean_curves

ITERATIONS = np.arange(1.0, 5.0)


def a_run(name="a", **metrics):
    columns = {"iteration": ITERATIONS, "seconds": np.full(4, 10.0)}
    given = {key.replace("__", "/"): np.asarray(values, float) for key, values in metrics.items()}
    return Curves(name, {**columns, **given})


def drawn(*runs, axis="iteration", smoothing=1):
    return "".join(draw_panels(runs, axis=axis, smoothing=smoothing))


def titles(markup):
    """Return the captions; the main chart is there in two sizes, of which one is shown."""
    first, again, *others = re.findall(r"<figcaption>(.*?) <span", markup)
    assert first == again
    return [first, *others]


def test_the_lines_of_one_run_are_its_agents():
    shown = drawn(a_run(aux__loss=[1, 2, 3, 4], main__loss=[4, 3, 2, 1]))
    assert titles(shown) == ["Return", "Loss"]
    assert re.findall(r'data-name="(\w+)"', shown) == ["aux", "main"]


def test_the_lines_of_several_runs_are_the_runs():
    runs = [a_run(name, aux__loss=[1, 2, 3, 4], main__loss=[4, 3, 2, 1]) for name in "ab"]
    shown = drawn(*runs)
    assert titles(shown) == ["Return", "Loss: aux", "Loss: main"]
    assert re.findall(r'data-name="(\w+)"', shown) == ["a", "b"] * 2


def test_curves_that_are_zero_everywhere_are_left_out():
    assert titles(drawn(a_run(aux__kl=[0, 0, 0, 0]))) == ["Return"]


def test_what_a_learner_logs_of_its_own_is_drawn():
    shown = drawn(a_run(student__lessons_learned=[1, 2, 3, 4], note=[1, 1, 1, 1]))
    assert titles(shown) == ["Return", "Lessons learned", "note"]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [("iteration", [1, 2, 3, 4]), ("tokens", [5, 10, 15, 20]), ("seconds", [10, 20, 30, 40])],
)
def test_axes_sum_up_what_was_spent(axis, expected):
    run = a_run(train__return=[1, 2, 3, 4], train__tokens=[5, 5, 5, 5])
    assert [x for x, _ in run.points("train/return", axis).tolist()] == expected


def test_evaluations_stand_where_training_was_when_they_were_made():
    held_out = [EvaluationPoint(0, 0.1, 0.0, 0.2), EvaluationPoint(2, 0.5, 0.4, 0.6)]
    run = Curves("a", a_run(train__return=[1, 2, 3, 4]).columns, held_out)
    shown = drawn(run, axis="seconds")
    assert "held-out, with 95 % interval: 0.1 at 0<" in shown
    assert "held-out, with 95 % interval: 0.5 at 20<" in shown


def test_a_part_of_the_axis_is_drawn():
    run = a_run(train__return=[1, 2, 3, 4], aux__loss=[5, 6, 7, 8])
    shown = "".join(draw_panels([run], axis="iteration", smoothing=1, zoom=(2, 3)))
    assert set(re.findall(r'data-x="([\d.]+ [\d.]+) ', shown)) == {"2.0 3.0"}


def test_the_mean_of_runs_has_the_range_of_their_values():
    first = a_run("a-0", train__return=[1, 2, 3, 4])
    short = Curves("a-1", {"iteration": np.array([1.0, 2.0]), "train/return": np.array([3.0, 4.0])})
    group = mean_curves("a", [first, short], color=3)
    assert group.points("train/return", "iteration").tolist() == [[1, 2], [2, 3], [3, 3], [4, 4]]
    low, high = group.band("train/return", "iteration")
    assert [y for _, y in low] == [1, 2, 3, 4]
    assert [y for _, y in high] == [3, 4, 3, 4]
    assert 'class="band"' in drawn(group, a_run("b", train__return=[1, 2, 3, 4]))


def test_missing_values_leave_no_point():
    run = a_run(aux__loss=[1, np.nan, 3, np.inf])
    assert run.points("aux/loss", "iteration").tolist() == [[1.0, 1.0], [3.0, 3.0]]
    assert run.points("aux/loss", "tokens").tolist() == []


def test_a_run_of_any_length_is_drawn_with_few_points():
    many = 50_000
    columns = {
        "iteration": np.arange(many * 1.0),
        "train/return": np.random.default_rng(0).random(many),
    }
    shown = drawn(Curves("a", columns))
    assert len(shown) < 60_000
    assert re.search(r'data-x="[\d.]+ 49999\.0 ', shown)  # the axis ends with the data


def test_nothing_is_drawn_of_nothing():
    assert "Nothing yet" in drawn(Curves("a", {}))


def test_returns_against_opponents_share_a_chart():
    columns = {f"train/return/{name}": np.array([0.5]) for name in ("latest", "script:nash")}
    drawn = "".join(
        draw_panels(
            [Curves("a", {"iteration": np.array([1.0]), **columns}, [])],
            axis="iteration",
            smoothing=1,
        )
    )
    assert "Return by opponent" in drawn
    assert "script:nash" in drawn
    assert "train/return/" not in drawn


def test_samplers_have_a_section_and_are_no_agent():
    waits = {
        "sampler__rollouts_wait_seconds": [0, 1, 2, 1],
        "sampler__weights_wait_seconds": [3, 0, 0, 1],
    }
    shown = drawn(a_run(aux__loss=[1, 2, 3, 4], sampler__policy_age=[0, 1, 2, 2], **waits))
    assert titles(shown) == ["Return", "Loss", "Age of the sampling weights", "Waits"]
    assert ">Samplers</h2>" in shown
    lines = ["learner, for rollouts", "samplers, for weights"]
    assert re.findall(r'data-name="([^"]+)"', shown)[-2:] == lines
