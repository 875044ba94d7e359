"""Looking at everything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from omnidata.adapters.keys import Key
from omnidata.doctor import remedies
from omnidata.doctor.check import Check
from omnidata.doctor.child import Outcome, probe
from omnidata.doctor.packages import PACKAGES, UNUSED, installed, wanted
from omnidata.errors import UsageError

_AT_ONCE = 4


async def examine(
    *, time_limit: float, progress: Callable[[int, int], None] | None = None
) -> tuple[Check, ...]:
    """Load every package of omnidata's extras, each in a process of its own, and try it.

    Nothing heavy is imported by the caller's process, and nothing that a package does there, a
    crash or a hang among it, reaches it.

    Args:
        time_limit: in seconds, for each package.
        progress: called with how many packages are done, and of how many.

    Returns:
        Packages in the order of `PACKAGES`, GPUs, and keys, of which no value is read out.
    """
    there = [name for name in PACKAGES if installed(name) is not None]
    free = asyncio.Semaphore(min(_AT_ONCE, os.cpu_count() or 1))
    done = 0

    async def one(name: str) -> Outcome:
        nonlocal done
        async with free:
            outcome = await probe(name, time_limit)
        done += 1
        if progress:
            progress(done, len(there))
        return outcome

    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(one(name)) for name in there}
    outcomes = {name: task.result() for name, task in tasks.items()}
    return (*_packages(outcomes), *_gpus(outcomes), *_keys())


def _packages(outcomes: Mapping[str, Outcome]) -> list[Check]:
    torch = outcomes.get("torch")
    build = torch.found["build"] if torch and torch.found else ""
    checks: list[Check] = []
    broken: dict[str, Check] = {}
    for name in PACKAGES:
        outcome = outcomes.get(name)
        checks.append(_package(name, outcome, build, broken))
        if outcome and outcome.found is None:
            broken[name] = checks[-1]
    return checks


def _package(
    name: str, outcome: Outcome | None, torch_build: str, broken: Mapping[str, Check]
) -> Check:
    group = PACKAGES[name]
    if outcome is None:
        if name in UNUSED:
            return Check(group, name, "absent", detail=UNUSED[name])
        return Check(group, name, "absent", remedy=remedies.install_extra(name))
    version = installed(name) or ""
    if outcome.found is None:
        detail, remedy = remedies.explain(name, outcome, torch_build, broken)
        return Check(group, name, "broken", version, detail, remedy)
    if asked := _unmet(name, version):
        remedy = remedies.install("--upgrade", f"{name}{asked}")
        return Check(group, name, "broken", version, f"omnidata needs {asked}", remedy)
    if outcome.found.get("worked_round"):
        return Check(group, name, "worked round", version, *remedies.round_nms())
    return Check(group, name, "ok", version, outcome.found.get("detail", ""))


def _unmet(name: str, version: str) -> str:
    """What omnidata asks of the version, if this one is another."""
    from packaging.specifiers import SpecifierSet

    asked = wanted(name)
    return "" if SpecifierSet(asked).contains(version, prereleases=True) else asked


def _gpus(outcomes: Mapping[str, Outcome]) -> list[Check]:
    torch = outcomes.get("torch")
    found = torch.found if torch else None
    return [
        Check(
            "gpu",
            f"GPU {index}",
            "broken" if gpu["error"] else "ok",
            detail=": ".join(filter(None, (gpu["detail"], gpu["error"]))),
        )
        for index, gpu in enumerate(found["gpus"] if found else ())
    ]


def _keys() -> list[Check]:
    """Whether the variables that hold the keys of the known models are set."""
    from omnidata.adapters import presets
    from omnidata.adapters.addresses import OPENAI_URL

    openai = presets.find("openai:MODEL", {}, base_url=OPENAI_URL)
    users = {openai.key_env: ["openai:MODEL"]} if openai else {}
    faults = []
    try:
        rows = presets.table()
    except UsageError as error:
        faults = [Check("key", presets.MODELS_ENV, "broken", detail=str(error).splitlines()[0])]
        rows = {}
    for name, row in rows.items():
        if row.key_env:
            users.setdefault(row.key_env, []).append(name)
    return [*faults, *(_key(env, ", ".join(names)) for env, names in users.items())]


def _key(env: str, users: str) -> Check:
    try:
        state = Key.find(env)
    except UsageError as error:
        return Check("key", env, "broken", detail=error.what, remedy=f"export {env}=...")
    if state:
        return Check("key", env, "ok", detail=f"set; for {users}")
    return Check("key", env, "absent", detail=f"for {users}", remedy=f"export {env}=...")
