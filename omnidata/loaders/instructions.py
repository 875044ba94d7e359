"""Texts of instructions: is one in the language that its data promise, and which file speaks it?

A text is judged by its letters alone. Names are the trouble: a Chinese instruction may hold English
ones, and an English instruction Chinese ones. So Chinese is any text with a Chinese letter that is
not Japanese or Korean, and any single word, which may be a name; English is any text that is not
mostly in another script.

`omnidata voice` writes a folder with a WAV file for each text, named after the text; a benchmark
whose prompt has a spoken form looks there.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

from omnidata.types import MediaRef

Language = Literal["zh", "en"]
"""A language that instructions are checked, written and spoken in."""

_HAN = r"[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u02ff\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"
_LETTER = re.compile(r"[^\W\d_]")
_OTHER = re.compile(rf"[^\W\d_{_LATIN}]")
_LATIN_WORD = re.compile(rf"[{_LATIN}]+")
_LOWER_WORD = re.compile(r"\b[a-z]+\b")
_CHINESE = re.compile(_HAN)
_KANA_HANGUL = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]")
_QUOTED = re.compile(
    r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|《[^》]*》|\[[^]]*\]|(?<!\w)'[^']*'(?!\w)"
)
_PER_WORD = 4
"""Letters of another script that outweigh one English word: a name has two to four."""


def has_chinese(text: str) -> bool:
    """Return whether there is a Chinese letter in a text.

    Examples:
        >>> has_chinese("打开 TED"), has_chinese("Open TED")
        (True, False)
    """
    return _CHINESE.search(text) is not None


def foreign(text: str, language: str) -> str:
    """Return why a text cannot be in a language; empty if it can, or if it is neither en nor zh.

    Args:
        text: an instruction. Quotations and brackets are ignored, unless there is nothing else.
        language: "en" or "zh".

    Examples:
        >>> foreign("Tap Share", "zh")
        'it has no Chinese letter'
        >>> foreign("打开 Paper Lanterns", "en")
        'it begins in another script'
        >>> foreign("Search QQ Music for “周杰伦 晴天”, play it", "en"), foreign("点击", "de")
        ('', '')
    """
    plain = _QUOTED.sub(" ", text)
    if not _LETTER.search(plain):
        plain = text
    others, words = _OTHER.findall(plain), _LATIN_WORD.findall(plain)
    if language == "zh":
        if not has_chinese(text):  # a single word may be the name of an app
            return "it has no Chinese letter" if others or len(words) > 1 else ""
        syllables = len(_KANA_HANGUL.findall(plain))
        return f"it has {syllables} letters of kana or Hangul" if syllables > 1 else ""
    if language != "en":
        return ""
    first = _LETTER.search(plain)
    # English may begin with a name; where names follow the verb, no small words do.
    if first and _OTHER.match(first[0]) and len(_LOWER_WORD.findall(plain)) < 2:
        return "it begins in another script"
    if len(others) >= _PER_WORD * (len(words) + 1):
        return f"it has {len(others)} letters of another script and {len(words)} English words"
    return ""


# Spoken texts.

MIN_BYTES = 1000
"""A file of this size or less says nothing (30 ms); OmniGUI's released code passes over it too."""


def voice_file(text: str) -> str:
    """Return the name of the file that speaks a text: the MD5 of its UTF-8 form.

    Examples:
        >>> voice_file("Tap Share")
        '6392b4d2500cf323b5aa50b48162869b.wav'
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.md5(encoded, usedforsecurity=False).hexdigest() + ".wav"


def find_voice(folder: Path, text: str) -> MediaRef | None:
    """Return the spoken form of a text; None if the folder has none."""
    name = voice_file(text)
    path = folder / name
    if path.is_file() and path.stat().st_size > MIN_BYTES:
        return MediaRef("audio", folder, name)
    return None
