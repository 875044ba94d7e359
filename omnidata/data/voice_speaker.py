"""Speaks one text with espeak-ng; run as a script, in a process of its own for each text.

    python voice_speaker.py LIBRARY VOICE < TEXT

The current folder is the library's, where its data lie: a path of 160 bytes or more does not fit
its buffer. Standard output gets one line of JSON, version and rate in Hz, and then the samples: 16
bits, mono, in the machine's byte order.

The library keeps its state in globals, its sound depends on earlier texts, and it is C that reads
texts of strangers, so it must not share a process.
"""

from __future__ import annotations

import ctypes
import json
import sys

_SYNCHRONOUS = 2  # of espeak_AUDIO_OUTPUT: `espeak_Synth` returns when all is said
_DO_NOT_EXIT = 0x8000  # of espeak_Initialize: an error is returned, the process goes on
_CHARACTERS = 1  # of espeak_POSITION_TYPE
_UTF8 = 1  # of espeak_Synth; neither SSML (0x10) nor phoneme names (0x100) are obeyed

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


def _main(library: str, voice: str) -> None:
    espeak = ctypes.CDLL(library)
    espeak.espeak_Info.restype = ctypes.c_char_p
    rate = espeak.espeak_Initialize(_SYNCHRONOUS, 0, b".", _DO_NOT_EXIT)
    if rate <= 0:
        raise RuntimeError("espeak-ng does not find its data")
    parts: list[bytes] = []

    def receive(samples: ctypes._Pointer[ctypes.c_short], number: int, _: int | None) -> int:
        if samples and number > 0:
            parts.append(ctypes.string_at(samples, 2 * number))
        return 0

    callback = _Callback(receive)
    espeak.espeak_SetSynthCallback(callback)
    if espeak.espeak_SetVoiceByName(voice.encode()):
        raise RuntimeError(f"espeak-ng has no voice {voice}")
    text = sys.stdin.buffer.read()
    size = ctypes.c_size_t(len(text) + 1)
    if espeak.espeak_Synth(text, size, 0, _CHARACTERS, 0, _UTF8, None, None):
        raise RuntimeError("espeak-ng refuses the text")
    header = {"version": espeak.espeak_Info(None).decode().split()[0], "rate": rate}
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + b"".join(parts))


if __name__ == "__main__":
    _main(*sys.argv[1:])
