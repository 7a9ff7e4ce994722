"""Presets: configurations by name.

A preset is a YAML file in `mlrl_learners/presets/`: one for each task, and one for each family of
methods that needs settings of its own. Learners that share all settings of a file but their name
have an entry in `VARIANTS` instead of a copy of the file. Any other registered learner has the
settings of `story`, or of `grpo` if it trains a single agent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.yaml import read_yaml
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.registry import registry

__all__ = ["PRESETS", "VARIANTS", "Variant", "preset_file", "presets", "read_source"]

PRESETS = Path(__file__).parents[1] / "presets"


@dataclass(frozen=True, slots=True)
class Variant:
    """A preset that is the file of another preset with another learner.

    Attributes:
        base: Name of the preset whose file is read.
        summary: One line for `mlrl list`.
        options: Options of the learner, set on top of those of the file.
    """

    base: str
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)


_STORY = "two agents, SmolLM2-135M each, on the story task"
_ONE_AGENT = "one agent, SmolLM2-135M, two turns of HumanEval"

VARIANTS: Mapping[str, Variant] = {
    "magrpo": Variant("story", f"{_STORY}; baseline: mean of the group"),
    "mareinforce": Variant("story", f"{_STORY}; no baseline"),
    "marloo": Variant("story", f"{_STORY}; leave-one-out baseline"),
    "maremax": Variant("story", f"{_STORY}; baseline: best of the group"),
    "ippo": Variant("story", f"{_STORY}; one critic per agent, 10 GB of memory"),
    "mappo": Variant("story", f"{_STORY}; one central critic"),
    "iac": Variant("story", f"{_STORY}; one-step advantages, one critic per agent"),
    "maac": Variant("story", f"{_STORY}; one-step advantages, one central critic"),
    "rloo": Variant("grpo", f"{_ONE_AGENT}; leave-one-out baseline"),
    "reinforce_pp": Variant("grpo", f"{_ONE_AGENT}; advantages normalised over the batch"),
    "ppo": Variant(
        "grpo", f"{_ONE_AGENT}; critic: a value head", {"critic": {"kind": "value_head"}}
    ),
}
"""Presets without a file of their own, by the name of their learner.

`mlrl train marloo` is `mlrl train story --learner.name marloo`.
"""


def presets() -> dict[str, str]:
    """Return the names of all presets, each with one line about it."""
    lines = {
        path.stem: path.read_text("utf-8").split("\n", 1)[0].lstrip("# ")
        for path in PRESETS.glob("*.yaml")
    }
    names = {*VARIANTS, *registry} - lines.keys()
    lines.update({name: _variant(name).summary for name in names})
    return dict(sorted(lines.items()))


def preset_file(name: str) -> Path:
    """Return the file that a preset is read from.

    Raises:
        UnknownNameError: If there is no such preset.
    """
    if name not in presets():
        raise unknown_name("preset", name, presets())
    own = PRESETS / f"{name}.yaml"
    return own if own.is_file() else PRESETS / f"{_variant(name).base}.yaml"


def read_source(source: str | Path) -> object:
    """Return the parsed YAML of a preset or of a file; a file wins over a preset of its name.

    Raises:
        UnknownNameError: If there is no such preset or file.
        ConfigError: If the file is not YAML.
    """
    path = Path(source)
    if path.is_file():
        return read_yaml(path)
    if path.is_dir() and str(source) not in presets():
        raise ConfigError(
            f"{str(source)!r} is a folder: give a preset or a YAML file; a run is continued with "
            f"--run-dir {source} --resume"
        )
    if path.suffix in (".yaml", ".yml") or path.parent != Path():
        beside = [str(other) for other in path.parent.glob("*.y*ml")]
        raise unknown_name("configuration file", str(source), beside)
    name = str(source)
    file = preset_file(name)
    raw: Any = read_yaml(file)
    if file.stem != name:
        options = merge_options(raw["learner"]["options"], _variant(name).options)
        raw["learner"] = {**raw["learner"], "name": name, "options": options}
    return raw


def _variant(name: str) -> Variant:
    """Return the entry of a learner, or the default of registered learners without one."""
    if name in VARIANTS:
        return VARIANTS[name]
    spec = registry[name]
    return Variant("grpo" if spec.max_agents == 1 else "story", spec.summary)
