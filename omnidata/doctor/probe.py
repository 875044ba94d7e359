"""Loads one package and tries it; run as a module, in a process of its own for each package.

    python -P -m omnidata.doctor.probe NAME SECONDS

A package that does not fit may raise anything, end the process, hang, or leave another package
unusable. Standard output gets one JSON object. After SECONDS, and at a crash, standard error gets
the lines of Python that were running.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import traceback

from omnidata.doctor.trials import TRIALS, Found


def _told(error: BaseException) -> Found:
    """What went wrong at the root, in one line, and how it came about."""
    seen = [error]
    while (cause := seen[-1].__cause__) and cause not in seen:
        seen.append(cause)
    root = seen[-1]
    lines = str(root).strip().splitlines()
    line = f"{type(root).__name__}: {lines[0]}" if lines else type(root).__name__
    return {"error": line, "trace": "".join(traceback.format_exception(error))}


def main(name: str, seconds: float) -> None:
    """Answer, and end without the exit handlers of what was loaded: they may hang or crash too."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # packages may print
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds)
    try:
        answer = TRIALS[name]()
    except BaseException as error:  # an import may also end in SystemExit
        answer = _told(error)
    json.dump(answer, answers)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
