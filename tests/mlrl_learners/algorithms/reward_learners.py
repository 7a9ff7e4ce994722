"""Learners whose rewards are changed before the update, on a tiny model."""

import mlrl_learners
from mlrl_learners.config.option_places import merge_options

AGENTS = ("left", "right")
FAMILIES = ["magrpo", "ippo"]
PLAIN = {"ippo": {"optimizer": {"epochs": 1}, "advantage": {"normalize": False}}}


def make(name="magrpo", seed=0, agents=AGENTS, **options):
    small = merge_options(
        {"model": "tiny-random", "sampling": {"max_new_tokens": 8, "temperature": 1.0}},
        PLAIN.get(name, {}),
    )
    return mlrl_learners.make(name, agents=agents, seed=seed, **merge_options(small, options))
