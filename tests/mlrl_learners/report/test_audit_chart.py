import xml.etree.ElementTree as ET

import pytest

import mlrl_envs
from mlrl_learners.report.audit_chart import audit_chart


@pytest.mark.parametrize("env_id", ["mlrl/math-v2", "mlrl/story-v1"])
def test_every_family_has_a_row_inside_the_figure(env_id):
    env = mlrl_envs.make(env_id, split="sample", max_turns=1)
    report = mlrl_envs.audit(env, budget=30, tasks=2)
    root = ET.fromstring(audit_chart(report))  # noqa: S314 - made here
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {family.name.replace("_", " ") for family in report.families} <= texts
    height, width = float(root.attrib["height"]), float(root.attrib["width"])
    for element in root.iter():
        for name, most in (("x", width), ("x1", width), ("y", height), ("y2", height)):
            assert 0 <= float(element.attrib.get(name, 0)) <= most


def test_other_answers_have_rows_and_dots_of_their_own():
    env = mlrl_envs.make("mlrl/math-v2", split="sample", max_turns=1)
    report = mlrl_envs.audit(env, budget=30, tasks=2)
    groups = {"people's texts": [0.9, 1.0, -0.5], "models' texts": []}
    drawn, plain = (audit_chart(report, groups=each) for each in (groups, None))
    assert "people&#x27;s texts" in drawn
    assert "models" not in drawn
    assert drawn.count("<circle") == plain.count("<circle") + 3
    assert "mlrl/math-v2, paper" in audit_chart(report, reward="paper")
