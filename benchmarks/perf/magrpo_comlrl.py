"""Worker with the peer of `magrpo_step`: `comlrl.trainers.reinforce.MAGRPOTrainer`.

A round is one call of `train()` over the tasks. `rollout_buffer_size` is the number of nodes, so
that each agent takes one optimizer step, as on the other side.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.perf.comlrl_side import about, common_arguments, measured_training
from benchmarks.perf.common import Measurement, serve
from benchmarks.perf.work import Work, story_reward

__all__ = ["build", "prepare"]


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Build the trainer; not timed."""
    return measured_training(build(setup), "_generate_completions"), about()


def build(setup: dict[str, Any]) -> Any:  # noqa: ANN401 - no types there
    """Return a trainer with one epoch over all tasks."""
    import torch
    from comlrl.trainers.reinforce import MAGRPOConfig, MAGRPOTrainer

    dtype = setup.pop("dtype")
    work = Work(**setup)
    nodes = len(work.prompts) * sum(work.group_size**turn for turn in range(work.turns))
    return MAGRPOTrainer(
        agents=[work.model] * len(work.agents),
        num_agents=len(work.agents),
        model_config={"torch_dtype": getattr(torch, dtype)},
        reward_func=story_reward,
        args=MAGRPOConfig(
            num_train_epochs=1,
            num_agents=len(work.agents),
            num_turns=work.turns,
            num_generations=work.group_size,
            max_new_tokens=work.max_new_tokens,
            temperature=work.temperature,
            top_p=work.top_p,
            top_k=0,
            agent_learning_rate=work.learning_rate,
            rollout_buffer_size=nodes,
            train_batch_size=nodes,
            advantage_normalization=False,
            early_termination_threshold=None,
            external_prompt_passthrough=True,
            eval_interval=0,
        ),
        **common_arguments(work),
    )


if __name__ == "__main__":
    serve(prepare)
