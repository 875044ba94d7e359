"""Certificates of models behind servers, which `omnidata certify` leaves for later runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from omnidata.errors import UsageError, plural
from omnidata.files import read_text
from omnidata.jsontext import hash_of
from omnidata.remote import cache_folder
from omnidata.storage import write_json

FACT: Final = "certificate"
"""The name among the facts of a run."""
_LARGEST: Final = 2**20


class Certified(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a certificate that runs record.

    Attributes:
        hash: SHA-256 of the certificate, in hexadecimal.
        date: when the probes were asked, ISO 8601 in UTC.
        passed: how many probes pass.
        unclear: how many say nothing.
        faults: the names of those that fail, each with its cause.
    """

    hash: str
    date: str
    passed: int
    unclear: int
    faults: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return msgspec.structs.asdict(self)

    def __str__(self) -> str:
        faults = [f"{name} ({cause})" for name, cause in self.faults.items()]
        failed = f", {len(faults)} fail: {', '.join(faults)}" if faults else ""
        unclear = f", {self.unclear} unclear" if self.unclear else ""
        return f"{plural(self.passed, 'probe')} of {self.date[:10]} pass{unclear}{failed}"


def store_certificate(model: str, settings: Mapping[str, Any], found: Certified) -> None:
    """Leave a certificate for later runs of the same model at the same address.

    Raises:
        OSError: the cache takes no file.
    """
    path = _place(model, settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, found.as_dict())


def find_certificate(model: str, settings: Mapping[str, Any]) -> Certified | None:
    """Return the latest certificate of a model at an address; None without one."""
    try:
        text = read_text(_place(model, settings), _LARGEST)
        return msgspec.convert(json.loads(text), Certified)
    except (OSError, ValueError):
        return None


def check_certificate(model: str, settings: Mapping[str, Any]) -> None:
    """Refuse a model whose server has no certificate, or one with faults.

    Raises:
        UsageError: see above.
    """
    found = find_certificate(model, settings)
    if found and not found.faults:
        return
    raise UsageError(
        f"{model} has a certificate with faults: {found}" if found else f"{model} has none",
        where="--require-certificate",
        expected="a certificate without faults for this model and address",
        remedy=f"`omnidata certify {model}` shows each fault and its fix",
    )


def _place(model: str, settings: Mapping[str, Any]) -> Path:
    key = hash_of([model, str(settings.get("base_url", ""))])
    return cache_folder() / "certificates" / f"{key}.json"


def certificate_of(facts: Mapping[str, Any]) -> Certified | None:
    """Return the certificate among the facts of a run; None without one, or of another form."""
    try:
        return msgspec.convert(facts.get(FACT), Certified)
    except msgspec.ValidationError:
        return None
