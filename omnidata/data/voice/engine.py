"""What speaks: the contract of the engines."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from omnidata.errors import OmnidataError
from omnidata.loaders.omnigui_apps import Language
from omnidata.types import MediaRef

MAX_BYTES: Final = 256 * 1024**2
"""Of what an engine writes for one text; an hour at 24 kHz takes less."""


class VoiceError(OmnidataError):
    """An engine could not speak a text."""


class Voice(Protocol):
    """An engine with a voice per language."""

    @property
    def name(self) -> str:
        """The engine and its version; another one makes other sound."""

    def voice(self, language: Language) -> str:
        """What the engine calls the voice of a language."""

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """Speak one text.

        Args:
            text: without control characters.
            language: of the text.
            scratch: an empty folder for files on the way.

        Returns:
            The sound, at any rate; whoever called decodes and checks it.

        Raises:
            VoiceError: it cannot be spoken.
        """
