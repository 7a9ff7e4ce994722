import subprocess
import sys
import textwrap

import pettingzoo
import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.registration import BUILT_IN, BUILT_IN_TASKS


def test_registry_lists_our_environments():
    assert {"mlrl/story-v1", "mlrl/humaneval-v1"} <= set(mlrl_envs.registry)
    assert len(mlrl_envs.registry) == len(list(mlrl_envs.registry))


def test_registry_reads_like_a_mapping():
    assert mlrl_envs.registry["mlrl/story-v1"].id == "mlrl/story-v1"
    assert mlrl_envs.registry.get("no/such-v0") is None
    assert "no/such-v0" not in mlrl_envs.registry


@pytest.mark.parametrize(
    ("env_id", "nearest"),
    [("mlrl/stori-v0", "mlrl/story-v1"), ("mlrl/humaneval", "mlrl/humaneval-v1")],
)
def test_unknown_id_names_the_nearest(env_id, nearest):
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        mlrl_envs.make(env_id)


@pytest.mark.parametrize("env_id", [None, 3, ["mlrl/story-v1"]])
def test_id_that_is_no_text_is_refused(env_id):
    with pytest.raises(UnknownNameError, match="the id of an environment must be a str, got"):
        mlrl_envs.make(env_id)
    assert env_id not in mlrl_envs.registry
    with pytest.raises(InvalidArgumentError, match="an id must be like"):
        mlrl_envs.register(env_id, "module:function")


@pytest.mark.parametrize("env_id", ["mlrl/story-v1", "mlrl/humaneval-v1"])
def test_unknown_option_names_the_nearest(env_id):
    with pytest.raises(UnknownNameError, match="unknown option 'max_turn'; did you mean 'max_turn"):
        mlrl_envs.make(env_id, max_turn=3)


@pytest.mark.parametrize("env_id", ["mlrl/story-v1", "mlrl/humaneval-v1"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("split", "trian", "unknown split 'trian'; did you mean 'train'"),
        ("reward", "grouded", "unknown reward 'grouded'; did you mean 'grounded'"),
        ("feedback", "diagnostic", "did you mean 'diagnostics'"),
        ("feedback", "no.such:thing", "cannot be imported"),
        ("feedback", "math:pi", "not a function"),
        ("communication", "shout", "unknown communication 'shout'"),
        ("max_turns", 0, "max_turns must be at least 1, got 0"),
        ("max_turns", "2", "max_turns must be an int, got '2'"),
        ("max_turns", True, "max_turns must be an int, got True"),
        ("split", ["train"], "split must be a str"),
        ("feedback", None, "feedback must be a str"),
        ("render_mode", "rgb_array", "unknown render mode 'rgb_array'"),
        ("sandbox", 3, "sandbox must have run_many, got 3"),
        ("limits", {"wall_seconds": 3}, "limits must be mlrl_envs.sandbox.Limits"),
    ],
)
def test_bad_option_gives_one_line_that_names_it(env_id, option, value, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        mlrl_envs.make(env_id, **{option: value})
    assert "\n" not in str(caught.value)


def test_missing_option_is_named(forget):
    forget("tests/needy-v0")
    mlrl_envs.register("tests/needy-v0", lambda turns, split="train": _their_env(turns))
    assert mlrl_envs.make("tests/needy-v0", turns=3).max_turns == 3
    with pytest.raises(InvalidArgumentError, match="the environment needs the option 'turns'"):
        mlrl_envs.make("tests/needy-v0", split="eval")


@pytest.fixture
def forget():
    """Forget an id that a test has registered."""
    ids = []
    yield ids.append
    for env_id in ids:
        mlrl_envs.registration.registry._specs.pop(env_id, None)
        pettingzoo.parallel_registry.pop(env_id, None)
        pettingzoo.aec_registry.pop(env_id, None)


def _their_env(max_turns=1):
    return mlrl_envs.make("mlrl/story-v1", max_turns=max_turns)


def test_registered_environment_can_be_made(forget):
    forget("test/mine-v0")
    mlrl_envs.register("test/mine-v0", _their_env)
    assert mlrl_envs.make("test/mine-v0", max_turns=2).max_turns == 2
    with pytest.raises(UnknownNameError, match="unknown option 'turns'"):
        mlrl_envs.make("test/mine-v0", turns=2)


def test_entry_point_may_be_a_string(forget):
    forget("test/text-v0")
    mlrl_envs.register("test/text-v0", "mlrl_envs.envs.story:parallel_env")
    assert mlrl_envs.make("test/text-v0").possible_agents == ["setup", "story"]


@pytest.mark.parametrize("made", [None, {"tasks": 2}, object()])
def test_what_makes_no_environment_is_refused(forget, made):
    forget("test/none-v0")
    mlrl_envs.register("test/none-v0", lambda: made)
    with pytest.raises(InvalidArgumentError, match="'test/none-v0' must make an environment"):
        mlrl_envs.make("test/none-v0")


@pytest.mark.parametrize("entry_point", ["no.such.module:f", "mlrl_envs.envs.story:nothing", "x"])
def test_broken_entry_point_names_itself(forget, entry_point):
    forget("test/broken-v0")
    mlrl_envs.register("test/broken-v0", entry_point)
    with pytest.raises(InvalidArgumentError, match="test/broken-v0: entry point"):
        mlrl_envs.make("test/broken-v0")


@pytest.mark.parametrize("env_id", sorted(e for e in BUILT_IN_TASKS if e.endswith("-v1")))
def test_asking_for_a_replaced_version_names_its_successor_in_one_line(env_id):
    old = env_id.replace("-v1", "-v0")
    with pytest.raises(UnknownNameError) as error:
        mlrl_envs.make(old)
    assert str(error.value) == f"environment {old!r} was replaced by {env_id!r}"


def test_asking_for_a_version_that_is_not_there_yet_lists_no_successor():
    with pytest.raises(UnknownNameError, match="did you mean 'mlrl/story-v1'"):
        mlrl_envs.make("mlrl/story-v99")


@pytest.mark.parametrize("env_id", ["story", "story-v0", "me/story", "me/ story-v0", ""])
def test_malformed_id_is_refused(env_id):
    with pytest.raises(InvalidArgumentError, match="namespace/name-v0"):
        mlrl_envs.register(env_id, _their_env)


def test_taken_id_is_refused_unless_it_is_the_same():
    mlrl_envs.register("mlrl/story-v1", "mlrl_envs.envs.story:parallel_env")
    with pytest.raises(InvalidArgumentError, match="is taken by"):
        mlrl_envs.register("mlrl/story-v1", _their_env)


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_every_id_resolves_through_pettingzoo(env_id):
    assert str(pettingzoo.make("parallel", env_id, split="sample", max_turns=3)) == env_id
    assert isinstance(pettingzoo.make("aec", env_id, split="sample"), pettingzoo.AECEnv)


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_every_family_names_the_id_it_is_registered_under(env_id):
    assert mlrl_envs.make(env_id, split="sample").family.env_id == env_id


def test_installed_packages_are_found_by_their_entry_points(tmp_path):
    (tmp_path / "their_package.py").write_text(
        "import mlrl_envs\n\ndef parallel_env():\n    return mlrl_envs.make('mlrl/story-v1')\n"
    )
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mlrl.envs]\ntheirs/task-v3 = their_package:parallel_env\n"
    )
    script = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import mlrl_envs
        assert "theirs/task-v3" in list(mlrl_envs.registry)
        assert mlrl_envs.make("theirs/task-v3").possible_agents == ["setup", "story"]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
