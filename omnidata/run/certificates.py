"""Certificates of models behind servers, which `omnidata certify` leaves for later runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from omnidata.errors import UsageError, plural
from omnidata.jsontext import hash_of, json_file
from omnidata.remote import cache_folder
from omnidata.storage import write_json
from omnidata.types import Modality

FACT: Final = "certificate"
"""The name among the facts of a run."""
MODALITIES: Final[Mapping[str, Modality]] = {"I": "image", "V": "video", "A": "audio"}
"""Letter -> modality, as `omnidata certify --modalities` has it."""
_MEDIA: Final[Mapping[Modality, str]] = {"image": "pictures", "video": "clips", "audio": "sound"}
_LARGEST: Final = 2**20


class Certified(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a certificate that runs record.

    Attributes:
        hash: SHA-256 of the certificate, in hexadecimal.
        date: when the probes were asked, ISO 8601 in UTC.
        passed: how many probes pass.
        unclear: how many say nothing.
        faults: the names of those that fail, each with its cause.
        modalities: those that a probe passes, beside text.
    """

    hash: str
    date: str
    passed: int
    unclear: int
    faults: dict[str, str]
    modalities: tuple[Modality, ...] = ()

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
        return msgspec.convert(json_file(_place(model, settings), _LARGEST), Certified)
    except (OSError, msgspec.ValidationError):
        return None


def check_certificate(
    model: str, settings: Mapping[str, Any], modalities: Collection[Modality]
) -> None:
    """Refuse a model without a certificate for its server, or with one that has faults or gaps.

    Args:
        model: the SPEC.
        settings: of the model.
        modalities: those that the run sends, beside text.

    Raises:
        UsageError: see above.
    """
    found = find_certificate(model, settings)
    missing = sorted({*modalities} - {*(found.modalities if found else ())})
    if found is None:
        why = f"{model} has none"
    elif found.faults:
        why = f"{model} has a certificate with faults: {found}"
    elif missing or not found.passed:
        media = ", ".join(_MEDIA[each] for each in missing) or "texts"
        why = f"no probe of {media} passes in the certificate of {model}"
    else:
        return
    address = f" --base-url {url}" if (url := settings.get("base_url")) else ""
    letters = ",".join(letter for letter, kind in MODALITIES.items() if kind in modalities)
    raise UsageError(
        why,
        where="--require-certificate",
        expected="a certificate without faults, of this model, its address and what is sent",
        remedy=f"omnidata certify {model}{address} --modalities '{letters}' --out certificate",
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
