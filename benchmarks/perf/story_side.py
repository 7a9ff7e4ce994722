"""Worker of either side of `story_curve`: a training step and the held-out reward.

Held-out prompts are answered by `generate` of the models on both sides, and not timed.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.perf.common import Measurement, serve
from benchmarks.perf.work import story_reward

__all__ = ["prepare"]


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Build a side; not timed.

    Args:
        setup: Setup of the sides of `magrpo_step`, `held_out` (prompts), `samples`, and `precision`
            for mlrl.
    """
    held_out, samples = setup.pop("held_out"), setup.pop("samples")
    precision, length = setup.pop("precision", None), setup["max_new_tokens"]
    if precision is not None:
        from benchmarks.perf.step_ours import build as build_ours

        learner, step = build_ours(setup)
        step = functools.partial(step, precision=precision)
        tokenizer = next(iter(learner.policies.values())).tokenizer
        models = [learner.policies[learner.policy_of[agent]].model for agent in held_out[0]]
    else:
        from benchmarks.perf.comlrl_side import measured_training
        from benchmarks.perf.magrpo_comlrl import build as build_peer

        trainer = build_peer(setup)
        step, models = measured_training(trainer, "_generate_completions"), trainer.agents
        tokenizer = trainer.tokenizers[0]
    earn = functools.partial(_earned, models, tokenizer, held_out, samples, length)

    def work(seed: int, train: str = "yes") -> Measurement:
        measured = step(seed) if train == "yes" else {"seconds": 0.0}
        return {"seconds": measured["seconds"], "reward": earn(seed)}

    return work, {"name": "comlrl" if precision is None else f"mlrl, {precision}"}


def _earned(
    models: Sequence[Any],
    tokenizer: Any,  # noqa: ANN401 - transformers has no types
    prompts: Sequence[Mapping[str, str]],
    samples: int,
    length: int,
    seed: int,
) -> float:
    """Return the mean published reward of pairs of answers."""
    import torch

    torch.manual_seed(1_000_000 + seed)
    texts = [
        _answers(model, tokenizer, [prompt[agent] for prompt in prompts], samples, length)
        for agent, model in zip(prompts[0], models, strict=True)
    ]
    rewards = story_reward(texts[0], texts[-1])
    return sum(rewards) / len(rewards)


def _answers(
    model: Any,  # noqa: ANN401
    tokenizer: Any,  # noqa: ANN401
    prompts: Sequence[str],
    samples: int,
    length: int,
) -> list[str]:
    import torch

    chats = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        for prompt in prompts
    ]
    tokenizer.padding_side = "left"
    inputs = tokenizer(chats, return_tensors="pt", padding=True, add_special_tokens=False)
    model.eval()
    with torch.no_grad():
        rows = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            do_sample=True,
            temperature=0.8,
            top_p=0.95,
            top_k=0,
            max_new_tokens=length,
            num_return_sequences=samples,
        )
    return list(
        tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    )


if __name__ == "__main__":
    serve(prepare)
