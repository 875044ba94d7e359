"""The offline engine: espeak-ng, as `espeakng-loader` ships it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from omnidata.data.voice.engine import VoiceError
from omnidata.errors import PlatformError
from omnidata.loaders.omnigui_apps import Language
from omnidata.types import MediaRef

VOICES: Mapping[Language, str] = {"en": "en-us", "zh": "cmn"}
_SECONDS = 60.0


class Espeak:
    """espeak-ng; the same text gives the same samples, in every order and on every run.

    Raises:
        PlatformError: the extra `voice` is not installed, or its library does not work here.
    """

    def __init__(self) -> None:
        """Find the library and hear whether it speaks both languages."""
        try:
            import espeakng_loader
        except ImportError:
            raise PlatformError(
                "espeak-ng is not installed",
                expected="the extra `voice`",
                remedy="pip install 'omnidata[voice]', or name another engine with --command",
            ) from None
        self._library = Path(espeakng_loader.get_library_path())
        try:
            (version,) = {self._say("a", language)[0] for language in VOICES}
        except VoiceError as error:
            raise PlatformError(
                f"espeak-ng does not work here: {error.what}",
                where=str(self._library),
                expected="a library that speaks English and Chinese",
                remedy="pip install --force-reinstall espeakng-loader, or use --command",
            ) from None
        self.name = f"espeak-ng {version}"

    def voice(self, language: Language) -> str:
        """American English and Mandarin."""
        return VOICES[language]

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """As `Voice.speak`; the sound comes inline, at espeak-ng's own rate (22,050 Hz)."""
        _, rate, wave = self._say(text, language)
        return MediaRef("audio", scratch, "", inline={"array": wave, "sampling_rate": rate})

    def _say(self, text: str, language: Language) -> tuple[str, int, npt.NDArray[np.float32]]:
        script = Path(__file__).with_name("speaker.py")
        command = [sys.executable, "-I", "-S", str(script), str(self._library), VOICES[language]]
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                capture_output=True,
                cwd=self._library.parent,
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise VoiceError(f"espeak-ng was still speaking after {_SECONDS:.0f} s") from None
        except subprocess.CalledProcessError as error:
            told = error.stderr.decode("utf-8", "replace").strip().splitlines()
            raise VoiceError(told[-1] if told else f"exit code {error.returncode}") from None
        header, _, samples = done.stdout.partition(b"\n")
        told = json.loads(header)
        if not samples:
            raise VoiceError("espeak-ng finds nothing to say in it")
        wave = np.frombuffer(samples, np.int16).astype(np.float32)
        return told["version"], told["rate"], wave / np.float32(32768)
