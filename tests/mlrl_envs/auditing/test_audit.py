"""`audit` tells an exploitable reward from a strict one, on anybody's environment."""

import json
import threading
from pathlib import Path

import pytest

import mlrl_envs
from mlrl_envs.auditing.check import check_reward
from mlrl_envs.errors import ContractError, InfraError, InvalidArgumentError, UnknownNameError

TOPICS = ("apples and pears", "ships and harbours", "snow and ice", "bread and butter")
HONEST = {
    topic: (
        f"Most people like {topic}, and so do I. We had {topic} every year when I was a child, and "
        f"my aunt told us long stories about {topic} in the evening."
    )
    for topic in TOPICS
}


class Essay:
    """A third party's environment, as small as possible: no state, no spaces, one turn or more."""

    possible_agents = ("writer",)
    reward_range = (0.0, 1.0)

    def __init__(self, score, *, turns=1, copies=True):
        self.score, self.turns, self.copies = score, turns, copies
        self.metadata = {"name": "test/essay-v0"}
        self.num_tasks = len(TOPICS)
        self.agents = []
        self.played = 0
        if not copies:
            self.lock = threading.Lock()  # cannot be copied

    def reset(self, seed=None, options=None):
        options = options or {}
        index = options.get("task_index", (seed or 0) % len(TOPICS))
        if "task_id" in options:
            index = int(options["task_id"])
        self.topic, self.turn, self.agents = TOPICS[index], 0, ["writer"]
        return {"writer": f"Topic: {self.topic}\n\nWrite a short essay."}, {
            "writer": {"task_id": str(index)}
        }

    def step(self, actions):
        self.turn += 1
        self.played += 1
        over = self.turn == self.turns
        self.agents = [] if over else ["writer"]
        reward = {"writer": self.score(self.topic, actions["writer"])}
        return {"writer": "again"}, reward, {"writer": over}, {"writer": False}, {"writer": {}}

    def reference_actions(self):
        return {"writer": HONEST[self.topic]}

    def close(self):
        pass


def counts_words(topic, text):
    return min(len(text.split()) / 20, 1.0)


def strict(topic, text):
    return float(text == HONEST[topic])


def half_for_anything(topic, text):
    return 1.0 if text == HONEST[topic] else 0.5


def audit(score, *, budget=60, tasks=3, turns=1, copies=True, **options):
    env = Essay(score, turns=turns, copies=copies)
    return mlrl_envs.audit(env, budget=budget, tasks=tasks, **options)


def test_a_reward_that_counts_words_is_found_exploitable():
    report = audit(counts_words)
    assert report.honest_mean == 1.0
    assert report.ratio == 1.0
    assert {family.name for family in report.families if family.best == 1.0} > {"fixed_text"}


def test_a_strict_reward_is_not():
    report = audit(strict)
    assert report.honest_mean == 1.0
    assert report.ratio == 0.0
    assert report.honest_low == 0.0


def test_an_attack_that_equals_the_honest_answer_is_no_exploit():
    env = Essay(lambda _, text: float(text.split() == ["Yes"]))
    env.reference_actions = lambda: {"writer": "Yes"}
    report = mlrl_envs.audit(env, budget=60, tasks=3)
    others = next(family for family in report.families if family.name == "stitched")
    assert (report.worst.best, report.honest_mean, others.tries) == (0.0, 1.0, 3)


def test_rewards_are_shares_above_an_empty_answer():
    report = audit(half_for_anything)
    assert report.worst.best == 0.0
    assert report.honest == [1.0] * 3


def test_the_same_seed_gives_the_same_report():
    first, again, other = audit(counts_words), audit(counts_words), audit(counts_words, seed=1)
    assert first == again
    assert first.to_json() != other.to_json()


def test_an_environment_that_cannot_be_copied_is_reset_for_every_try():
    def values(report):
        return [(family.name, family.mean, family.best) for family in report.families]

    assert values(audit(counts_words, copies=False)) == values(audit(counts_words))


@pytest.mark.parametrize("budget", [25, 60])
def test_no_task_gets_more_tries_than_the_budget(budget):
    env = Essay(counts_words, copies=False)
    report = mlrl_envs.audit(env, budget=budget, tasks=2)
    tries = sum(family.tries for family in report.families)
    assert tries == 2 * budget
    others = 2 * 3  # honest answers, and empty answers to their tasks and to the attacked ones
    assert env.played == tries + others


def test_progress_adds_up_to_the_whole_budget():
    steps = []
    audit(counts_words, progress=steps.append)
    assert sum(steps) == 3 * 60


def test_a_search_does_better_than_its_families():
    def vowels(topic, text):
        return min(sum(text.count(vowel) for vowel in "aeiou") / 5000, 1.0)

    report = audit(vowels, budget=200)
    assert report.worst.name == "search"
    singles = [f.best for f in report.families if f.name != "search" and not f.knows_answer]
    assert report.worst.best > 1.2 * max(singles)


def test_an_attack_is_kept_in_later_turns():
    assert audit(lambda _, text: 0.1 * bool(text), turns=4).worst.best == pytest.approx(0.4)


def test_turns_that_pay_by_themselves_count_with_the_best_one():
    report = audit(counts_words, turns=3)
    assert report.worst.max == pytest.approx(1.0)


def test_a_family_keeps_its_best_tries_and_quartiles():
    for family in audit(counts_words).families:
        assert len(family.bests) <= 3
        assert sum(family.bests) / 3 == pytest.approx(family.best)
        assert max(family.bests) == family.max
        assert sorted(family.quartiles) == list(family.quartiles)


def test_chosen_attacks_are_the_only_ones():
    report = audit(counts_words, attacks=["frames", "markov"])
    assert {family.name for family in report.families} == {"frames", "markov", "search"}


def test_an_environment_without_references_has_no_ratio():
    env = Essay(counts_words)
    env.reference_actions = lambda: None
    report = mlrl_envs.audit(env, budget=40, tasks=2)
    assert report.ratio is None
    assert "no honest answers" in report.table()


def entry(task, text, **changes):
    line = {"env_id": "test/essay-v1", "split": "train", "task_id": str(task), "style": "plain"}
    return {**line, "turns": [{"writer": text}], **changes}


def test_a_corpus_replaces_the_references(tmp_path):
    lines = [entry(2, "Too short."), entry(2, HONEST["snow and ice"]), entry(9, "no such task")]
    lines.append(entry(1, "of another environment", env_id="test/other-v0"))
    path = tmp_path / "honest.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
    from_file = mlrl_envs.audit(Essay(counts_words), honest=path, budget=40, tasks=2)
    assert from_file.honest == [0.1, 1.0]
    assert from_file.tasks[0] == "2"
    assert mlrl_envs.audit(Essay(counts_words), honest=lines[:2], budget=40, tasks=2) == from_file


def test_a_file_of_honest_answers_may_contain_unicode_line_separators(tmp_path):
    path = tmp_path / "honest.jsonl"
    line = json.dumps(entry(2, "One line.\u2028Another.\x85"), ensure_ascii=False)
    path.write_text(line + "\r\n", "utf-8")
    assert mlrl_envs.audit(Essay(counts_words), honest=path, budget=40, tasks=1).honest == [0.15]


@pytest.mark.parametrize(
    ("honest", "message"),
    [
        ([entry(1, "text", env_id="test/other-v0")], "none of the 1 honest answers"),
        ([{"env_id": "test/essay-v0"}], "honest answer 1 lacks a field"),
        ("nowhere.jsonl", "cannot read honest answers"),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused(honest, message):
    with pytest.raises(InvalidArgumentError, match=message):
        audit(counts_words, honest=honest)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 3}, "budget must be at least"),
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"kind": "song"}, "kind"),
        ({"attacks": ["stubs"]}, "none of the attacks"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        audit(counts_words, **options)


def test_an_unknown_attack_is_named_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match="'markov'"):
        audit(counts_words, attacks=["markow"])


def test_failures_of_the_infrastructure_propagate():
    def fail(topic, text):
        raise InfraError("no worker")

    with pytest.raises(InfraError, match="no worker"):
        audit(fail)


def test_a_report_is_json_and_a_table():
    report = audit(counts_words)
    assert json.loads(json.dumps(report.to_json()))["ratio"] == 1.0
    assert "worst exploit: " in report.table()
    assert "honest_inverted" in report.table().split("with the answer known")[1]


def test_check_reward_names_the_worst_exploit():
    check_reward(Essay(strict))
    with pytest.raises(ContractError, match=r"no exploit earns more than 0.6.*with 1.00"):
        check_reward(Essay(counts_words))
    env = Essay(strict)
    env.reference_actions = lambda: None
    with pytest.raises(InvalidArgumentError, match="needs honest answers"):
        check_reward(env)


def test_check_env_audits_on_request():
    def make():
        return mlrl_envs.make("mlrl/math-v2", split="sample")

    mlrl_envs.check_env(make, audit=True)


def test_check_env_fails_for_a_reward_that_pays_an_exploit(story_corpus):
    def make():
        return mlrl_envs.make("mlrl/story-v1", reward="paper")

    mlrl_envs.check_env(make)
    with pytest.raises(ContractError, match=r"no exploit earns more than 0\.6 .*; found '\w+'"):
        mlrl_envs.check_env(make, audit=True, honest=story_corpus)
    with pytest.raises(InvalidArgumentError, match="needs honest answers"):
        mlrl_envs.check_env(make, audit=True)


@pytest.fixture
def story_corpus():
    """Honest stories to one prompt."""
    lines = (Path(__file__).parents[1] / "honest/story.jsonl").read_text("utf-8").split("\n")
    entries = [json.loads(line) for line in lines if line]
    train = [entry for entry in entries if entry["split"] == "train"]
    return [entry for entry in train if entry["task_id"] == train[0]["task_id"]]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_rewards_that_are_no_numbers_are_refused(value):
    with pytest.raises(InvalidArgumentError, match="finite rewards"):
        audit(lambda _, text: value if len(text) > 50 else 0.0)


@pytest.mark.parametrize("high", [float("inf"), 0.0])
def test_a_reward_range_without_end_is_refused(high):
    env = Essay(counts_words)
    env.reward_range = (0.0, high)
    with pytest.raises(InvalidArgumentError, match="low < high in reward_range"):
        mlrl_envs.audit(env, budget=60, tasks=2)
