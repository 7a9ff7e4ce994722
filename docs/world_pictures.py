"""Pictures for the docs: worlds of unfinished answers to two tasks, and named workflows.

python docs/world_pictures.py
"""

from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.report.workflow_picture import workflow_picture
from mlrl_learners.report.world_picture import world_picture

__all__ = ["pictures"]

IMAGES = Path(__file__).parent / "images"
# Name, id, task, share of the reference's lines, and lines that are wrong.
SHOWN = (
    ("strbuild", "mlrl/strbuild-v0", 5, 0.8, "/setblock 5 1 0 stone\n/setblock 6 4 0 oak_planks"),
    ("housebuild", "mlrl/housebuild-v0", 0, 0.7, "/fill 5 0 2 5 2 2 white_concrete"),
)
WORKFLOWS: dict[str, dict[str, int]] = {"critic": {"rounds": 2}, "debate": {}, "mixture": {}}


def pictures() -> dict[str, str]:
    """Return the pictures by file name."""
    found = {
        f"workflow_{name}.svg": _workflow(name, options) for name, options in WORKFLOWS.items()
    }
    for name, env_id, task, share, wrong in SHOWN:
        env: Any = mlrl_envs.make(env_id, split="sample")
        env.reset(seed=0, options={"task_index": task})
        actions = {}
        for agent, text in env.reference_actions().items():
            lines = text.splitlines()
            actions[agent] = "\n".join(lines[: round(share * len(lines))])
        actions["builder_1"] += f"\n{wrong}"
        *_, infos = env.step(actions)
        world = infos["builder_1"]["diagnostics"]["world"]
        found[f"{name}.svg"] = f"{world_picture(world, standalone=True)}\n"
    return found


def _workflow(name: str, options: dict[str, int]) -> str:
    graph = {"shape": name, **options}
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0, workflow=graph)
    return f"{workflow_picture(env.metadata['workflow'], standalone=True)}\n"


if __name__ == "__main__":
    for file, text in pictures().items():
        (IMAGES / file).write_text(text, "utf-8")
