"""Worker with the peer of `ippo_step`: `comlrl.trainers.actor_critic.IACTrainer`.

Critics are separate models, and one call of `train()` over the tasks takes one step of every
optimizer, as on the other side.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.perf.comlrl_side import about, common_arguments, measured_training
from benchmarks.perf.common import Measurement, serve
from benchmarks.perf.work import Work, story_reward

__all__ = ["prepare"]


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Build the trainer; not timed."""
    import torch
    from comlrl.trainers.actor_critic import IACConfig, IACTrainer

    dtype = setup.pop("dtype")
    work = Work(**setup)
    answers = len(work.prompts) * work.group_size
    trainer = IACTrainer(
        agents=[work.model] * len(work.agents),
        critics=[work.model] * len(work.agents),
        model_config={"torch_dtype": getattr(torch, dtype)},
        reward_func=story_reward,
        args=IACConfig(
            num_train_epochs=1,
            num_agents=len(work.agents),
            num_turns=1,
            num_generations=work.group_size,
            max_new_tokens=work.max_new_tokens,
            temperature=work.temperature,
            top_p=work.top_p,
            top_k=0,
            agent_learning_rate=work.learning_rate,
            critic_learning_rate=work.learning_rate,
            rollout_buffer_size=answers,
            train_batch_size=answers,
            early_termination_threshold=None,
            eval_interval=0,
        ),
        **common_arguments(work),
    )
    return measured_training(trainer, "_generate_rollout"), about()


if __name__ == "__main__":
    serve(prepare)
