import socket

import pytest
import torch
from transformers import AutoModelForCausalLM

from mlrl_learners.algorithms.team_models import TeamModels, TeamModelsConfig
from mlrl_learners.config.groups import build_config
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import ConfigError, ModelNotFoundError
from mlrl_learners.policies import Policy, load_model, tiny_model


@pytest.fixture
def offline(monkeypatch):
    def nowhere(*args, **options):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("offline")
def test_an_unknown_model_is_not_waited_for_where_there_is_no_network():
    with pytest.raises(ModelNotFoundError, match="unknown model 'nobody/no-such-model'"):
        load_model("nobody/no-such-model")


@pytest.mark.usefixtures("offline")
def test_a_folder_needs_no_network(tmp_path):
    model, tokenizer = load_model("tiny-random")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model(str(tmp_path))[0].config.vocab_size == model.config.vocab_size


@pytest.mark.parametrize("family", ["tiny-random", "tiny-random-gpt2"])
def test_a_folder_with_an_adapter_is_the_base_with_it_merged(family, tmp_path, stir):
    weights = TeamModels(
        build_config(TeamModelsConfig, {"lora": {"rank": 2}, "compute": {"device": "cpu"}}), seed=0
    )
    policy = weights.trained("a", family)
    stir(policy)
    policy.save(tmp_path)
    model, tokenizer = load_model(tmp_path, device="cpu")
    merged = Policy(model, tokenizer)
    rows = [TokenRow([5, 6, 7], [8, 9])]
    with torch.no_grad():
        ours, theirs = (each.logprobs(rows, temperature=1.0)[0] for each in (policy, merged))
    assert torch.allclose(ours, theirs, atol=1e-4)
    assert not any("lora" in name for name, _ in model.named_parameters())
    assert all(weight.requires_grad for weight in model.parameters())


def test_a_folder_of_a_frozen_agent_is_its_base(tmp_path):
    TeamModels(build_config(TeamModelsConfig, {"compute": {"device": "cpu"}}), seed=0).frozen(
        "tiny-random"
    ).save(tmp_path)
    assert load_model(tmp_path, device="cpu")[0].config.model_type == "llama"


def test_a_folder_that_names_no_base_is_said_so(tmp_path):
    (tmp_path / "base.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match="names no base"):
        load_model(tmp_path)


@pytest.fixture
def folder(tmp_path):
    model, tokenizer = load_model("tiny-random", device="cpu")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"revison": "main"}, "revison"),
        ({"load_in_4bit": True}, "load_in_4bit"),
        ({"dtype": "float32"}, "an option of its own"),
        ({"torch_dtype": "float32"}, "an option of its own"),
        ({"attn_implementation": 3}, "attn_implementation"),
    ],
)
def test_options_that_are_none_of_the_models_are_named(options, message, folder):
    with pytest.raises(ConfigError, match=f"model_options.*{message}"):
        load_model(folder, device="cpu", options=options)


def test_a_model_that_is_not_loaded_from_files_takes_no_options():
    for source in ("tiny-random", tiny_model()):
        with pytest.raises(ConfigError, match=r"takes no model_options, got \['nonsense'\]"):
            load_model(source, options={"nonsense": 1})


@pytest.mark.parametrize("mark", ["is_quantized", "hf_device_map"])
def test_what_was_put_in_place_while_loading_is_left_there(mark, folder, monkeypatch):
    placed, _ = tiny_model()
    setattr(placed, mark, True)
    monkeypatch.setattr(placed, "to", lambda *_, **__: pytest.fail("it was moved"))
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *_, **__: placed)
    assert load_model(folder, device="cpu", dtype="bfloat16")[0] is placed


def test_a_device_map_and_an_attention_can_be_chosen(folder):
    options = {"device_map": "cpu", "attn_implementation": "eager"}
    model, _ = load_model(folder, device="cpu", options=options)
    assert model.config._attn_implementation == "eager"
