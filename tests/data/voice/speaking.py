"""A program for `--command`: it writes a tone whose length is that of the text."""

from __future__ import annotations

import argparse
import math
import os
import struct
import sys
import time
import wave
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--text")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--lang", default="")
    parser.add_argument("--heard", type=Path, help="every text is added to this file")
    parser.add_argument("--gate", type=Path, help="while it exists, the fourth call never ends")
    parser.add_argument("--mode", default="tone", help="the text may have it too, as a word")
    given = parser.parse_args()
    if given.heard:
        with given.heard.open("a", encoding="utf-8") as file:
            file.write(f"{given.lang}|{given.text}\n")
    if given.gate and given.gate.exists():
        if given.gate.stat().st_size == 3:
            given.gate.with_suffix(".pid").write_text(str(os.getpid()))
            time.sleep(600)
        with given.gate.open("a") as file:
            file.write(".")
    modes = {given.mode, *given.text.split()}
    if "fail" in modes:
        sys.exit("no voice today")
    if "hang" in modes:
        time.sleep(600)
    if "garbage" in modes:
        given.out.write_bytes(b"RIFF" + bytes(range(256)) * 20)
    elif "nothing" not in modes:
        loud = 0 if "silent" in modes else 9000
        write_tone(given.out, 0.2 + len(given.text) / 100, loud)


def write_tone(out: Path, seconds: float, loud: int) -> None:
    with wave.open(str(out), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(24_000)
        values = (round(loud * math.sin(n / 10)) for n in range(int(seconds * 24_000)))
        file.writeframes(b"".join(struct.pack("<hh", value, value) for value in values))


if __name__ == "__main__":
    main()
