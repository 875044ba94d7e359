"""Is a text in the language that its data promise? By its letters; no language is recognised.

Names are the trouble: a Chinese instruction may hold English ones, and an English instruction
Chinese ones. So Chinese is any text with a Chinese letter, unless it is Japanese or Korean, or
that is one name; English is any text that is not mostly in another script.
"""

from __future__ import annotations

import re
from typing import Literal

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
    """Whether there is a Chinese letter in a text.

    Examples:
        >>> has_chinese("打开 TED"), has_chinese("Open TED")
        (True, False)
    """
    return _CHINESE.search(text) is not None


def foreign(text: str, language: str) -> str:
    """Why a text cannot be in a language; empty if it can, and for languages other than en and zh.

    Args:
        text: an instruction. What stands in quotation marks or brackets is passed over, unless it
            is all.
        language: "en" or "zh".

    Examples:
        >>> foreign("Tap Share", "zh")
        'it has no Chinese letter'
        >>> foreign("打开 Paper Lanterns", "en")
        'it begins in another script'
        >>> foreign("Search QQ Music for “周杰伦 晴天”, play it", "en")
        ''
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
