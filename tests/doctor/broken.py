"""Packages that do not work, for a folder that Python searches first."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cli.running import omnidata

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
    "openai": "openai",
    "google-genai": "google",
    "matplotlib": "matplotlib",
    "espeakng-loader": "espeakng_loader",
}

TORCH = ("torch", "torchvision", "torchaudio", "transformers")
BELOW_TRANSFORMERS = (
    *TORCH,
    "datasets",
    "av",
    "pillow",
    "accelerate",
    "matplotlib",
    "google-genai",
)
"""It imports them, or looks into their folders, where they are installed."""

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
    """What the installer says about a package."""
    number = version or importlib.metadata.version(name)
    about = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    about.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}"]
    lines += [f"Requires-Dist: {requires}"] * bool(requires)
    (about / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")


def out_of_order(folder: Path, *but: str) -> None:
    """All packages but these fail at once, so that nobody waits for them."""
    for name in MODULES.keys() - set(but):
        if not (folder / MODULES[name]).exists():
            install(folder, name, "raise RuntimeError('out of order')")


def torchvision_for_cuda(folder: Path) -> Path:
    """The installed torchvision without its compiled part; the module's folder."""
    import torchvision

    package = folder / "torchvision"
    installed = Path(torchvision.__file__).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (package / "_meta_registrations.py").write_text(REGISTRATIONS, encoding="utf-8")
    information(folder, "torchvision")
    return package


def doctor(folder: Path | None, *options: str, code: int = 1) -> dict[str, dict[str, Any]]:
    """The lines of `omnidata doctor --json` by name, where Python searches the folder first."""
    before = os.environ.get("PYTHONPATH")
    try:
        if folder:
            os.environ["PYTHONPATH"] = str(folder)
        shown = json.loads(omnidata("doctor", "--json", *options, code=code, anew=True).stdout)
    finally:
        if before is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = before
    return {check["name"]: check for check in shown["checks"]}


def follow(check: Mapping[str, str]) -> None:
    """Type the command, as a person would."""
    assert check["remedy"].startswith(("rm -f ", "truncate "))
    subprocess.run(check["remedy"], shell=True, check=True)


def loads(folder: Path, code: str) -> bool:
    """Whether a plain Python runs the code, where it searches the folder first."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
