"""The packages that are looked at, and what their metadata say."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from omnidata.doctor.check import Extra

PACKAGES: Mapping[str, Extra] = {
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
    "google-genai": "gemini",
    "matplotlib": "plots",
    "espeakng-loader": "voice",
}
"""Distribution -> the extra that brings it. Each stands after those that it imports."""

UNUSED: Mapping[str, str] = {
    "torchcodec": "datasets.Audio() and Video() need it, omnidata does not",
}
"""What omnidata does without -> who does not."""


def installed(name: str) -> str | None:
    """The version; None if the distribution is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def wanted(name: str) -> str:
    """What omnidata asks of the version, e.g. ">=5.0"; empty if it asks nothing."""
    return next((asked for asked in _asked("omnidata", name) if asked), "")


def misfit(name: str, other: str) -> str:
    """What `name` asks of the version of `other`, where that is another; empty if it fits."""
    from packaging.specifiers import SpecifierSet

    version = installed(other)
    for asked in _asked(name, other) if version else ():
        if not SpecifierSet(asked).contains(version or "", prereleases=True):
            return asked
    return ""


def folder(name: str, module: str) -> Path:
    """Where the distribution keeps the module."""
    return Path(str(metadata.distribution(name).locate_file(module)))


def _asked(name: str, other: str) -> list[str]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    asked = map(Requirement, lines)
    return [str(each.specifier) for each in asked if canonicalize_name(each.name) == other]
