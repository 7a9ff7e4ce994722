import pytest

from mlrl_envs import errors


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("stroy", ["story", "setup"], "unknown part 'stroy'; did you mean 'story'?"),
        ("xyz", ["story", "setup"], "unknown part 'xyz'; known: setup, story"),
        (3, [], "unknown part 3; known: none"),
    ],
)
def test_unknown_name_names_the_nearest_or_all(name, known, message):
    assert str(errors.unknown_name("part", name, known)) == message


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidArgumentError, ValueError),
        (errors.UnknownNameError, LookupError),
        (errors.InvalidActionError, ValueError),
        (errors.ResetNeededError, RuntimeError),
        (errors.DataNotFoundError, FileNotFoundError),
        (errors.InvalidDataError, ValueError),
        (errors.MissingPackageError, ImportError),
        (errors.InfraError, RuntimeError),
        (errors.ContractError, AssertionError),
    ],
)
def test_errors_are_ours_and_those_that_python_users_expect(error, builtin):
    assert issubclass(error, builtin)
    assert issubclass(error, errors.MlrlError)
