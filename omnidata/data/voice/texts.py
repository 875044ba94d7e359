"""Which texts of a dataset are spoken, and how they are read."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from omnidata.errors import Finding
from omnidata.loaders.omnigui_apps import Language
from omnidata.loaders.scripts import has_chinese
from omnidata.tasks.omnigui_prompt import spoken, voice_file
from omnidata.types import Step

MAX_LETTERS = 2000
"""The longest text that is spoken, about two minutes; an instruction has a few sentences."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text to be spoken.

    Attributes:
        text: the instruction as the data has it.
        spoken: what is read aloud of it.
        language: of the text, see `language_of`.
        where: the first step that has it.
    """

    text: str
    spoken: str
    language: Language
    where: str

    @property
    def file(self) -> str:
        """The file's name, as the prompt looks for it."""
        return voice_file(self.text)


def language_of(text: str) -> Language:
    """Chinese if there is a Chinese character in the text, else English.

    By the text and not by the app, because two apps with the same text share its file. A Chinese
    voice reads English words; an English voice does not read Chinese.

    Examples:
        >>> language_of("打开 TED"), language_of("Open TED")
        ('zh', 'en')
    """
    return "zh" if has_chinese(text) else "en"


def readable(text: str) -> str:
    r"""The text in one line, a blank for whatever is no character to be read.

    Control characters are commands to some engines (Ctrl-A to espeak-ng), a NUL ends the text, and
    lone surrogates have no encoding.

    Examples:
        >>> readable("Tap\x00 \x01200s\n<b>Share</b>")
        'Tap 200s <b>Share</b>'
    """
    letters = (" " if unicodedata.category(letter)[0] == "C" else letter for letter in text)
    return " ".join("".join(letters).split())


def utterances(steps: Iterable[Step]) -> tuple[list[Utterance], list[Finding]]:
    """Every text once, in the order of the steps, and a finding for each that cannot be spoken."""
    found: dict[str, Utterance] = {}
    findings: dict[str, Finding] = {}
    for step in steps:
        for text in spoken(step):
            if text in found or text in findings:
                continue
            read = readable(text)
            if read and len(read) <= MAX_LETTERS:
                found[text] = Utterance(text, read, language_of(read), step.sample_id)
            else:
                findings[text] = _unspeakable(step, read)
    return list(found.values()), list(findings.values())


def _unspeakable(step: Step, read: str) -> Finding:
    return Finding(
        "voice-long" if read else "voice-empty",
        "error",
        step.sample_id,
        f"the instruction has {len(read)} characters" if read else "the instruction is empty",
        f"1 to {MAX_LETTERS} characters that can be read",
        "mend the instruction; it has no spoken form until then",
    )
