"""Is a text in the language that its column promises? By its letters; no language is recognised.

Names are the trouble: a Chinese instruction may hold English ones, and an English instruction
Chinese ones. So Chinese is any text with a Chinese letter, and English is any text that is not
mostly Chinese.
"""

from __future__ import annotations

import re

_HAN = r"[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_LETTER = re.compile(r"[^\W\d_]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_CHINESE = re.compile(_HAN)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|《[^》]*》")
_PER_WORD = 2
"""Chinese letters that say as much as one English word."""


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
        text: an instruction. What stands in quotation marks is passed over in English.
        language: "en" or "zh".

    Examples:
        >>> foreign("Tap Share", "zh")
        'it has no Chinese letter'
        >>> foreign("打开 Paper Lanterns", "en")
        'it begins in Chinese'
        >>> foreign("Search QQ Music for “周杰伦 晴天”, play it", "en")
        ''
    """
    if language == "zh":
        return "it has no Chinese letter" if _LETTER.search(text) and not has_chinese(text) else ""
    if language != "en":
        return ""
    plain = _QUOTED.sub(" ", text)
    first = _LETTER.search(plain) or _LETTER.search(text)
    if first and _CHINESE.match(first[0]):
        return "it begins in Chinese"
    letters, words = len(_CHINESE.findall(plain)), len(_LATIN_WORD.findall(plain))
    if letters >= _PER_WORD * (words + 1):
        return f"it has {letters} Chinese letters and {words} English words"
    return ""
