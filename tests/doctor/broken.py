"""Packages that do not work, for a folder that Python searches first."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.running import as_json, omnidata

Check = dict[str, str]

MODULES = {
    "datasets": "datasets",
    "av": "av",
    "pillow": "PIL",
    "isal": "isal",
    "torch": "torch",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "peft": "peft",
    "trl": "trl",
    "matplotlib": "matplotlib",
    "espeakng-loader": "espeakng_loader",
}

TORCH = ("torch", "torchvision", "torchaudio", "transformers")
BELOW_TRANSFORMERS = (*TORCH, "datasets", "av", "pillow", "accelerate", "matplotlib")
"""It imports them, or looks into their folders, where they are installed."""

DEAR = (
    *("datasets", "torchvision", "torchaudio", "transformers", "accelerate", "peft", "trl"),
    "matplotlib",
)
"""Each takes more than a second to import."""

TORCH_WITHOUT_CUDA = """
from types import SimpleNamespace

class Library:
    def __init__(self, name, kind): pass
    def define(self, schema): pass

class _Tensor:
    sum = item = lambda self: self

def ones(size): return _Tensor()

version = SimpleNamespace(cuda=None, hip=None)
cuda = SimpleNamespace(is_available=lambda: False)
library = SimpleNamespace(Library=Library)
"""

CUDA_LIBRARY = "libtorch_cuda.so: cannot open shared object file: No such file or directory"

TORCHAUDIO = f"""
from pathlib import Path
from types import SimpleNamespace
for library in Path(__file__).with_name("lib").glob("*.so"):
    try:
        raise OSError({CUDA_LIBRARY!r})
    except OSError as error:
        raise OSError(f"Could not load this library: {{library}}") from error
functional = SimpleNamespace(resample=lambda wave, old, new: wave)
"""

REGISTRATIONS = """
import torch

@torch.library.register_fake("torchvision::nms")
def meta_nms(dets, scores, iou_threshold):
    return dets

@torch.library.register_fake("torchvision::qnms")
def meta_qnms(dets, scores, iou_threshold):
    return dets
"""
"""What torchvision asks of its compiled operators when it is imported."""


def install(
    folder: Path, name: str, source: str, *, version: str | None = None, requires: str = ""
) -> Path:
    """A package with this source in place of the installed one; its module's folder."""
    package = folder / MODULES.get(name, name)
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    information(folder, name, version=version, requires=requires)
    return package


def information(folder: Path, name: str, *, version: str | None = None, requires: str = "") -> None:
    number = version or importlib.metadata.version(name)
    about = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    about.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}"]
    lines += [f"Requires-Dist: {requires}"] * bool(requires)
    (about / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")


def out_of_order(folder: Path, *but: str) -> None:
    """All packages but these fail at once, each in its own way, and cost no time."""
    for name in MODULES.keys() - set(but):
        if not (folder / MODULES[name]).exists():
            install(folder, name, f"raise RuntimeError('no {name}')")


def torchvision_for_cuda(folder: Path) -> Path:
    """The installed torchvision without its compiled part; the module's folder."""
    found = find_spec("torchvision")
    assert found and found.origin
    package = folder / "torchvision"
    installed = Path(found.origin).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("*.so"))
    (package / "_meta_registrations.py").write_text(REGISTRATIONS, encoding="utf-8")
    information(folder, "torchvision")
    return package


def first(folder: Path) -> str:
    """A `PYTHONPATH` on which the folder stands before all others."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def doctor(folder: Path, *arguments: str, but: Collection[str] = ()) -> dict[str, Check]:
    """The checks by name, where Python searches the folder first.

    Args:
        folder: of the packages that `install` wrote.
        arguments: further ones of the command.
        but: the packages that are left as installed; all others fail at once.
    """
    out_of_order(folder, *but)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", first(folder))
        found = as_json(omnidata("doctor", "--json", *arguments, code=1, anew=True))
    assert found["broken"] == sum(check["state"] == "broken" for check in found["checks"])
    return {check["name"]: check for check in found["checks"]}


def follow(check: Check) -> None:
    """Type the command, as a person would."""
    assert check["remedy"].startswith(("rm -f ", "truncate "))
    subprocess.run(check["remedy"], shell=True, check=True)


def loads(folder: Path, code: str) -> bool:
    environment = os.environ | {"PYTHONPATH": first(folder)}
    return subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
