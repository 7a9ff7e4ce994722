import json
import shutil
import threading
import time

import pytest
import torch

from mlrl_learners import make
from mlrl_learners.algorithms.team_options import ComputeOptions
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import Policy, tiny_model
from mlrl_learners.serving.models import ServedModels
from mlrl_learners.serving.requests import read_completion

BODY = {"model": "shared", "prompt": [1, 2, 3], "max_tokens": 8, "seed": 1}


def make_team(**options):
    return make("magrpo", agents=["setup", "story"], model="tiny-random", **options)


def write_checkpoint(run, team, number):
    """Write what training writes, as far as a server reads it."""
    final = run / "checkpoints" / f"step_{number}"
    partial = run / "checkpoints" / f".partial_step_{number}"
    partial.mkdir(parents=True)
    team.save(partial / "learner")
    (partial / "state.json").write_text("{}")
    partial.rename(final)
    (run / "config.yaml").write_text("{}")
    return final


def change(team, factor):
    with torch.no_grad():
        for policy in team.policies.values():
            for weight in policy.parameters():
                weight.mul_(factor)


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def test_a_run_serves_its_newest_checkpoint_and_a_name_for_each_policy(run):
    team = make_team()
    write_checkpoint(run, team, 1)
    change(team, 1.5)
    write_checkpoint(run, team, 12)
    models = ServedModels(str(run), ComputeOptions())
    assert (models.names, models.version) == (["setup", "story"], 12)
    for name in models.names:
        for ours, theirs in zip(
            models.policy(name).parameters(), team.policies[name].parameters(), strict=True
        ):
            assert torch.equal(ours, theirs)


def test_adapters_of_a_run_share_their_base_and_answer_in_one_batch(run, open_server, ask, stir):
    team = make_team(lora={"rank": 2, "alpha": 4})
    for number, policy in enumerate(team.policies.values()):
        stir(policy, number)
    write_checkpoint(run, team, 3)
    server = open_server(str(run), batch_milliseconds=200)
    models = server.batcher.models
    assert models.policy("setup").engine is models.policy("story").engine
    found = {}

    def fetch(name):
        body = {**BODY, "model": name, "temperature": 0, "return_token_ids": True}
        (choice,) = json.loads(ask(server.url + "/completions", body).text)["choices"]
        found[name] = tuple(choice["token_ids"])

    threads = [threading.Thread(target=fetch, args=(name,)) for name in ("setup", "story")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.batcher.num_batches == 1
    sampling = read_completion({**BODY, "temperature": 0}).sampling
    for name, policy in team.policies.items():
        ((expected,),) = policy.complete([[1, 2, 3]], 1, sampling, seeds=None)
        assert found[name] == expected.token_ids
    assert found["setup"] != found["story"]


def test_an_adapter_alone_is_served_by_its_folder(tmp_path, stir):
    team = make_team(lora={"rank": 2, "alpha": 4}, team={"share_weights": True})
    stir(team.policies["shared"])
    team.policies["shared"].save(tmp_path / "adapter")
    models = ServedModels(str(tmp_path / "adapter"), ComputeOptions())
    assert models.names == [str(tmp_path / "adapter")]
    policy = models.policy(str(tmp_path / "adapter"))
    assert policy is models.policy("adapter")
    sampling = read_completion({**BODY, "temperature": 0}).sampling
    ours, theirs = (
        each.complete([[5, 6]], 1, sampling, seeds=None)[0][0].token_ids
        for each in (policy, team.policies["shared"])
    )
    assert ours == theirs


def test_a_run_without_a_checkpoint_is_refused(run):
    run.mkdir()
    (run / "config.yaml").write_text("{}")
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        ServedModels(str(run), ComputeOptions())


def answer(server, ask, **options):
    body = {**BODY, "logprobs": 0, "return_token_ids": True, **options}
    found = ask(server.url + "/completions", body)
    assert found.status == 200, found.text
    return json.loads(found.text)


def test_a_reload_changes_weights_and_version(run, open_server, ask):
    team = make_team(team={"share_weights": True})
    write_checkpoint(run, team, 1)
    server = open_server(str(run), reload_from=run)
    before = answer(server, ask)
    change(team, 2.0)
    write_checkpoint(run, team, 7)
    found = ask(server.url + "/reload", {"path": "checkpoints/step_7"})
    assert json.loads(found.text)["version"] == 7
    after = answer(server, ask)
    versions = [each["metadata"]["weight_version"] for each in (before, after)]
    assert versions == ["1", "7"]
    assert before["choices"] != after["choices"]
    assert ask(server.url + "/reload", {"path": str(run)}).status == 200
    for path, status in (
        ("/etc", 403),
        ("../other", 403),
        ("checkpoints/step_9", 400),
        ("\0", 400),
    ):
        assert ask(server.url + "/reload", {"path": path}).status == status
    assert answer(server, ask)["choices"] == after["choices"]


def test_reloads_are_off_by_default(server, ask):
    found = ask(server.url + "/reload", {"path": "x"})
    assert found.status == 403
    assert "--reload-from" in found.text


@pytest.mark.parametrize("damage", ["cut", "other shapes", "gone"])
def test_a_failed_reload_keeps_the_old_weights(tmp_path, damage):
    models = ServedModels("tiny-random", ComputeOptions())
    (policy,) = models.policies.values()
    before = [weight.clone() for weight in policy.parameters()]
    other = Policy(*tiny_model(1, num_layers=3 if damage == "other shapes" else 2))
    folder = tmp_path / "model"
    if damage != "gone":
        other.save(folder)
    if damage == "cut":
        (weights,) = folder.glob("*.safetensors")
        weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(CheckpointError):
        models.reload(folder)
    assert models.version == 0
    assert all(map(torch.equal, before, policy.parameters()))


def test_requests_before_a_reload_are_answered_by_the_old_weights(run, open_server, ask):
    team = make_team(team={"share_weights": True})
    write_checkpoint(run, team, 1)
    server = open_server(str(run), reload_from=run)
    old = answer(server, ask, max_tokens=300)
    change(team, 2.0)
    write_checkpoint(run, team, 2)
    found = {}

    def fetch():
        found["answer"] = answer(server, ask, max_tokens=300)

    thread = threading.Thread(target=fetch)
    thread.start()
    while server.batcher.in_flight == 0:
        pass
    assert ask(server.url + "/reload", {"path": str(run)}).status == 200
    thread.join()
    assert found["answer"]["choices"] == old["choices"]
    assert answer(server, ask)["metadata"]["weight_version"] == "2"


def break_config(folder):
    """Damage a model such that transformers raises an error of a type of its own."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": "x"}))


@pytest.mark.parametrize("damage", [break_config, shutil.rmtree])
def test_a_team_is_reloaded_as_a_whole_or_not_at_all(run, damage):
    team = make_team()
    write_checkpoint(run, team, 1)
    models = ServedModels(str(run), ComputeOptions())
    (policy, _) = models.policies.values()
    before = [weight.clone() for weight in policy.parameters()]
    change(team, 2.0)
    damage(write_checkpoint(run, team, 2) / "learner" / "story")
    with pytest.raises(CheckpointError, match="step_2") as caught:
        models.reload(run)
    assert "\n" not in str(caught.value)
    assert models.version == 1
    assert all(map(torch.equal, before, policy.parameters()))


def await_version(server, number):
    deadline = time.monotonic() + 30
    while server.batcher.models.version != number:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_watched_run_is_followed(run, open_server, ask):
    team = make_team(team={"share_weights": True})
    write_checkpoint(run, team, 1)
    server = open_server(str(run), watch=True, watch_seconds=0.05)
    (run / "checkpoints" / "step_2").mkdir()  # damaged: told, and left out
    write_checkpoint(run, team, 4)
    await_version(server, 4)
    assert answer(server, ask)["system_fingerprint"] == "v4"


def test_a_watched_run_is_followed_after_an_error_of_any_type(run, open_server, capsys):
    team = make_team(team={"share_weights": True})
    write_checkpoint(run, team, 1)
    server = open_server(str(run), watch=True, watch_seconds=0.05)
    failed = threading.Event()

    def fail(path):
        del server.batcher.models.reload
        failed.set()
        raise ArithmeticError(f"{path.name}\nis odd")

    server.batcher.models.reload = fail
    write_checkpoint(run, team, 2)
    assert failed.wait(30)
    write_checkpoint(run, team, 3)
    await_version(server, 3)
    assert capsys.readouterr().err.startswith("mlrl: ArithmeticError: step_2 is odd\n")
