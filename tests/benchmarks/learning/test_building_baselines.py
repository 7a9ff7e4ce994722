import json
import os

import pytest

from benchmarks.learning import building_baselines as baselines

needs_data = pytest.mark.skipif(
    "MLRL_DATA_DIR" not in os.environ, reason="published tasks are in MLRL_DATA_DIR"
)
STORED = json.loads(baselines.RESULTS.read_text("utf-8"))["scripts"]


@needs_data
@pytest.mark.parametrize("env_id", baselines.ENVS)
@pytest.mark.parametrize("builder", [name for name in baselines.BUILDERS if name != "random"])
def test_scripted_builders_earn_what_is_stored(env_id, builder):
    assert baselines.measure(env_id, builder) == STORED[builder][env_id]


@needs_data
def test_random_commands_are_accepted_ones():
    import random

    import mlrl_envs

    env = mlrl_envs.make(baselines.ENVS[0], split="all")
    env.reset(seed=0)
    reference = {agent: text.splitlines() for agent, text in env.reference_actions().items()}
    lines = baselines.BUILDERS["random"][1](reference, random.Random(0))
    actions = dict(zip(reference, map("\n".join, lines), strict=True))
    infos = env.step(actions)[-1]
    for agent, drawn in actions.items():
        status = infos[agent]["diagnostics"]["checks"][0]["status"]
        assert status == f"{len(drawn.splitlines())} accepted, 0 refused"


def test_the_table_of_the_page_is_that_of_the_results():
    page = baselines.PAGE.read_text("utf-8")
    for builder, by_env in STORED.items():
        row = next(line for line in page.splitlines() if baselines.BUILDERS[builder][0] in line)
        assert f"{100 * by_env[baselines.ENVS[1]]['iou']:.1f}" in row
