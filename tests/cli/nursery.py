"""A process that has imported what every command imports, and forks one process per command.

It holds no threads and does nothing else, so its children are as good as new ones; they start in
milliseconds where a new interpreter spends half a second on imports.

It reads JSON lines of {"argv", "cwd", "env", "out", "err"} and answers each with two lines: the
child's process id, and, when it has ended, its exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import traceback
from importlib import import_module

PRELOADED = ("omnidata.cli", "av", "datasets", "jinja2", "PIL.Image", "rich.progress", "sklearn")


def serve() -> None:
    """Fork until nobody asks."""
    for name in PRELOADED:
        import_module(name)
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
