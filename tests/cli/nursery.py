"""A process that forks one process per command.

It is a fork of the process of tests itself, from when its tests are collected and none has run: it
has imported nearly all that commands import, and runs no threads. Its children are as good as new
interpreters, and start in milliseconds where those spend a second on imports.

It reads JSON lines of {"argv", "cwd", "env", "out", "err", "end"} and answers each with a line, the
child's process id; when that has ended, it writes its exit code to the file "end".
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import json
import logging
import os
import pkgutil
import select
import signal
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from typing import IO, NamedTuple

import typer.main

import omnidata

PRELOADED = (
    "av",
    "datasets",
    "jinja2",
    "matplotlib.backends.backend_agg",
    "PIL.Image",
    "rich.progress",
    "sklearn.tree",
)


_NEED_TORCH = ("omnidata.torch", "omnidata.training", "omnidata.adapters.hf.generation")


class Nursery(NamedTuple):
    orders: IO[str]
    answers: IO[str]


def start() -> Nursery:
    """Fork; to be called before there are threads, servers, and what tests change."""
    asked, orders = os.pipe()
    answers, said = os.pipe()
    if not os.fork():
        try:
            _as_new({asked, said})
            _serve(os.fdopen(asked), os.fdopen(said, "w", buffering=1))
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        os._exit(0)
    os.close(asked)
    os.close(said)
    return Nursery(os.fdopen(orders, "w", buffering=1), os.fdopen(answers))


def _as_new(kept: set[int]) -> None:
    """Undo what pytest did to the interpreter, and close its files but those."""
    faulthandler.disable()
    atexit._clear()
    begin = 3
    for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(begin, number)
        begin = number + 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    warnings.resetwarnings()
    for ignored in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", ignored)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)


def _serve(orders: IO[str], answers: IO[str]) -> None:
    """Fork until nobody asks, and tell what ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    ends: dict[int, int] = {}
    ready = False
    while True:
        asked, _, _ = select.select([orders.fileno(), woken], [], [])
        if woken in asked:
            os.read(woken, 4096)
            _tell(ends)
        if orders.fileno() in asked:
            if not (line := orders.readline()):
                return
            if not ready:
                _get_ready()
                ready = True
            order = json.loads(line)
            files = [os.open(order[name], os.O_WRONLY | os.O_NOCTTY) for name in ("out", "err")]
            end = os.open(order["end"], os.O_WRONLY)
            child = os.fork()
            if not child:
                _run(order, files)
            for file in files:
                os.close(file)
            ends[child] = end
            print(child, file=answers)


def _tell(ends: dict[int, int]) -> None:
    for child in list(ends):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            end = ends.pop(child)
            os.write(end, b"%d" % os.waitstatus_to_exitcode(status))
            os.close(end)


def preload() -> None:
    """Import what commands import and the collected tests did not."""
    own = [module.name for module in pkgutil.walk_packages(omnidata.__path__, "omnidata.")]
    for name in (*PRELOADED, *own):
        if not name.endswith("__main__") and not name.startswith(_NEED_TORCH):
            with suppress(ImportError):  # of an extra that is not installed
                import_module(name)


def _get_ready() -> None:
    """Import what is missing, and what makes commands."""
    preload()
    typer.main.get_command(import_module("omnidata.cli").make_app())
    gc.freeze()  # a child that looks for garbage would copy all of this


def _run(order: dict[str, object], files: list[int]) -> None:
    """Be the command; never returns."""
    code: object = 1
    try:
        _become(order, files)
        from omnidata.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _become(order: dict[str, object], files: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(str(order["cwd"]))
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[call-overload]  # JSON
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in named if folder and folder not in sys.path]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    # Those of pytest have gone with its files.
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    sys.argv = ["-c", *order["argv"]]  # type: ignore[misc]  # JSON
    # Processes that the command spawns import the main module's file; a `python -c` has none.
    main = sys.modules["__main__"]
    main.__spec__ = None
    vars(main).pop("__file__", None)
