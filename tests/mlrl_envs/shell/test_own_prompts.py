"""Own prompts come from lists, data sets and files, in every environment of writers."""

import json

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError

TEXTS = ["A fox ran over the frozen lake. It met a hunter.", "Rain fell on the old harbour."]
WRITERS = ["mlrl/story-v1", "mlrl/tldr-v1", "mlrl/arxiv-v1"]


class Columns:
    """An object with the two parts of a `datasets.Dataset` that are read."""

    def __init__(self, **columns):
        self.columns, self.column_names = columns, list(columns)

    def __getitem__(self, name):
        return self.columns[name]


def file_of(folder):
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"text": text, "n": 1}) for text in TEXTS))
    return str(path)


def data_set(_):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"text": TEXTS})


SOURCES = {
    "list": (lambda _: TEXTS, None),
    "rows": (lambda _: [{"prompt": text} for text in TEXTS], None),
    "columns": (lambda _: Columns(text=TEXTS, n=[1, 2]), "text"),
    "data set": (data_set, "text"),
    "file": (file_of, "text"),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("env_id", WRITERS)
def test_writers_read_own_prompts(env_id, source, tmp_path):
    value, column = SOURCES[source]
    env = mlrl_envs.make(env_id, prompts=value(tmp_path), prompt_column=column, max_turns=2)
    assert env.num_tasks == 2
    for index, text in enumerate(TEXTS):
        observations, _ = env.reset(options={"task_index": index})
        assert all(text in shown for shown in observations.values())
    assert all(r >= 0 for r in env.step(dict.fromkeys(env.agents, "A fox met a man."))[1].values())


@pytest.mark.parametrize("env_id", WRITERS)
def test_an_environment_of_own_prompts_keeps_the_contract(env_id):
    mlrl_envs.check_env(lambda: mlrl_envs.make(env_id, prompts=TEXTS))


def test_the_fingerprint_covers_the_prompts_and_leaves_the_scorer():
    one, other = (mlrl_envs.make("mlrl/tldr-v1", prompts=[text]) for text in TEXTS)
    assert mlrl_envs.fingerprint(one)["data"] != mlrl_envs.fingerprint(other)["data"]
    plain = mlrl_envs.fingerprint(mlrl_envs.make("mlrl/tldr-v1", split="sample"))
    assert mlrl_envs.fingerprint(one)["scorer"] == plain["scorer"]


@pytest.mark.parametrize("env_id", WRITERS)
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"prompts": []}, InvalidArgumentError, "list of texts"),
        ({"prompts": 3}, InvalidArgumentError, "list of texts, got 3"),
        ({"prompts": "x"}, InvalidArgumentError, "must be a list or a .jsonl file"),
        ({"prompts": ["a", " "]}, InvalidArgumentError, "non-empty texts"),
        ({"prompts": [{"prompt": 3}]}, InvalidArgumentError, "non-empty texts, got 3"),
        ({"prompts": "nowhere.jsonl"}, InvalidArgumentError, "No such file"),
        ({"prompts": [{"txt": "a"}]}, UnknownNameError, "unknown prompt_column 'prompt'"),
        ({"prompts": ["a"], "prompt_column": "x"}, InvalidArgumentError, "have no column"),
        ({"prompt_column": "x"}, InvalidArgumentError, "give prompts, too"),
    ],
)
def test_a_mistake_is_one_line(env_id, options, error, words):
    with pytest.raises(error, match=words) as caught:
        mlrl_envs.make(env_id, **options)
    assert "\n" not in str(caught.value)


def test_tasks_that_are_more_than_a_text_are_refused():
    with pytest.raises(InvalidArgumentError, match="has no option prompts"):
        mlrl_envs.make("mlrl/math-v2", prompts=TEXTS)


def test_a_client_cannot_name_a_file_of_the_server():
    places = pytest.importorskip("mlrl_envs.serve.places")
    with pytest.raises(InvalidArgumentError, match="only numbers and words"):
        places.check_options({"prompts": "prompts.jsonl"})
