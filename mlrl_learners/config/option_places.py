"""Places of learner options: the group and field of every option that once had a flat name.

`PLACES` is the only table of old names. Learners accept `group_size` as a short form of
`group.size`, because it is part of the public interface; they refuse the other old names and tell
their place. Configurations of stored runs are converted by `grouped`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mlrl_learners.registry import BUILT_IN

__all__ = [
    "ACCEPTED",
    "PLACES",
    "grouped",
    "has_groups",
    "merge_options",
    "option_path",
    "place_of",
]

_GROUPS: Mapping[str, str] = {
    "team": "share_weights policies frozen system_prompts max_prompt_tokens",
    "compute": "dtype precision device model_options gradient_checkpointing fsdp max_rows "
    "micro_batch_tokens",
    "sampling": "max_new_tokens temperature top_p top_k renormalize",
    "optimizer": "lr weight_decay beta1 beta2 max_grad_norm schedule warmup_steps total_steps "
    "epochs num_minibatches",
    "group": "joint_mode branching",
    "credit": "turn_weights",
    "baseline": "ema_decay normalize_std std_epsilon normalize_batch skip_equal_groups",
    "loss": "clip_low clip_high beta use_reference",
    "penalty": "overlong overlong_penalty kl_coef kl_estimator kl_in entropy_coef",
    "critic": "value_coef value_clip",
    "advantage": "gae_lambda bootstrap_truncated",
    "preferences": "num_pairs held_out",
    "examples": "filter_reward predict batch_size",
}

PLACES: Mapping[str, tuple[str, ...]] = {
    **{name: (f"{group}.{name}",) for group, names in _GROUPS.items() for name in names.split()},
    "lora_rank": ("lora.rank",),
    "lora_alpha": ("lora.alpha",),
    "lora_targets": ("lora.targets",),
    "group_size": ("group.size",),
    "gamma": ("preferences.gamma", "credit.gamma"),
    "credit": ("credit.kind",),
    "baseline": ("baseline.kind",),
    "loss": ("loss.kind",),
    "label_smoothing": ("reward_model.label_smoothing", "loss.label_smoothing"),
    "critic": ("critic.kind",),
    "critic_model": ("critic.model",),
    "critic_lr": ("critic.lr",),
    "normalize_advantages": ("advantage.normalize",),
    "episodes": ("examples.episodes", "preferences.episodes"),
    "reward_model": ("reward_model.model",),
    "reward_lr": ("reward_model.lr",),
    "reward_epochs": ("reward_model.epochs",),
    "normalize_rewards": ("reward_model.normalize_rewards",),
}
"""Places of each old name; of several, the first whose group the learner has."""

ACCEPTED = ("group_size",)
"""Flat names that learners accept."""

_OWN_GROUPS: Mapping[str, Collection[str]] = {
    "madpo": ("preferences",),
    "dpo": ("preferences",),
    "marlhf": ("preferences", "reward_model"),
    "sft": ("examples",),
}


def has_groups(learner: str) -> bool:
    """Return whether a learner is one of this package, whose options are in groups."""
    return any(spec.name == learner for spec in BUILT_IN)


def option_path(learner: str, path: Sequence[str]) -> list[str]:
    """Return the path of an option, with an accepted flat name replaced by its group and field."""
    if len(path) == 1 and path[0] in ACCEPTED and has_groups(learner):
        return PLACES[path[0]][0].split(".")
    return list(path)


def place_of(name: str, groups: Collection[str]) -> str | None:
    """Return the place `group.field` of an old option name; None for other names.

    Args:
        name: Name of an option.
        groups: Names of the groups of the learner.
    """
    places = PLACES.get(name)
    if not places:
        return None
    return next((each for each in places if each.partition(".")[0] in groups), places[-1])


def grouped(learner: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with all old flat names moved to their groups.

    Args:
        learner: Name of a learner; options of learners without groups are returned as they are.
        options: Options, flat or in groups; of two values for one field, the last is taken.
    """
    if not has_groups(learner):
        return dict(options)
    parts: list[Mapping[str, Any]] = []
    for name, value in options.items():
        place = place_of(name, _OWN_GROUPS.get(learner, ()))
        if place is None or (name == place.partition(".")[0] and isinstance(value, Mapping)):
            parts.append({name: value})  # in its group already
        else:
            group, _, field = place.partition(".")
            parts.append({group: {field: value}})
    return merge_options(*parts)


def merge_options(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the union of options; later fields of a group replace earlier ones."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            before = merged.get(name)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                merged[name] = {**before, **value}
            else:
                merged[name] = value
    return merged
