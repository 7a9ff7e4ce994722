"""The command line: `mlrl list · info · play · validate · train · evaluate · collect`.

Results go to stdout, errors to stderr in one line. Exit status: 0 for success, 1 for a failure of
the work itself, 2 for a user's mistake, 130 when interrupted.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError, MlrlError
from mlrl_learners.cli import (
    bench,
    collect,
    evaluate,
    export,
    info,
    init,
    leaderboard,
    listing,
    monitor,
    play,
    report,
    rescore,
    train,
    validate,
)
from mlrl_learners.cli.parser import Parser, split_words
from mlrl_learners.config.overrides import split_overrides
from mlrl_learners.config.run import known_keys
from mlrl_learners.errors import (
    CheckpointError,
    ConfigError,
    ModelNotFoundError,
    PeerError,
    RunDirError,
    unknown_name,
)
from mlrl_learners.processes.work_sharing import is_main, world

__all__ = ["build_parser", "main"]

COMMANDS = {
    "list": listing,
    "info": info,
    "play": play,
    "validate": validate,
    "train": train,
    "evaluate": evaluate,
    "collect": collect,
    "export": export,
    "init": init,
    "monitor": monitor,
    "report": report,
    "rescore": rescore,
    "bench": bench,
    "leaderboard": leaderboard,
}
MISTAKES = (InvalidArgumentError, DataNotFoundError, ModelNotFoundError, CheckpointError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Words after the program's name; those of this process when None.

    Returns:
        The exit status.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _write_any_text()
    # Threads that wait actively for long are ruinous where cores are shared, and those that sleep
    # at once take a third longer where they are not: spin some 50 µs. Read when torch is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        print("mlrl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader went away, as in `mlrl list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PeerError as error:
        if is_main():  # the process that failed has told it, but perhaps on another machine
            print(f"mlrl: {error}", file=sys.stderr)
        return 1
    except (MlrlError, OSError) as error:
        if "--debug" in words:
            traceback.print_exc()
        print(f"mlrl: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if _is_mistake(error) else 1


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="mlrl", description="Multi-agent text environments and their learners.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").split("\n", 1)[0].split(": ", 1)[-1]
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--debug", action="store_true", help="show where an error arose")
        module.add_arguments(command)
        command.set_defaults(run=module.run, sections=module.SECTIONS)
    return parser


def _dispatch(words: Sequence[str]) -> int:
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    if world().size > 1 and words[:1] != ["train"]:
        raise ConfigError("torchrun is for mlrl train; start all other commands without it")
    plain, overrides = split_words(words)
    arguments = build_parser().parse_args(plain)
    _check_overrides(overrides, arguments.sections)
    status: int = arguments.run(arguments, overrides)
    return status


def _check_overrides(overrides: Sequence[str], sections: Sequence[str]) -> None:
    """Refuse keys of sections that the command has no use for."""
    for key, _ in split_overrides(overrides):
        if key.partition(".")[0] not in sections:
            known = [name for name in known_keys() if name.partition(".")[0] in sections]
            raise unknown_name("key" if known else "option", f"--{key}", [f"--{k}" for k in known])


def _is_mistake(error: Exception) -> bool:
    if isinstance(error, RunDirError):  # a full disk is nobody's mistake
        return not isinstance(error.__cause__, OSError)
    return isinstance(error, MISTAKES)


def _write_any_text() -> None:
    """Let what a model wrote be printed whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
