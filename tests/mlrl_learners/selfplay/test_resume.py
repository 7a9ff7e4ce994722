"""Runs with a pool of snapshots that are interrupted, and continue as if they were not."""

import json

import pytest

import mlrl_learners
from mlrl_learners.actors import ScriptActor
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.selfplay.snapshots import SnapshotPool
from mlrl_learners.training import loop

ITERATIONS = 5
OPPONENTS = OpponentsConfig(
    {"player_1": {"snapshots": 3, "latest": 1, "script:nash": 1}},
    {"player_0": "snapshots"},
    snapshot_every=1,
    keep_snapshots=2,
)
OPTIONS = {
    "group": {"size": 2},
    "sampling": {"max_new_tokens": 3},
    "optimizer": {"lr": 1e-2},
    "team": {"share_weights": True},
}
KINDS = {
    "weights": {"baseline": {"kind": "role_ema"}},
    "adapters": {"lora": {"rank": 2}},
}


class Killed(BaseException):
    """Stands for a kill, which nothing catches."""


def train(run_dir, options):
    learner = mlrl_learners.make(
        "magrpo",
        agents=["player_0", "player_1"],
        model="tiny-random",
        **merge_options(OPTIONS, options, {"compute": {"device": "cpu"}}),
    )
    mlrl_learners.train(
        env_id="mlrl/kuhn-v0",
        learner=learner,
        iterations=ITERATIONS,
        tasks_per_iteration=3,
        checkpoint_every=2,
        eval_every=2,
        eval_tasks=2,
        run_dir=run_dir,
        resume=True,
        progress=False,
        opponents=OPPONENTS,
        players={"script:nash": ScriptActor("nash")},
    )


def outcome(run_dir):
    """Return the bytes of all weights, and every record without its times."""
    last = run_dir / "checkpoints" / f"step_{ITERATIONS}"
    folders = [last, *sorted((run_dir / "snapshots").iterdir())]
    files = {
        str(file.relative_to(run_dir)): file.read_bytes()
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    records = {}
    for name in ("metrics", "episodes", "evaluations"):
        lines = (run_dir / f"{name}.jsonl").read_text().splitlines()
        records[name] = [
            {k: v for k, v in json.loads(line).items() if "second" not in k} for line in lines
        ]
    return files, records


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    """Return the outcome of an uninterrupted run of each kind, made when it is asked for."""
    found = {}

    def of(kind):
        if kind not in found:
            folder = tmp_path_factory.mktemp("whole") / "run"
            train(folder, KINDS[kind])
            found[kind] = outcome(folder)
        return found[kind]

    return of


def die_at(monkeypatch, owner, name, call, *, after):
    """Let the call of a function with a number raise, before or after its work."""
    whole, calls = getattr(owner, name), []

    def dying(*args, **options):
        calls.append(1)
        if len(calls) == call and not after:
            raise Killed
        result = whole(*args, **options)
        if len(calls) == call:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, dying)


@pytest.mark.parametrize(
    ("kind", "owner", "name", "call", "after"),
    [
        ("weights", SnapshotPool, "take", 1, True),
        ("weights", SnapshotPool, "take", 4, False),
        ("weights", SnapshotPool, "take", 4, True),
        ("weights", loop, "write_checkpoint", 2, False),
        ("weights", loop, "write_checkpoint", 2, True),
        ("weights", SnapshotPool, "prune", 2, True),
        ("adapters", SnapshotPool, "take", 5, True),
    ],
)
def test_a_run_with_a_pool_that_is_interrupted_ends_bit_identical(
    wholes, monkeypatch, tmp_path, kind, owner, name, call, after
):
    with monkeypatch.context() as patched:
        die_at(patched, owner, name, call, after=after)
        with pytest.raises(Killed):
            train(tmp_path, KINDS[kind])
    train(tmp_path, KINDS[kind])
    files, records = outcome(tmp_path)
    expected_files, expected_records = wholes(kind)
    assert files == expected_files
    assert records == expected_records


def test_a_run_of_opponents_draws_from_its_pool(wholes):
    _, records = wholes("weights")
    names = {n for each in records["episodes"] for n in each["opponents"].values()}
    assert any(name.startswith("snapshots:") for name in names)


def test_the_learners_metrics_leave_its_opponents_out(wholes):
    _, records = wholes("weights")
    last = records["metrics"][-1]
    assert "train/return/snapshots" in last or "train/return/latest" in last
    assert {"player_0/baseline", "player_1/baseline"} <= set(last)
