import socket
import time

import pytest
import torch

from mlrl_learners.algorithms.weights import Weights, WeightsConfig
from mlrl_learners.errors import ModelNotFoundError
from mlrl_learners.functional.logprobs import TokenRow
from mlrl_learners.policies import Policy, load_model


@pytest.fixture
def offline(monkeypatch):
    def nowhere(*args, **options):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("offline")
def test_an_unknown_model_is_not_waited_for_where_there_is_no_network():
    started = time.monotonic()
    with pytest.raises(ModelNotFoundError, match="unknown model 'nobody/no-such-model'"):
        load_model("nobody/no-such-model")
    assert time.monotonic() - started < 15


@pytest.mark.usefixtures("offline")
def test_a_folder_needs_no_network(tmp_path):
    model, tokenizer = load_model("tiny-random")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model(str(tmp_path))[0].config.vocab_size == model.config.vocab_size


@pytest.mark.parametrize("family", ["tiny-random", "tiny-random-gpt2"])
def test_a_folder_with_an_adapter_is_the_base_with_it_merged(family, tmp_path, stir):
    weights = Weights(WeightsConfig(lora_rank=2, device="cpu"), seed=0)
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


def test_a_folder_of_a_frozen_agent_is_its_base(tmp_path):
    Weights(WeightsConfig(device="cpu"), seed=0).frozen("tiny-random").save(tmp_path)
    assert load_model(tmp_path, device="cpu")[0].config.model_type == "llama"


def test_a_folder_that_names_no_base_is_said_so(tmp_path):
    (tmp_path / "base.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match="names no base"):
        load_model(tmp_path)
