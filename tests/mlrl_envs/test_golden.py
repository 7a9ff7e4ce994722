"""The exact prompts, feedback and rewards of every id, recorded in `golden/`.

A changed text needs a new id, because agents that were trained on the old one would read something
else under the same id. Give the environment the next `-vN`, add a line to its version history and
record the file of the new id with the command `RECORD`, which writes missing files and never
changes an existing one. An id without an entry in `VARIANTS` and `SCRIPTS` is played with every
reward it has, with and without communication, by a script that fits any environment.
"""

import os
from pathlib import Path

import pytest

import mlrl_envs
from mlrl_envs.registration import BUILT_IN, BUILT_IN_GAMES, BUILT_IN_TASKS, BUILT_IN_TURNS

RECORD = "MLRL_WRITE_GOLDEN=1 python -m pytest tests/mlrl_envs/test_golden.py"
FOLDER = Path(__file__).parent / "golden"
VARIANTS = {
    "mlrl/story-v1": [{}, {"reward": "paper"}, {"communication": "broadcast"}],
    "mlrl/tldr-v1": [{}, {"reward": "paper"}, {"communication": "broadcast"}],
    "mlrl/arxiv-v1": [{}, {"reward": "paper"}],
    "mlrl/humaneval-v1": [
        {"split": "train", **options}
        for options in ({}, {"num_aux": 0}, {"num_aux": 2}, {"communication": "broadcast"})
    ],
    "mlrl/coophumaneval-v1": [{}, {"num_aux": 0}, {"num_aux": 2}, {"reward": "attempts"}],
    "mlrl/mbpp-v1": [{}, {"num_aux": 0}, {"num_aux": 2}, {"variant": "sanitized"}],
    "mlrl/functions-v0": [{}, {"num_aux": 0}, {"num_aux": 2}, {"reward": "attempts"}],
    "mlrl/classeval-v1": [
        {},
        {"num_coders": 1},
        {"num_coders": 5},
        {"assignment": "by_parameter_count"},
        {"reward": "paper", "communication": "broadcast"},
    ],
    "mlrl/math-v2": [
        {},
        {"num_solvers": 3},
        {"require_steps": True, "communication": "broadcast"},
        {"reward": "paper"},
    ],
    "mlrl/debate-v1": [
        {},
        {"mode": "zero_sum"},
        {"communication": "none"},
        {"reward": "paper"},
    ],
    "mlrl/tools-v1": [{}, {"communication": "broadcast"}, {"reward": "paper"}],
    "mlrl/strbuild-v0": [{}, {"communication": "broadcast"}, {"reward": "paper"}],
    "mlrl/housebuild-v0": [{}, {"reward": "paper"}],
}
GAME_VARIANTS = {
    "mlrl/connect-four-v0": [{"rows": 4, "columns": 4, "connect": 3}, {"opening_moves": 2}],
    "mlrl/liars-dice-v0": [{}, {"num_players": 3, "dice": 2, "faces": 4}],
    "mlrl/hanabi-v0": [{"variant": "small", "num_agents": 3}, {"illegal": "lose"}],
    "mlrl/negotiation-v0": [{}, {"num_agents": 3, "talk": False}],
    "mlrl/network-v0": [
        *({"problem": name, "rounds": 2} for name in ("colouring", "cover", "matching")),
        *({"problem": name, "topology": "geometric"} for name in ("leader", "consensus")),
        {"num_agents": 8, "topology": "scale-free", "rounds": 1},
    ],
    "mlrl/puzzle-v0": [{}, {"kind": "sokoban", "boxes": 2}],
    "mlrl/kuhn-v0": [{}, {"illegal": "retry"}, {"illegal": "lose"}],
    "mlrl/matrix-v0": [
        {},
        {"matrix": "stag-hunt", "talk": True, "rounds": 2},
        {"matrix": "chicken", "illegal": "retry"},
        {"matrix": "coordination", "rounds": 1},
    ],
    "mlrl/nim-v0": [{}, {"misere": True, "num_piles": 2}],
    "mlrl/public-goods-v0": [{}, {"talk": True, "rounds": 2, "num_agents": 3}],
    "mlrl/tictactoe-v0": [{}, {"opening_moves": 2}],
}
MODES = ("plain", "passed", "level_passed", "diagnostics")


def _variants(env_id):
    if env_id in VARIANTS:
        return VARIANTS[env_id]
    rewards = mlrl_envs.make(env_id, split="sample").family.config_type.REWARDS
    return [*({"reward": reward} for reward in rewards), {"communication": "broadcast"}]


def _entries(env_id, options, mode):
    """Yield the first observations, then what each turn adds to them and pays."""
    env = mlrl_envs.make(env_id, **{"split": "sample", "feedback": mode, "max_turns": 4, **options})
    first, _ = env.reset(seed=0, options={"task_index": 0})
    if mode == MODES[0]:
        yield from (f"--- {agent} reads\n{text}" for agent, text in first.items())
    for turn, actions in enumerate(_script(env), start=1):
        later, *_, infos = env.step(actions)
        for agent in env.possible_agents:
            assert later[agent].startswith(first[agent])
            added = later[agent].removeprefix(first[agent])
            yield f"--- feedback {mode}, turn {turn}, {agent} reads also{added}"
            parts = {name: round(v, 6) for name, v in infos[agent]["components"].items()}
            yield f"--- and earned {parts}"


def _script(env):
    """Yield three joint actions: empty, wrong, better."""
    yield dict.fromkeys(env.possible_agents, "")
    yield from SCRIPTS.get(env.metadata["name"], _write_anything)(env)


def _write_anything(env):
    yield {agent: f"This is the answer of {agent}." for agent in env.possible_agents}
    yield env.reference_actions() or dict.fromkeys(env.possible_agents, "A better answer.")


def _write_story(env):
    text = "A city floats among the clouds. Its keeper, Mara, hears an engine cough."
    yield {"setup": text, "story": "The city fell."}
    yield {"setup": text, "story": "Mara ran over the white bridges of the city. " * 3}


def _write_tldr(env):
    summary = "A goat broke through the fence and ate my tomatoes. What do I tell my neighbour?"
    yield {"summary": summary, "elaboration": summary}
    yield {
        "summary": summary,
        "elaboration": "The writer grew forty tomato plants to sell the fruit at the market. "
        "However, a goat pushed through a rotten board during the night and left three of them. "
        "Because the neighbour is old and kind, nobody wants a quarrel about the lost money.",
    }


def _write_arxiv(env):
    background = "Many networks describe the same objects, and it is long known that matching the "
    background += "vertices of sparse graphs is difficult. However, exact methods scale badly."
    yield {"background": background, "complementary": background}
    yield {
        "background": background,
        "complementary": "A local voting scheme is proposed, in which each matched pair votes for "
        "the pairs of its neighbours. The running time is linear in the number of edges, and "
        "experiments on road maps agree with the threshold. As a result, a few seed pairs suffice.",
    }


def _write_code(env):
    name = env.task.entry_point
    helpers = {
        agent: f"```python\ndef {agent}(*args):\n    return len(args)\n```"
        for agent in env.possible_agents[:-1]
    }
    yield {**helpers, "main": f"```python\ndef {name}(*args:\n```"}
    body = f"{min(helpers)}(*args)" if helpers else "[1, 2, 3]"
    yield {**helpers, "main": f"```python\ndef {name}(*args):\n    return {body}\n```"}


def _write_class(env):
    first, *others = env.possible_agents
    right = env.reference_actions()
    stub = "```python\nimport re\n\ndef add(self, day, degrees):\n    pass\n\ndef mean(self:\n```"
    yield {first: stub, **dict.fromkeys(others, right[first])}
    yield {**right, first: right[first].replace("None", "0").replace("limit", "0")}


def _write_math(env):
    yield dict.fromkeys(env.possible_agents, "12 * 18 = 206\n206 - 149 = 57\nAnswer: 57")
    right = "12 * 18 = 216\n216 - 149 = 67\nAnswer: 67"
    yield {**dict.fromkeys(env.possible_agents, "Answer: 60"), env.possible_agents[0]: right}


def _write_debate(env):
    weak = "I agree with my opponent."
    good = (
        "If towns plant apples instead of maples, neighbours get free food, because everybody may "
        "pick what hangs over the path. Bees find blossoms in spring, since these trees bloom "
        "early."
    )
    yield {"pro": weak, "con": weak}
    yield {"pro": good, "con": "Towns have trees. " * 9}


def _write_tools(env):
    right = env.reference_actions()
    wrong = '<tool_call>{"name": "calculator", "parameters": {"expression": "2^3"}}</tool_call>'
    wrong += '<tool_call>{name: search}</tool_call><tool_call>{"name": "ask"}</tool_call>'
    yield {"researcher": wrong, "solver": "<tool_result>7</tool_result><answer>7</answer>"}
    yield {**right, "researcher": right["researcher"] + wrong}


# The joint actions after the empty one: first a wrong one, then a better one.
def _write_commands(env):
    whole = {agent: text.split("\n") for agent, text in env.reference_actions().items()}
    wrong = {agent: [*lines[1:-2], "/summon 1", lines[-1] + "s"] for agent, lines in whole.items()}
    yield {agent: "\n".join(lines) for agent, lines in wrong.items()}
    yield {agent: "\n".join(lines) for agent, lines in whole.items()}


SCRIPTS = {
    "mlrl/story-v1": _write_story,
    "mlrl/tldr-v1": _write_tldr,
    "mlrl/arxiv-v1": _write_arxiv,
    "mlrl/humaneval-v1": _write_code,
    "mlrl/coophumaneval-v1": _write_code,
    "mlrl/mbpp-v1": _write_code,
    "mlrl/functions-v0": _write_code,
    "mlrl/classeval-v1": _write_class,
    "mlrl/math-v2": _write_math,
    "mlrl/debate-v1": _write_debate,
    "mlrl/tools-v1": _write_tools,
    "mlrl/strbuild-v0": _write_commands,
    "mlrl/housebuild-v0": _write_commands,
}


def _game_entries(env_id, options):
    """Yield transcripts of a game: a random one, one of the best script, and one of nonsense."""
    env = mlrl_envs.make(env_id, split="sample", render_mode="ansi", **options)
    for number, script in enumerate(("random", list(env.family.game.scripts)[-1], "")):
        env.reset(options={"task_index": number})
        while env.agents:
            env.step({a: env.scripted_action(a, script) if script else "?" for a in env.acting})
        yield f"--- {script or 'nonsense'}\n{env.render()}"


def _game_texts(env_id):
    lines = []
    for options in GAME_VARIANTS.get(env_id, [{}]):
        lines += [f"===== options {options}", *_game_entries(env_id, options)]
    return "\n".join(lines) + "\n"


def _turn_texts(env_id):
    """Return transcripts of references and of nonsense, played in turns."""
    lines = []
    for options in ({}, {"reward": "team"}, {"communication": "none", "feedback": "passed"}):
        for number, text in enumerate((None, "?", "```python\nassert f(1) == 2\n```")):
            env = mlrl_envs.make(env_id, split="sample", render_mode="ansi", **options)
            env.reset(options={"task_index": number})
            while env.agents:
                actions = dict.fromkeys(env.acting, text) if text else env.reference_actions()
                env.step(actions)
            lines += [f"===== options {options}", f"--- {text or 'reference'}", env.render()]
    return "\n".join(lines) + "\n"


def _texts(env_id):
    if env_id in BUILT_IN_TURNS:
        return _turn_texts(env_id)
    if env_id in BUILT_IN_GAMES:
        return _game_texts(env_id)
    lines = []
    for options in _variants(env_id):
        shown = {name: value for name, value in options.items() if name != "split"}
        lines.append(f"===== options {shown}")
        for mode in MODES:
            lines += _entries(env_id, options, mode)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_texts_of_a_version_never_change(env_id):
    file = FOLDER / f"{env_id.replace('/', '_')}.txt"
    if os.environ.get("MLRL_WRITE_GOLDEN") and not file.exists():
        file.write_text(_texts(env_id))
    assert file.exists(), f"no golden file of {env_id}: record it with {RECORD}"
    assert _texts(env_id) == file.read_text(), "a changed text needs a new version of its id"


@pytest.mark.parametrize("env_id", BUILT_IN_TASKS)
def test_every_id_has_variants_to_keep(env_id):
    assert _variants(env_id)
