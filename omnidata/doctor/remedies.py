"""Why a package cannot be used, and the command that mends it on this machine."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec

from omnidata.adapters.hf.torchvision_shim import MISSING_OPERATOR
from omnidata.doctor.check import Check
from omnidata.doctor.child import Outcome
from omnidata.doctor.packages import PACKAGES, folder, installed, misfit

_LINKED_AGAINST_CUDA = "a build for CUDA, beside a torch without"
_MODULES = {"pillow": "PIL"}
"""Where a package that others import has another name."""

_LAST_TORCHAUDIO = 11  # its newest, which keeps to the part of torch that stays the same


def install(*what: str) -> str:
    """The command that installs into the environment that runs now."""
    if find_spec("pip"):
        return shlex.join([sys.executable, "-m", "pip", "install", *what])
    return shlex.join(["uv", "pip", "install", "--python", sys.executable, *what])


def install_extra(name: str) -> str:
    """The command that installs a package of `PACKAGES` as omnidata asks for it."""
    group = PACKAGES[name]
    return install("omnidata" if group == "base" else f"omnidata[{group}]")


def round_nms() -> tuple[str, str]:
    """Reason and remedy where torchvision works within omnidata alone."""
    if asked := misfit("torchvision", "torch"):
        return f"{_made_for(asked)}; loads within omnidata only", _matching("torchvision")
    return f"{_LINKED_AGAINST_CUDA}; loads within omnidata only", _without_registrations()


def explain(
    name: str, outcome: Outcome, torch_build: str, broken: Mapping[str, Check]
) -> tuple[str, str]:
    """Reason and remedy of a package that is installed and cannot be used.

    Args:
        name: of the distribution.
        outcome: of its probe.
        torch_build: "CPU", "CUDA 13.0", ...; empty where torch does not load.
        broken: what does not load, of the packages that this one may import.

    Returns:
        Reason, one line, and command.
    """
    for other, check in broken.items():
        if _passes_through(other, outcome.trace):
            return f"cannot load {other}", check.remedy
    if PACKAGES[name] == "unused":
        return f"{outcome.error}; omnidata does not need it", _uninstall(name)
    if asked := misfit(name, "torch"):
        return _made_for(asked), _matching(name)
    if torch_build == "CPU" and name == "torchvision" and MISSING_OPERATOR in outcome.error:
        return f"{_LINKED_AGAINST_CUDA}: {outcome.error}", _without_registrations()
    if torch_build == "CPU" and name == "torchaudio" and "OSError" in outcome.trace:
        libraries = shlex.quote(str(folder("torchaudio", "torchaudio/lib")))
        return f"{_LINKED_AGAINST_CUDA}: {outcome.error}", f"rm -f {libraries}/*.so"
    if outcome.missing_module:
        return outcome.error, install_extra(name)
    if name in ("torchvision", "torchaudio") and torch_build:
        return outcome.error, _matching(name)
    return outcome.error, install("--force-reinstall", "--no-deps", f"{name}=={installed(name)}")


def _passes_through(other: str, trace: str) -> bool:
    """Whether what failed was importing the other package, or ran in it."""
    module = _MODULES.get(other, other)
    inside = f"{folder(other, module)}{os.sep}"
    return inside in trace or bool(re.search(rf"\b(import|from) {module}\b", trace))


def _made_for(asked: str) -> str:
    return f"made for torch {asked}, and this is {installed('torch')}"


def _without_registrations() -> str:
    """Empties the one file that wants the operators; the rest is Python."""
    registers = folder("torchvision", "torchvision/_meta_registrations.py")
    return shlex.join(["truncate", "-s", "0", str(registers)])


def _matching(name: str) -> str:
    """The version that was made for the torch that is there, which stays.

    torchvision 0.(N + 15) goes with torch 2.N, torchaudio 2.N up to 2.11 too; what has no such
    number is left to the installer.
    """
    version = installed("torch") or ""
    found = re.match(r"2\.(\d+)", version)
    if found is None:
        return install("--upgrade", name)
    minor = int(found[1])
    matching = {
        "torchvision": f"torchvision==0.{minor + 15}.*",
        "torchaudio": f"torchaudio==2.{min(minor, _LAST_TORCHAUDIO)}.*",
    }
    return install("--force-reinstall", "--no-deps", matching.get(name, name))


def _uninstall(name: str) -> str:
    if find_spec("pip"):
        return shlex.join([sys.executable, "-m", "pip", "uninstall", "-y", name])
    return shlex.join(["uv", "pip", "uninstall", "--python", sys.executable, name])
