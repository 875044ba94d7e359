"""The examination behind `omnidata doctor`: which packages load, and how to fix the others."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal

from omnidata.adapters.keys import Key
from omnidata.errors import UsageError
from omnidata.types import Progress

if TYPE_CHECKING:
    from packaging.requirements import Requirement

State = Literal["ok", "worked round", "absent", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one package, GPU or key.

    Attributes:
        group: the extra that installs it, "base", "unused" (omnidata does without), "gpu" or "key".
        name: of the distribution, the GPU or the environment variable.
        state: "ok" loads (a key: is set); "worked round" loads within omnidata only; "absent" is
            not installed (a key: not set); "broken" is installed and unusable.
        version: as installed; empty where there is none.
        detail: what it can do, or what is wrong.
        remedy: the command that fixes or installs it; empty where nothing is to be done.
    """

    group: str
    name: str
    state: State
    version: str = ""
    detail: str = ""
    remedy: str = ""

    @property
    def fault(self) -> bool:
        """Whether it is broken, or a package that omnidata always needs is absent."""
        return self.state == "broken" or (self.state == "absent" and self.group == "base")

    def as_dict(self) -> dict[str, str]:
        """The check as a JSON object."""
        return asdict(self)


_PACKAGES = {
    "datasets": "base",
    "av": "base",
    "pillow": "base",
    "isal": "base",
    "torch": "local",
    "torchvision": "local",
    "torchaudio": "local",
    "transformers": "local",
    "accelerate": "local",
    "torchcodec": "unused",
    "peft": "local",
    "trl": "train",
    "openai": "openai",
    "anthropic": "anthropic",
    "google-genai": "gemini",
    "matplotlib": "plots",
    "espeakng-loader": "voice",
}
"""Distribution -> the extra that installs it. Each stands after those that it imports."""

_UNUSED = "datasets.Audio() and Video() need it, omnidata does not"

_ENDS = ("it was still loading", "it ends the process")
"""Errors without an exception."""

_CUDA_BUILD = re.compile(r"torchvision::nms|\.so\b")
_WITHOUT_CUDA = {
    "torchvision": "truncate -s 0 {}/torchvision/_meta_registrations.py",
    "torchaudio": "rm -f {}/torchaudio/lib/*.so",
}
"""Commands that take the parts for CUDA out of a package; the rest is Python and works."""


async def examine(*, time_limit: float, progress: Progress | None = None) -> tuple[Check, ...]:
    """Load the packages of omnidata's extras, each in a process of its own, and try them.

    Args:
        time_limit: in seconds, for each package.
        progress: called with the number of packages done and of all.

    Returns:
        Packages, GPUs, and keys without their values.
    """
    versions = {name: version for name in _PACKAGES if (version := _version(name))}
    free = asyncio.Semaphore(min(4, os.cpu_count() or 1))
    probed: dict[str, dict[str, Any]] = {}

    async def probe(name: str) -> None:
        async with free:
            probed[name] = await _probe(name, time_limit)
        if progress:
            progress(len(probed), len(versions))

    async with asyncio.TaskGroup() as group:
        for name in versions:
            group.create_task(probe(name))
    torch = probed.get("torch", {})
    checks: list[Check] = []
    for name, extra in _PACKAGES.items():
        if version := versions.get(name):
            checks.append(_package(name, version, probed[name], torch.get("build"), checks))
        elif extra == "unused":
            checks.append(Check(extra, name, "absent", detail=_UNUSED))
        else:
            checks.append(Check(extra, name, "absent", remedy=_install_extra(name)))
    for index, gpu in enumerate(torch.get("gpus", ())):
        detail = ": ".join(filter(None, (gpu["detail"], gpu["error"])))
        checks.append(Check("gpu", f"GPU {index}", "broken" if gpu["error"] else "ok", "", detail))
    return (*checks, *_keys())


async def _probe(name: str, time_limit: float) -> dict[str, Any]:
    with TemporaryFile() as out:  # a process that the package has started could keep a pipe open
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "omnidata.data.doctor_probe", name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        try:
            code = await asyncio.wait_for(process.wait(), time_limit)
        except TimeoutError:
            return {"error": f"{_ENDS[0]} after {time_limit:g} s"}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        out.seek(0)
        try:
            found: dict[str, Any] = json.load(out)
        except ValueError:
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return {"error": f"{_ENDS[1]}: {ended}"}
        return found


def _package(
    name: str,
    version: str,
    probed: Mapping[str, Any],
    torch_build: str | None,
    earlier: Sequence[Check],
) -> Check:
    extra, error = _PACKAGES[name], probed.get("error", "")
    if error or probed.get("worked_round"):
        detail, remedy = _diagnose(name, version, error, torch_build, earlier)
        if not error:
            detail += "; loads within omnidata only"
        return Check(extra, name, "broken" if error else "worked round", version, detail, remedy)
    for asked, _ in _conflicts("omnidata", extra):
        if asked.name == name:
            remedy = _pip("install", "--upgrade", f"{name}{asked.specifier}")
            detail = f"omnidata needs {asked.specifier}"
            return Check(extra, name, "broken", version, detail, remedy)
    detail = probed.get("detail", _UNUSED if extra == "unused" else "")
    return Check(extra, name, "ok", version, detail)


def _diagnose(
    name: str, version: str, error: str, torch_build: str | None, earlier: Sequence[Check]
) -> tuple[str, str]:
    """Return the reason, which ends with the error, and the command that fixes it."""
    # Without an exception the same end proves little: only a package that this one needs counts.
    needed = (
        {asked.name.lower() for asked in _requirements(name)} if error.startswith(_ENDS) else None
    )
    for check in earlier:
        is_cause = check.state == "broken" and error and check.detail.endswith(error)
        if is_cause and (needed is None or check.name in needed):
            return f"as {check.name}: {error}", check.remedy
    if _PACKAGES[name] == "unused":
        return f"omnidata does not need it: {error}", _pip("uninstall", name)
    for asked, there in _conflicts(name):
        why = f"it needs {asked}, and {there} is installed"
        # With the other version given, the installer finds the one that was made for it.
        remedy = _pip("install", "--upgrade", name, f"{asked.name}=={there}")
        return ": ".join(filter(None, (why, error))), remedy
    command = _WITHOUT_CUDA.get(name)
    if torch_build == "CPU" and command and (not error or _CUDA_BUILD.search(error)):
        folder = shlex.quote(str(metadata.distribution(name).locate_file("")))
        why = "a build for CUDA, beside a torch without"
        return ": ".join(filter(None, (why, error))), command.format(folder)
    if error.startswith("ModuleNotFoundError: No module named"):
        return error, _install_extra(name)
    return error, _pip("install", "--force-reinstall", "--no-deps", f"{name}=={version}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _conflicts(name: str, extra: str = "") -> Iterator[tuple[Requirement, str]]:
    """Yield what a distribution requires and does not get, and the version that is installed."""
    for asked in _requirements(name):
        version = _version(asked.name)
        applies = not asked.marker or asked.marker.evaluate({"extra": extra})
        if applies and version and not asked.specifier.contains(version, prereleases=True):
            yield asked, version


def _requirements(name: str) -> Iterator[Requirement]:
    """Yield the readable requirements of a distribution, those of its extras too."""
    from packaging.requirements import InvalidRequirement, Requirement

    for line in metadata.requires(name) or ():
        with suppress(InvalidRequirement):
            yield Requirement(line)


def _install_extra(name: str) -> str:
    extra = _PACKAGES[name]
    return _pip("install", "omnidata" if extra == "base" else f"omnidata[{extra}]")


def _pip(verb: Literal["install", "uninstall"], *what: str) -> str:
    """Return a command for the environment that runs now, which need not have pip."""
    if find_spec("pip"):
        sure = ["-y"] if verb == "uninstall" else []
        return shlex.join([sys.executable, "-m", "pip", verb, *sure, *what])
    return shlex.join(["uv", "pip", verb, "--python", sys.executable, *what])


def _keys() -> Iterator[Check]:
    from omnidata.adapters import presets
    from omnidata.adapters.keys import ANTHROPIC_URL, OPENAI_URL

    users: dict[str, list[str]] = {}
    urls = {"openai": OPENAI_URL, "openai-responses": OPENAI_URL, "anthropic": ANTHROPIC_URL}
    for wire, url in urls.items():
        if preset := presets.find(f"{wire}:MODEL", {}, base_url=url):
            users.setdefault(preset.key_env, []).append(preset.spec)
    try:
        for name, row in presets.table().items():
            users.setdefault(row.key_env, []).append(name)
    except UsageError as error:
        yield Check("key", presets.MODELS_ENV, "broken", detail=str(error).splitlines()[0])
    for env in filter(None, users):
        detail, remedy = f"for {', '.join(users[env])}", f"export {env}=..."
        try:
            if Key.find(env):
                yield Check("key", env, "ok", detail=f"set; {detail}")
            else:
                yield Check("key", env, "absent", detail=detail, remedy=remedy)
        except UsageError as error:
            yield Check("key", env, "broken", detail=error.what, remedy=remedy)
