"""A process that has imported what commands import, and forks one process per command.

It holds no threads and does nothing else, so its children are as good as new ones; they start in
milliseconds where a new interpreter spends a second on imports, and three more on torch.

It reads JSON lines of {"argv", "cwd", "env", "out", "err"} and answers each with two lines: the
child's process id, and, when it has ended, its exit code.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import sys
import traceback
from contextlib import suppress
from importlib import import_module

import typer.main

import omnidata

PRELOADED = ("av", "datasets", "jinja2", "openai", "PIL.Image", "rich.progress", "sklearn.tree")


def serve() -> None:
    """Fork until nobody asks."""
    own = [module.name for module in pkgutil.walk_packages(omnidata.__path__, "omnidata.")]
    for name in (*PRELOADED, *own):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # of an extra that is not installed
                import_module(name)
    command = typer.main.get_command(import_module("omnidata.cli").app)
    # It takes longer to make than most help texts to print.
    typer.main.get_command = lambda typer_instance: command
    gc.freeze()  # a child that looks for garbage would copy all of this
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _run(order)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _run(order: dict[str, object]) -> None:
    """Be the command; never returns."""
    code: object = 1
    try:
        _become(order)
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


def _become(order: dict[str, object]) -> None:
    os.chdir(str(order["cwd"]))
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[call-overload]  # JSON
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(str(order[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    sys.argv = ["-c", *order["argv"]]  # type: ignore[misc]  # JSON
    # Processes that the command spawns import the main module's file; a `python -c` has none.
    main = sys.modules["__main__"]
    main.__spec__ = None
    vars(main).pop("__file__", None)


if __name__ == "__main__":
    serve()
