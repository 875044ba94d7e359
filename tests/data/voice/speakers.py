"""Runs `omnidata voice` over texts, with espeak-ng or with the program of `speaking.py`."""

from __future__ import annotations

import hashlib
import shlex
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.cli.running import as_json, here, omnidata
from tests.trees import row, write_rows

PROGRAM = Path(__file__).with_name("speaking.py")


def command(extra: str = "") -> str:
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))}"
    return f"{program} --text {{text}} --out {{out}} --lang {{language}} {extra}".strip()


def voice(
    out: Path,
    *texts: str,
    by: str | None = None,
    options: tuple[str, ...] = (),
    code: int = 0,
    anew: bool = False,
) -> Any:
    """Render the texts, one per step, in their order.

    Args:
        out: the folder.
        texts: step N has `TED/EN/0` for its id.
        by: a command in place of espeak-ng.
        options: further ones.
        code: the exit code.
        anew: see `tests.cli.running.omnidata`.

    Returns:
        The result of `--json`; with exit code 2 the message.
    """
    rows = [row(f"E{n}", 0, app="TED", instruction_en=text) for n, text in enumerate(texts)]
    data = write_rows(out.parent / f"steps of {out.name}" / "steps.json", rows)
    if by is not None:
        options = ("--command", by, *options)
    if "--workers" not in options:
        options = ("--workers", "1", *options)
    asked: tuple[str | Path, ...] = ("voice", "omnigui", data, out, "--json", *options)
    done = omnidata(*asked, code=code, anew=True) if anew else here(*asked, code=code)
    return done.stderr if code == 2 else as_json(done)


def codes(done: Any) -> list[tuple[str, str]]:
    return [(finding["code"], finding["where"]) for finding in done["findings"]]


def file_of(out: Path, text: str) -> Path:
    name = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return out / f"{name}.wav"


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.wav")}


def samples(path: Path) -> npt.NDArray[np.float64]:
    """The samples of a file of 16 kHz, mono, 16 bits."""
    with wave.open(str(path)) as file:
        assert file.getparams()[:3] == (1, 2, 16_000)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
