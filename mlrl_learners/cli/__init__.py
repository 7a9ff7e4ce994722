"""Command line of mlrl: dispatch, error messages and exit status.

Each command is a module of this package with `SECTIONS`, `add_arguments` and `run`; the first line
of its docstring is its help text. A new command is such a module and one line of `COMMANDS`.

Results go to stdout, errors to stderr in one line. Exit status: 0 for success, 1 for a failure of
the work itself, 2 for a mistake of the user, 130 after an interrupt.
"""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError, MlrlError
from mlrl_envs.references import import_module
from mlrl_learners.cli.completion import complete
from mlrl_learners.cli.network import look_for_hub
from mlrl_learners.cli.parser import Parser, UnknownOptionError, printable, split_words
from mlrl_learners.cli.spelling import local_install, respelled
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

# Name of each command, in the order of the help text, and its module in this package.
COMMANDS = {
    "list": "listing",
    "info": "info",
    "play": "play",
    "validate": "validate",
    "audit": "audit",
    "train": "train",
    "evaluate": "evaluate",
    "collect": "collect",
    "export": "export",
    "init": "init",
    "monitor": "monitor",
    "serve": "serve",
    "report": "report",
    "rescore": "rescore",
    "bench": "bench",
    "leaderboard": "leaderboard",
}
MISTAKES = (
    InvalidArgumentError,
    DataNotFoundError,
    ModelNotFoundError,
    CheckpointError,
    UnicodeError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Words after the name of the program; None for those of this process.

    Returns:
        The exit status.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        complete(build_parser)
        look_for_hub()
    _write_any_text()
    # OpenMP threads spin for about 50 µs before they sleep. Longer spinning wastes shared cores; no
    # spinning makes small operations a third slower. The variable is read when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        print("mlrl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader closed the pipe, as in `mlrl list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PeerError as error:
        if is_main():  # the failed process printed the error, but perhaps on another machine
            print(f"mlrl: {error}", file=sys.stderr)
        return 1
    except (MlrlError, OSError, UnicodeDecodeError) as error:
        if "--debug" in words:
            traceback.print_exc()
        line = printable(" ".join(str(error).split()))  # may quote a file of somebody else
        print(f"mlrl: {local_install(line)}", file=sys.stderr)
        return 2 if _is_mistake(error) else 1


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="mlrl", description="Multi-agent text environments and learners.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, module_name in COMMANDS.items():
        module = importlib.import_module(f"{__name__}.{module_name}")
        summary = (module.__doc__ or "").split("\n", 1)[0].split(": ", 1)[-1]
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--debug", action="store_true", help="print the traceback of an error")
        command.add_argument(
            "--import",
            dest="imports",
            action="append",
            default=[],
            metavar="CODE",
            help="a Python file or module to import first; train stores it with the run",
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, sections=module.SECTIONS)
    return parser


def _dispatch(words: Sequence[str]) -> int:
    if not words:
        build_parser().print_help()
        return 0
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    if world().size > 1 and words[:1] != ["train"]:
        raise ConfigError("torchrun works with mlrl train only; start other commands without it")
    plain, overrides = split_words(words)
    try:
        arguments = build_parser().parse_args(plain)
    except UnknownOptionError as error:
        raise respelled(error, _sections(words[0]), words) from None
    _check_overrides(overrides, arguments.sections)
    for place in arguments.imports:
        import_module(place)
    status: int = arguments.run(arguments, overrides)
    return status


def _version() -> str:
    with contextlib.suppress(PackageNotFoundError):
        return f"mlrl {version('mlrl')}"
    return "mlrl, not installed"


def _sections(command: str) -> tuple[str, ...]:
    """Return the sections of the configuration that a command reads."""
    if command not in COMMANDS:
        return ()
    module = importlib.import_module(f"{__name__}.{COMMANDS[command]}")
    return tuple(module.SECTIONS)


def _check_overrides(overrides: Sequence[str], sections: Sequence[str]) -> None:
    """Check that the command reads the section of every override."""
    for key, _ in split_overrides(overrides):
        if key.partition(".")[0] not in sections:
            known = [name for name in known_keys() if name.partition(".")[0] in sections]
            raise unknown_name("key" if known else "option", f"--{key}", [f"--{k}" for k in known])


def _is_mistake(error: Exception) -> bool:
    if isinstance(error, RunDirError):  # a full disk is not a mistake of the user
        return not isinstance(error.__cause__, OSError)
    return isinstance(error, MISTAKES)


def _write_any_text() -> None:
    """Escape characters that the encoding of the terminal lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
