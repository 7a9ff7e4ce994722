"""Training loop: rollouts, update, evaluation and checkpoint in every iteration.

All random numbers follow from the seed and the iteration, or from the learner's own generators: on
the CPU, a resumed run ends with the parameters of an uninterrupted one, bit for bit.
Several processes share one run, see `mlrl_learners.processes.work_sharing`; rank 0 writes files.
"""

import functools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_envs.serve import remote_id
from mlrl_learners.config.env import EnvLike, chosen_env, evaluation_options
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import NumericsError, PeerError
from mlrl_learners.loggers import Logger
from mlrl_learners.processes.work_sharing import exchange, is_main, together
from mlrl_learners.progress import progress_bar
from mlrl_learners.registry import describe
from mlrl_learners.runs.directory import RunDir
from mlrl_learners.runs.provenance import describe_environment
from mlrl_learners.selfplay.own import own_rollout
from mlrl_learners.training.checkpoint import (
    check_resumable,
    checkpoint_iterations,
    latest_checkpoint,
    resume_checkpoint,
    write_checkpoint,
)
from mlrl_learners.training.collection import Collected
from mlrl_learners.training.idle_updates import IdleUpdates
from mlrl_learners.training.interrupt import interruptible
from mlrl_learners.training.metrics import (
    env_metrics,
    evaluation_metrics,
    opponent_metrics,
    rollout_metrics,
    token_metrics,
)
from mlrl_learners.training.open_source import open_source
from mlrl_learners.training.rollout_source import RolloutSource
from mlrl_learners.training.train_plan import (
    TrainPlan,
    TrainResult,
    check_agents,
    draw_of,
    prepare_learner,
)
from mlrl_learners.types import Actor, Learner, Rollout, RolloutConfig
from mlrl_learners.types.contract import check_metrics

__all__ = ["TrainResult", "train"]


def train(
    *,
    learner: Learner,
    iterations: int,
    run_dir: str | Path,
    env_id: str | None = None,
    env: EnvLike | Sequence[Any] | None = None,
    env_options: Mapping[str, Any] | None = None,
    env_server: str | Sequence[str] | None = None,
    rollout: RolloutConfig | None = None,
    tasks_per_iteration: int = 4,
    seed: int = 0,
    checkpoint_every: int = 1,
    keep_checkpoints: int = 2,
    eval_every: int = 0,
    eval_options: Mapping[str, Any] | None = None,
    eval_tasks: int | None = None,
    eval_samples: int = 1,
    token_ids: bool = False,
    loggers: Sequence[Logger] = (),
    resume: bool = False,
    progress: bool = True,
    config: Mapping[str, Any] | None = None,
    opponents: OpponentsConfig | None = None,
    players: Mapping[str, Actor] | None = None,
    ray: RayConfig | None = None,
) -> TrainResult:
    """Train a learner on an environment.

    The first SIGINT or SIGTERM ends the run with a checkpoint after the current iteration.

    Args:
        learner: Learner, trained in place.
        iterations: Number of updates of the whole run; passed to the learner's `plan_updates`.
        run_dir: Folder of the run, created if needed.
        env_id: A registered environment, or a reference `module:name`.
        env: In place of `env_id`, an environment that is copied, a function that makes one, or a
            list of several, see `mlrl_learners.config.env.several_envs`.
        env_options: Arguments of `mlrl_envs.make`.
        env_server: Environment servers, `host:port`.
        rollout: Collection of rollouts; by default `learner.rollout`.
        tasks_per_iteration: Rollout trees per update, at least 1; `offline` learners have none.
        seed: Seed of the order of tasks and of the episodes.
        checkpoint_every: Iterations between checkpoints, at least 1; the last one has one.
        keep_checkpoints: Checkpoints to keep, at least 1.
        eval_every: Iterations between evaluations, with one before the first update; 0 for none.
        eval_options: Further arguments for evaluation; by default the split `"eval"`, if any.
        eval_tasks: Number of tasks per evaluation; None for the whole split.
        eval_samples: Sampled episodes per task, at least 1.
        token_ids: Store the token ids of prompts and answers in `episodes.jsonl`.
        loggers: Loggers beside `metrics.jsonl`.
        resume: Continue from the last checkpoint in `run_dir`.
        progress: Show a progress bar.
        config: Contents of `config.yaml`; by default the arguments of this call.
        opponents: Opponents in training and evaluation; by default the learner plays all agents.
        players: Actor of each opponent besides `latest` and `snapshots`, by its name.
        ray: Sampling by processes that Ray starts; by default the learner samples by itself.

    Raises:
        RunDirError: If `run_dir` cannot be written, or contains another run.
        CheckpointError: If the run to resume has another version of the methods.
        ConfigError: If a number is outside its range, or the learner cannot train on such rollouts,
            with such opponents, for so many iterations or in several processes.
        PeerError: If another process of the run failed or did not answer in time.
        NumericsError: If a loss or gradient is not finite.
        ContractError: If the learner or the environment returns what its contract does not allow.
        InfraError: If infrastructure failed in every episode of an iteration.
        MissingPackageError: If Ray is asked for and not installed.
    """
    env_id, options = chosen_env(env_id, env, env_options)
    plan = TrainPlan(
        env_id=env_id,
        env_options=options,
        rollout=rollout or getattr(learner, "rollout", None) or RolloutConfig(),
        iterations=iterations,
        tasks_per_iteration=tasks_per_iteration,
        seed=seed,
        checkpoint_every=checkpoint_every,
        keep_checkpoints=keep_checkpoints,
        eval_every=eval_every,
        eval_options=evaluation_options(remote_id(env_id, env_server), eval_options),
        eval_tasks=eval_tasks,
        eval_samples=eval_samples,
        opponents=opponents or OpponentsConfig(),
        env_server=env_server,
        ray=ray or RayConfig(),
    )
    with together():
        prepare_learner(learner, plan)
        if resume:  # checked before any file is written
            check_resumable(Path(run_dir))
        made = plan.make_env()
        try:
            if hasattr(learner, "check_env"):
                learner.check_env(made)
            agents = list(getattr(made, "possible_agents", ()))
            check_agents(learner, agents, plan.opponents)
            draw = draw_of(plan, learner, agents, players or {}, Path(run_dir))
            folder = RunDir(
                Path(run_dir),
                config=config or plan.as_config(describe(learner)),
                environment={**describe_environment(), "env": mlrl_envs.fingerprint(made)},
                resume=resume,
                token_ids=token_ids,
            )
            exchange(None)  # wait until the folder exists
            with folder, open_source(plan, learner, made, draw) as source:
                loop = _Loop(plan, learner, source, folder, tuple(loggers), progress=progress)
                return loop.run()
        finally:
            made.close()


class _Loop:
    """One run, from its last checkpoint to its end."""

    def __init__(
        self,
        plan: TrainPlan,
        learner: Learner,
        source: RolloutSource,
        folder: RunDir,
        loggers: tuple[Logger, ...],
        *,
        progress: bool,
    ) -> None:
        self.plan, self.learner, self.source, self.draw = plan, learner, source, source.draw
        self.folder, self.loggers = folder, loggers if is_main() else ()
        self.progress = progress and is_main()
        self.idle = IdleUpdates()

    def run(self) -> TrainResult:
        """Run the remaining iterations."""
        done = self._restore()
        metrics: dict[str, float] = {}
        with interruptible(announce=is_main()) as is_interrupted:
            if done == 0 and self.plan.eval_every:
                self._evaluate(0)
            with progress_bar(
                total=self.plan.iterations, initial=done, enabled=self.progress
            ) as bar:
                stop = any(exchange(is_interrupted()))
                while done < self.plan.iterations and not stop:
                    done += 1
                    metrics = self._iterate(done)
                    if "train/return" in metrics:  # offline learners have no rollouts
                        bar.set_postfix_str(f"return {metrics['train/return']:.3f}")
                    bar.update()
                    stop = any(exchange(is_interrupted()))
                    last = stop or done == self.plan.iterations
                    if last or done % self.plan.checkpoint_every == 0:
                        self._checkpoint(done)
        interrupted = done < self.plan.iterations
        return TrainResult(done, interrupted, metrics, self.folder.path)

    def _restore(self) -> int:
        """Load the last checkpoint, remove later records, and return its iteration."""
        path = latest_checkpoint(self.folder.path)
        done = 0 if path is None else resume_checkpoint(path, self.learner)
        self.folder.rewind(done if path is not None else -1)
        self.draw.restore(done)
        self.source.begin(done, path)
        return done

    def _iterate(self, iteration: int) -> dict[str, float]:
        started = time.perf_counter()
        found = self._collect(iteration)
        batch = found.batch
        collected = time.perf_counter()
        self.folder.add_failures(iteration, batch.failures)
        self.folder.add_rollouts(iteration, batch.rollouts)
        own = [own_rollout(rollout) for rollout in batch.rollouts]
        metrics = rollout_metrics(own) | opponent_metrics(batch.rollouts) | env_metrics(own)
        metrics["train/failed_episodes"] = float(len(batch.failures))
        if self.plan.rollout.max_resamples:
            metrics["train/thrown_away"] = found.thrown_away
        metrics |= self.source.metrics(iteration)
        metrics |= self._update(iteration, own)
        if is_main():
            self.idle.see(metrics)
        self.source.publish(iteration)
        self.draw.take_snapshot(iteration)
        updated = time.perf_counter()
        metrics["time/rollout_seconds"] = collected - started
        metrics["time/update_seconds"] = updated - collected
        metrics |= token_metrics(own, updated - started)
        self.folder.add_metrics(iteration, {"seconds": updated - started, **metrics})
        for logger in self.loggers:
            logger.log(metrics, iteration)
        if self.plan.eval_every and iteration % self.plan.eval_every == 0:
            self._evaluate(iteration)
        return metrics

    def _collect(self, iteration: int) -> Collected:
        found = self.source.collect(iteration)
        batch = found.batch
        if batch.failures and not batch.rollouts:
            first = batch.failures[0]
            self.folder.add_failures(iteration, batch.failures)
            raise InfraError(f"every episode of iteration {iteration} failed: {first.message}")
        return found

    def _update(self, iteration: int, rollouts: Sequence[Rollout]) -> dict[str, float]:
        try:
            found = self.learner.update(rollouts)
            metrics = check_metrics(found, f"{type(self.learner).__name__}.update")
            exchange(None)  # raises if the update failed in another process
        except NumericsError as error:
            kept = self.folder.keep_rollouts(iteration, rollouts)
            raise NumericsError(f"iteration {iteration}: {error}; rollouts: {kept}") from error
        except PeerError:  # the other process reports its error, but only rank 0 writes files
            self.folder.keep_rollouts(iteration, rollouts)
            raise
        return metrics

    def _evaluate(self, iteration: int) -> None:
        from mlrl_learners.evaluation.evaluate import evaluate

        plan = self.plan
        with self.source.pause():
            result = evaluate(
                env_id=plan.env_id,
                actor=self.learner,
                env_options=plan.env_options | plan.eval_options,
                env_server=plan.env_server,
                split=plan.eval_options.get("split"),
                samples=plan.eval_samples,
                tasks=plan.eval_tasks,
                seed=plan.seed,
                progress=self.progress,
                seats_of=functools.partial(self.draw.evaluation, iteration),
            )
        metrics = evaluation_metrics(result)
        self.folder.add_evaluation(iteration, {**metrics, **result.as_dict()})
        for logger in self.loggers:
            logger.log(metrics, iteration)

    def _checkpoint(self, iteration: int) -> None:
        keep, fill = self.plan.keep_checkpoints, self.source.save
        write_checkpoint(self.folder.path, iteration, self.learner, {}, keep=keep, fill=fill)
        self.draw.prune(checkpoint_iterations(self.folder.path))
