"""Speaks one text with espeak-ng; run as a script, in a process of its own for each text.

Standard input has the text in UTF-8. Standard output gets one line of JSON, the library's version
and the rate in Hz, and then the samples: 16 bits, mono, in the machine's byte order.

A process per text for three reasons: the library keeps everything in globals and is not safe to
use from threads; its sound depends on what it said before, even after it was initialised again; and
it is C that reads texts of strangers, which must not take the caller down with it.
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


def speak(library: str, voice: str, text: bytes) -> tuple[str, int, bytes]:
    """The library's version, the rate in Hz, and the samples.

    Args:
        library: path of the shared library; its data lie in the current folder, because a path of
            160 bytes or more does not fit its buffer.
        voice: a voice's name, e.g. "en-us".
        text: UTF-8 without NUL.
    """
    espeak = ctypes.CDLL(library)
    espeak.espeak_Info.restype = ctypes.c_char_p
    rate = espeak.espeak_Initialize(_SYNCHRONOUS, 0, b".", _DO_NOT_EXIT)
    if rate <= 0:
        raise RuntimeError("espeak-ng does not find its data")
    parts: list[bytes] = []

    def heard(samples: ctypes._Pointer[ctypes.c_short], number: int, _: int | None) -> int:
        if samples and number > 0:
            parts.append(ctypes.string_at(samples, 2 * number))
        return 0

    callback = _Callback(heard)
    espeak.espeak_SetSynthCallback(callback)
    if espeak.espeak_SetVoiceByName(voice.encode()):
        raise RuntimeError(f"espeak-ng has no voice {voice}")
    size = ctypes.c_size_t(len(text) + 1)
    if espeak.espeak_Synth(text, size, 0, _CHARACTERS, 0, _UTF8, None, None):
        raise RuntimeError("espeak-ng refuses the text")
    return espeak.espeak_Info(None).decode(), rate, b"".join(parts)


if __name__ == "__main__":
    version, hertz, sound = speak(sys.argv[1], sys.argv[2], sys.stdin.buffer.read())
    header = json.dumps({"version": version.split()[0], "rate": hertz})
    sys.stdout.buffer.write(header.encode() + b"\n" + sound)
