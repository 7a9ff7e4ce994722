import json
import signal
from pathlib import Path

import numpy as np
import pytest

import mlrl_learners
from mlrl_envs.errors import ContractError, InfraError
from mlrl_learners.errors import ConfigError, NumericsError, RunDirError
from mlrl_learners.runs import lock
from mlrl_learners.runs.directory import RunDir
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Completion, Node, Nucleus, Rollout, RolloutConfig
from mlrl_learners.types.contract import check_metrics


class Fixed(ScriptedActor):
    """Learns nothing; counts."""

    def __init__(self, text="1", fail_at=None):
        super().__init__(lambda _agent, _observation: text)
        self.updates, self.fail_at = 0, fail_at

    def update(self, rollouts):
        self.updates += 1
        if self.updates == self.fail_at:
            raise NumericsError("the loss is nan")
        return {"updates": float(self.updates)}

    def save(self, path):
        (path / "updates").write_text(str(self.updates))

    def load(self, path):
        self.updates = int((path / "updates").read_text())


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def run(env_id, run_dir, learner=None, **options):
    defaults = {"iterations": 3, "tasks_per_iteration": 2, "progress": False}
    return mlrl_learners.train(
        env_id=env_id,
        learner=learner or Fixed(),
        run_dir=run_dir,
        **{**defaults, **options},
    )


def test_a_run_writes_a_line_an_iteration_and_a_line_a_rollout(addition_env, tmp_path):
    result = run(addition_env, tmp_path)
    assert (result.iterations, result.interrupted) == (3, False)
    assert [m["iteration"] for m in lines(tmp_path / "metrics.jsonl")] == [1, 2, 3]
    assert [(e["iteration"], e["rollout"]) for e in lines(tmp_path / "episodes.jsonl")] == [
        (i, r) for i in (1, 2, 3) for r in (0, 1)
    ]
    assert (tmp_path / "environment.json").exists()


def test_a_learner_refuses_a_way_of_walking_before_anything_is_played(addition_env, tmp_path):
    class Choosy(Fixed):
        def act(self, observations, **_):
            pytest.fail("it was asked")

        def check_rollout(self, rollout):
            raise ConfigError(f"not with {rollout.num_samples}")

    with pytest.raises(ConfigError, match="not with 7"):
        run(addition_env, tmp_path / "run", Choosy(), rollout=RolloutConfig(7), eval_every=1)
    assert not (tmp_path / "run").exists()


def test_bootstrapping_at_a_limit_that_ends_the_task_is_refused_before_anything_is_written(
    tmp_path,
):
    learner = mlrl_learners.make(
        "ippo",
        agents=("setup", "story"),
        model="tiny-random",
        advantage={"bootstrap_truncated": True},
    )
    with pytest.raises(ConfigError, match=r"metadata\['artificial_limit'\] of .* is not true"):
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options={"split": "sample"},
            learner=learner,
            iterations=1,
            run_dir=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


def test_every_agents_tokens_a_second_are_logged_at_each_update(addition_env, tmp_path):
    run(addition_env, tmp_path)
    for record in lines(tmp_path / "metrics.jsonl"):
        mine = [record[f"{agent}/tokens_per_second"] for agent in ("left", "right")]
        assert sum(mine) == pytest.approx(record["time/tokens_per_second"])


def test_a_folder_that_holds_a_run_is_not_written_over(addition_env, tmp_path):
    run(addition_env, tmp_path)
    with pytest.raises(RunDirError, match="holds a run already"):
        run(addition_env, tmp_path)


def test_a_folder_in_which_a_run_goes_on_is_refused_until_it_ends(
    addition_env, tmp_path, monkeypatch
):
    monkeypatch.setattr(lock, "SECONDS", 0.0)
    run(addition_env, tmp_path, iterations=1)
    before = (tmp_path / "metrics.jsonl").read_text()
    held = lock.hold_folder(tmp_path)
    with pytest.raises(RunDirError, match="is written by another run that has not ended"):
        run(addition_env, tmp_path, iterations=2, resume=True)
    assert (tmp_path / "metrics.jsonl").read_text() == before
    held.close()
    assert run(addition_env, tmp_path, iterations=2, resume=True).iterations == 2


def test_a_resumed_run_goes_on_from_its_checkpoint(addition_env, tmp_path):
    run(addition_env, tmp_path, iterations=2)
    learner = Fixed()
    run(addition_env, tmp_path, learner, iterations=5, resume=True)
    assert learner.updates == 5
    assert [m["updates"] for m in lines(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4, 5]


def test_a_run_from_before_a_setting_of_rollouts_is_resumed(addition_env, tmp_path):
    run(addition_env, tmp_path, iterations=1)
    config = tmp_path / "config.yaml"
    kept = [line for line in config.read_text().splitlines() if "num_rollouts" not in line]
    config.write_text("\n".join(kept))
    assert run(addition_env, tmp_path, iterations=2, resume=True).iterations == 2


def test_resuming_with_another_configuration_names_the_key(addition_env, tmp_path):
    run(addition_env, tmp_path)
    with pytest.raises(RunDirError, match=r"train\.seed was 0, now 1"):
        run(addition_env, tmp_path, resume=True, seed=1)


def test_only_the_last_checkpoints_are_kept(addition_env, tmp_path):
    run(addition_env, tmp_path, iterations=5, keep_checkpoints=2)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step_4", "step_5"]


def test_what_came_after_the_checkpoint_is_set_aside_not_lost(addition_env, tmp_path):
    with pytest.raises(NumericsError):
        run(addition_env, tmp_path, Fixed(fail_at=4), iterations=6, checkpoint_every=2)
    run(addition_env, tmp_path, iterations=6, checkpoint_every=2, resume=True)
    assert [m["iteration"] for m in lines(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    abandoned = lines(tmp_path / "episodes.abandoned.jsonl")
    assert [episode["iteration"] for episode in abandoned] == [3, 3, 4, 4]


def test_a_numeric_failure_names_the_saved_rollouts(addition_env, tmp_path):
    with pytest.raises(NumericsError, match=r"iteration 2: the loss is nan; .*rollouts_2.json"):
        run(addition_env, tmp_path, Fixed(fail_at=2))
    assert len(json.loads((tmp_path / "rollouts_2.json").read_text())) == 2


def test_rollouts_of_a_failed_update_are_kept_with_their_nuclei(tmp_path):
    nucleus = Nucleus(np.int32([7, 8]), np.int32([2]), np.float32([-0.5]))
    answer = Completion("x", (1,), (7,), (-0.1,), nucleus=nucleus)
    rollout = Rollout("e", "t", ("a",), Node(0, {"a": "?"}, {"a": (answer,)}, ()))
    folder = RunDir(tmp_path / "run", config={}, environment={}, resume=False)
    (kept,) = json.loads(folder.keep_rollouts(1, [rollout]).read_text())
    (found,) = kept["root"]["completions"]["a"]
    assert found["nucleus"] == {"token_ids": [7, 8], "sizes": [2], "log_masses": [-0.5]}


def test_broken_episodes_are_kept_apart_and_training_goes_on(addition_env, tmp_path):
    options = {"broken": True}
    run(addition_env, tmp_path, env_options=options, tasks_per_iteration=4, iterations=2)
    failed = lines(tmp_path / "failures.jsonl")
    assert [(f["iteration"], f["task_id"]) for f in failed] == [(1, "train/3"), (2, "train/3")]
    assert [m["train/failed_episodes"] for m in lines(tmp_path / "metrics.jsonl")] == [1.0, 1.0]


def test_an_iteration_with_nothing_but_failures_ends_the_run(addition_env, tmp_path, monkeypatch):
    def broken(*_):
        raise InfraError("no worker")

    monkeypatch.setattr("mlrl_envs.step_many", broken)
    with pytest.raises(InfraError, match="every episode of iteration 1 failed: no worker"):
        run(addition_env, tmp_path)


def test_evaluations_come_before_the_first_iteration_and_every_so_often(addition_env, tmp_path):
    run(addition_env, tmp_path, iterations=4, eval_every=2)
    evaluated = lines(tmp_path / "evaluations.jsonl")
    assert [record["iteration"] for record in evaluated] == [0, 2, 4]
    assert {record["split"] for record in evaluated} == {"eval"}


def test_an_interrupt_ends_the_iteration_in_hand_and_saves(addition_env, tmp_path):
    class Impatient(Fixed):
        def update(self, rollouts):
            if self.updates == 1:
                signal.raise_signal(signal.SIGINT)
            return super().update(rollouts)

    result = run(addition_env, tmp_path, Impatient(), iterations=9, checkpoint_every=9)
    assert (result.iterations, result.interrupted) == (2, True)
    assert (tmp_path / "checkpoints" / "step_2").exists()


def test_a_learner_cannot_overwrite_what_the_run_itself_writes(addition_env, tmp_path):
    class Boastful(Fixed):
        def update(self, rollouts):
            return {**super().update(rollouts), "iteration": 101}

    with pytest.raises(ContractError, match=r"Boastful\.update returns the metric 'iteration'"):
        run(addition_env, tmp_path, Boastful())
    assert lines(tmp_path / "metrics.jsonl") == []


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("act", r"Silent\.act must return a list .*; got None"),
        ("update", r"Silent\.update must return a mapping; got None"),
    ],
)
def test_a_method_of_the_learner_that_returns_nothing_is_named(
    method, message, addition_env, tmp_path
):
    silent = type("Silent", (Fixed,), {method: lambda *_, **__: None})()
    with pytest.raises(ContractError, match=message):
        run(addition_env, tmp_path, silent)


def test_a_method_that_takes_other_arguments_is_named_before_anything_is_written(
    addition_env, tmp_path
):
    class Greedy(Fixed):
        def act(self, observations, *, num_samples=1):
            return super().act(observations, num_samples=num_samples)

    with pytest.raises(ContractError, match=r"Greedy\.act must take .* explore"):
        run(addition_env, tmp_path / "run", Greedy())
    assert not (tmp_path / "run").exists()


def test_all_metrics_besides_those_of_the_learner_have_names_it_may_not_use(addition_env, tmp_path):
    run(addition_env, tmp_path, iterations=1, rollout=RolloutConfig(max_resamples=1))
    (line,) = lines(tmp_path / "metrics.jsonl")
    for name in line.keys() - {"updates"}:
        with pytest.raises(ContractError, match=name):
            check_metrics({name: 1.0}, "update")


def test_a_number_outside_its_range_is_named(addition_env, tmp_path):
    with pytest.raises(ConfigError, match="tasks_per_iteration must be at least 1, got 0"):
        run(addition_env, tmp_path, tasks_per_iteration=0)
