"""Worker of `memory`: sampling and updates of a team of any number of agents."""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.perf.common import Measurement, peak_rss_mib, serve, versions
from benchmarks.perf.versus import story_prompts

if TYPE_CHECKING:
    from mlrl_learners.types import Rollout


def prepare(setup: dict[str, Any]) -> tuple[Callable[[int], Measurement], dict[str, object]]:
    """Build the learner; agents alternate between the prompts of the story task."""
    import mlrl_learners

    compute = {name: setup[name] for name in ("precision", "micro_batch_tokens") if name in setup}
    learner: Any = mlrl_learners.make(
        "magrpo",
        agents=[f"agent_{number}" for number in range(setup["agents"])],
        model=setup["model"],
        lora={"rank": setup["lora_rank"]},
        group={"size": setup["group_size"]},
        baseline={"skip_equal_groups": False},
        sampling={"max_new_tokens": setup["max_new_tokens"]},
        compute=compute,
    )
    texts = [list(prompts.values()) for prompts in story_prompts(setup["tasks"])]
    weights = sum(weight.numel() for weight in learner.policies["agent_0"].parameters())

    def work(seed: int) -> Measurement:
        rollouts = _rollouts(learner, texts, seed)
        start = time.perf_counter()
        metrics = learner.update(rollouts)
        return {
            "update_seconds": time.perf_counter() - start,
            "peak_rss_mib": peak_rss_mib(),
            "weights_an_agent": float(weights),
            "grad_norm": metrics["agent_0/grad_norm"],
        }

    return work, {**versions(["mlrl", "torch", "transformers", "peft"])}


def _rollouts(learner: Any, texts: Sequence[Sequence[str]], seed: int) -> list["Rollout"]:  # noqa: ANN401
    """Sample the answers of all agents to all tasks, with random rewards."""
    from mlrl_learners.types import JointStep, Node, Rollout

    draw = Random(seed)  # noqa: S311 - reproducible on purpose
    observations = [
        {agent: read[place % len(read)] for place, agent in enumerate(learner.agents)}
        for read in texts
    ]
    size = learner.config.group.size
    rollouts = []
    for number, (observed, answers) in enumerate(
        zip(observations, learner.act(observations, num_samples=size), strict=True)
    ):
        steps = []
        for sample in range(size):
            reward = draw.random()
            rewards = dict.fromkeys(learner.agents, reward)
            samples = dict.fromkeys(learner.agents, sample)
            steps.append(JointStep(samples, rewards, {}, {}, terminated=True, truncated=False))
        completions = {agent: tuple(group) for agent, group in answers.items()}
        root = Node(0, observed, completions, tuple(steps))
        rollouts.append(Rollout("memory", str(number), learner.agents, root))
    return rollouts


if __name__ == "__main__":
    serve(prepare)
