import socket
import time

import pytest

from mlrl_learners.errors import ModelNotFoundError
from mlrl_learners.policies import load_model


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
