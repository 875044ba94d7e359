"""Speaks one text with espeak-ng; run as a script, in a process of its own for each text.

    python voice_speaker.py LIBRARY [LANGUAGE TEXT OUT]

It prints the version and writes a WAV file: mono, 16 bits, at espeak-ng's own rate (22,050 Hz).

The library keeps its state in globals, its sound depends on earlier texts, and it is C that reads
texts of strangers, so it must not share a process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import wave
from pathlib import Path

VOICES = {"en": "en-us", "zh": "cmn"}

_SYNCHRONOUS = 2  # of espeak_AUDIO_OUTPUT: `espeak_Synth` returns when all is said
_DO_NOT_EXIT = 0x8000  # of espeak_Initialize: an error is returned, the process goes on
_CHARACTERS = 1  # of espeak_POSITION_TYPE
_UTF8 = 1  # of espeak_Synth; neither SSML (0x10) nor phoneme names (0x100) are obeyed

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


def _main(library: str, language: str = "", text: str = "", out: str = "") -> None:
    espeak = ctypes.CDLL(library)
    espeak.espeak_Info.restype = ctypes.c_char_p
    # Its buffer for the path of its data takes 160 bytes, so that path is relative.
    os.chdir(Path(library).parent)
    rate = espeak.espeak_Initialize(_SYNCHRONOUS, 0, b".", _DO_NOT_EXIT)
    if rate <= 0:
        sys.exit("espeak-ng does not find its data")
    sys.stdout.write(espeak.espeak_Info(None).decode().split()[0])
    if not out:
        return
    parts: list[bytes] = []

    def receive(samples: ctypes._Pointer[ctypes.c_short], number: int, _: int | None) -> int:
        if samples and number > 0:
            parts.append(ctypes.string_at(samples, 2 * number))
        return 0

    callback = _Callback(receive)
    espeak.espeak_SetSynthCallback(callback)
    if espeak.espeak_SetVoiceByName(VOICES[language].encode()):
        sys.exit(f"espeak-ng has no voice {VOICES[language]}")
    encoded = text.encode()
    size = ctypes.c_size_t(len(encoded) + 1)
    if espeak.espeak_Synth(encoded, size, 0, _CHARACTERS, 0, _UTF8, None, None):
        sys.exit("espeak-ng refuses the text")
    if not parts:
        sys.exit("espeak-ng finds no text to speak")
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(parts))


if __name__ == "__main__":
    _main(*sys.argv[1:])
