"""`omnidata doctor`: check the installation and show how to fix problems."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import option, verb

if TYPE_CHECKING:
    from omnidata.data.doctor import Check

_LIMIT = 120.0  # a first import from a network disk is slow


@verb()
def doctor(
    time_limit: float = option(
        "Time limit for loading one package.", "SECONDS", min=1, default=_LIMIT
    ),
    as_json: args.Json = False,
) -> bool:
    """Check the installation and show how to fix problems.

    Each package is imported and tried in its own process, and each GPU computes something. Only the
    names of API keys are shown. Nothing is changed. Exit code 1: something is broken.

    Example: omnidata doctor
    """  # fmt: skip
    import asyncio
    import platform
    from dataclasses import asdict
    from importlib.metadata import version

    from omnidata.data.doctor import examine

    with terminal.progress("loading packages") as progress:
        checks = asyncio.run(examine(time_limit=time_limit, progress=progress))
    faults = [check for check in checks if check.fault]
    machine = {
        "omnidata": version("omnidata"),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
    }
    if as_json:
        every = list(map(asdict, checks))
        terminal.print_json({**machine, "broken": len(faults), "checks": every})
    else:
        _print(machine, checks)
    return bool(faults)


def _print(machine: Mapping[str, str], checks: Sequence[Check]) -> None:
    lines = [
        ("python", machine["python"], "", "", machine["executable"]),
        ("omnidata", machine["omnidata"], "", "", machine["platform"]),
    ]
    for check in checks:
        state = check.state.upper() if check.fault else check.state
        lines.append((check.name, check.version, check.group, state, check.detail))
    terminal.print_folded(("", "version", "for", "state", ""), lines)
    # Commands are below the table, where no column breaks them.
    for check in checks:
        if check.state in ("broken", "worked round") or check.fault:
            terminal.say(f"{check.name}: {check.remedy or 'no fix is known'}")
    extras = [check for check in checks if check.group not in ("base", "key")]
    absent = {each.group: each.remedy for each in extras if each.state == "absent" and each.remedy}
    for group, remedy in absent.items():
        terminal.say(f"for {group}: {remedy}")
