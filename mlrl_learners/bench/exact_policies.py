"""Exact policies of actors in games with few states, and their NashConv.

The policy of a scripted player follows from the script. That of a learner with `transformers`
policies consists of the probabilities of the legal answers at its temperature, without top-p and
top-k; the rest of the mass is spread over the moves, as `illegal="random"` does
(`mlrl_envs.games.questions`). Other actors have none.
"""

import math
from collections.abc import Sequence
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.games import Policy, Question, mixed_policy, nash_conv, policy_of, questions
from mlrl_learners.actors import ScriptActor
from mlrl_learners.types import Actor

__all__ = ["actor_policy", "has_exact_measure", "nash_conv_of"]

MAX_QUESTIONS = 5000


def has_exact_measure(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    """Return whether an environment is a game with few enough states to enumerate."""
    game = getattr(getattr(env, "family", None), "game", None)
    return game is not None and game.roots() is not None


def nash_conv_of(actor: Actor, env: Any) -> float | None:  # noqa: ANN401 - a game
    """Return the NashConv of an actor that plays all agents; None if it is not known exactly."""
    try:
        policy = actor_policy(actor, env)
        return None if policy is None else nash_conv(env.family.game, policy)
    except InvalidArgumentError:  # too many states, or a script whose policy is not known
        return None


def actor_policy(actor: Actor, env: Any) -> Policy | None:  # noqa: ANN401 - a game
    """Return the policy of an actor in a game, or None if it is not known exactly.

    Raises:
        InvalidArgumentError: If the game has too many states, or the actor is a script whose policy
            is not known.
    """
    if isinstance(actor, ScriptActor):
        return mixed_policy(env.family.game, actor.script)
    if not (hasattr(actor, "prompt_ids") and hasattr(actor, "policies")):
        return None
    asked = questions(env.family)
    if len(asked) > MAX_QUESTIONS:
        return None
    return policy_of(asked, _answer_chances(actor, asked))


def _answer_chances(team: Any, asked: Sequence[Question]) -> list[list[float]]:  # noqa: ANN401 - a Team
    """Return the probability of each legal answer of each question, end of text included."""
    import torch

    from mlrl_learners.engine import TokenRow

    chances: dict[tuple[int, int], float] = {}
    for name, policy in team.policies.items():
        rows, places = [], []
        for number, question in enumerate(asked):
            if team.policy_of[question.agent] != name:
                continue
            prompt = team.prompt_ids(question.agent, question.prompt)
            for place, answer in enumerate(question.answers):
                ids = policy.tokenizer(answer, add_special_tokens=False)["input_ids"]
                for end in sorted(policy.eos_ids):
                    rows.append(TokenRow(prompt, [*ids, end]))
                    places.append((number, place))
        with torch.no_grad():
            for batch in policy.micro_batches(rows, team.config.compute.micro_batch_tokens):
                found, _ = policy.logprobs(
                    [rows[i] for i in batch],
                    temperature=team.config.sampling.temperature,
                    with_entropy=False,
                )
                parts = found.double().split([len(rows[i].token_ids) for i in batch])
                for i, part in zip(batch, parts, strict=True):
                    chance = math.exp(float(part.sum()))
                    chances[places[i]] = chances.get(places[i], 0.0) + chance
    return [
        [min(chances[number, place], 1.0) for place in range(len(question.answers))]
        for number, question in enumerate(asked)
    ]
