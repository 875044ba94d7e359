"""The command line: one file per group of verbs.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the job failed or there are
findings, 2 bad usage or bad input, 130 interrupted.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from omnidata.cli import terminal
from omnidata.cli.help import Verb, write_verbs
from omnidata.errors import OmnidataError, PluginError, UnansweredWarning
from omnidata.plugins import blaming

_DEBUG: Final = "OMNIDATA_DEBUG"
_REFUSED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of a disk that is full, or of a place that may not be written."""


class _Groups(TyperGroup):
    """Lists the verbs in groups, one line each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, self.commands))
        for group, verbs in _VERBS.items():
            with formatter.section(group):
                write_verbs(formatter, {name: self.commands[name] for name in verbs}, widest)


_VERBS: Final[Mapping[str, Sequence[str]]] = {
    "Start": ("demo", "doctor", "cache"),
    "Data": (
        *("fetch", "info", "view", "validate", "audit", "convert", "push", "segment", "voice"),
    ),
    "Models": ("certify", "evaluate", "score", "suite", "ablate", "merge", "batch", "harness"),
    "Results": ("report", "compare", "items"),
    "Training": ("export", "synth"),
}
_MODULES: Final = {
    **{name: name for verbs in _VERBS.values() for name in verbs},
    **{"view": "info", "suite": "evaluate", "merge": "evaluate", "compare": "report"},
}


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line, with only the verb that the arguments name first, if they do.

    Each verb takes about 10 ms to import.
    """
    is_alone = bool(arguments) and arguments[0] in _MODULES
    app = typer.Typer(
        name="omnidata",
        cls=_Groups,
        help="Datasets and evaluation for GUI agents that see, hear and remember.",
        epilog="Start with `omnidata demo`. Help on a verb: omnidata VERB --help",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for name in arguments[:1] if is_alone else _MODULES:
        module = import_module(f"omnidata.cli.{_MODULES[name]}")
        if hasattr(module, "app"):  # a group of verbs
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=Verb)(getattr(module, name))
    return app


def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Datasets and evaluation for GUI agents that see, hear and remember."""
    if version:
        from importlib.metadata import version as installed

        commit = _commit()
        typer.echo(f"omnidata {installed('omnidata')}" + (f" (commit {commit})" if commit else ""))
        raise typer.Exit


def _commit() -> str:
    package = Path(__file__).parents[1]
    if (package / "COMMIT").is_file():
        return (package / "COMMIT").read_text("ascii").strip()
    if not (package.parent / ".git").exists():
        return ""
    describe = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    try:
        found = subprocess.run(
            describe, cwd=package.parent, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):  # there is no git
        return ""
    return found.stdout.strip()


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; every failure is a message, never a traceback.

    Any other exception is a bug in omnidata, and is reported in one line. With OMNIDATA_DEBUG=1 in
    the environment, the traceback of a bug, and of an error in a plug-in, is printed before it.

    Args:
        argv: the arguments after `omnidata`; those of this process if None.

    Raises:
        SystemExit: always, with the exit code.
    """
    warnings.simplefilter("ignore", UnansweredWarning)  # the verbs say it themselves
    # Imports and loaded data make objects by the hundred thousand, and hardly any garbage.
    gc.set_threshold(20_000, 50)
    atexit.register(gc.freeze)  # Python would look through all of them at its end, torch's for 1 s
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        with blaming():
            make_app(arguments)(arguments)
        sys.exit(0)
    except OmnidataError as error:
        if isinstance(error, PluginError) and os.environ.get(_DEBUG):
            traceback.print_exc()
        terminal.note(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # before the verb has begun
        sys.exit(130)
    except Exception as error:
        if os.environ.get(_DEBUG):
            traceback.print_exc()
        verb = next((word for word in arguments if not word.startswith("-")), "")
        head = f"{' '.join(filter(None, ('omnidata', verb)))} failed"
        if isinstance(error, OSError) and error.errno in _REFUSED:
            what = ": ".join(filter(None, (error.filename and str(error.filename), error.strerror)))
            terminal.note(f"{head}: {what}. Fix: free space, or write to another disk or folder")
        else:
            lines = str(error).splitlines()
            what = ": ".join([type(error).__name__, *lines[:1]])
            fix = f"This is a bug. Fix: rerun with {_DEBUG}=1 and report the traceback"
            terminal.note(f"{head}: {what}. {fix}")
        sys.exit(1)
