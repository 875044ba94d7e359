"""A model's text as code: the blocks of it, or one of the words WAIT, DONE and FAIL.

As OSWorld's own agent reads it (`parse_code_from_string`), less two mistakes: that one cuts the
text at every `;`, also within quotes, and takes a word before a line break for a language, so that
"DONE" on a line of its own is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnidata.pyautogui import WORDS, Call, Code, read_turn

_FENCE: Final = "```"
_LANGUAGES: Final = frozenset({"python", "py", "python3", "code"})


@dataclass(frozen=True, slots=True)
class Said:
    """What a text says to do.

    Attributes:
        statements: in order.
        code: the blocks, one below the other.
        as_prompted: every statement is understood.
    """

    statements: tuple[Call | Code, ...]
    code: str

    @property
    def as_prompted(self) -> bool:
        """Whether all of it is code that the prompt asks for."""
        return not any(isinstance(one, Code) for one in self.statements)


def parse(text: str) -> Said | str:
    r"""What a model's text says to do.

    Args:
        text: as it came.

    Returns:
        Or why it says nothing: there is no block, or nothing in one.

    Examples:
        >>> parse("I see it. ```python\npyautogui.click(3, 4)\n```").code
        'pyautogui.click(3, 4)'
        >>> parse("DONE").statements[0].status, parse("I am done.")
        ('success', 'there is no block of code')
    """
    if text.strip() in WORDS:
        return Said((WORDS[text.strip()],), text.strip())
    parts = text.split(_FENCE)
    blocks = [_unnamed(part) for part in parts[1:-1:2]]
    if not blocks:
        return "there is no block of code"
    found = [one for block in blocks for one in read_turn(block)]
    if not found:
        return "the block of code is empty"
    return Said(tuple(found), "\n".join(filter(None, blocks)))


def _unnamed(block: str) -> str:
    """The block without the name of its language."""
    first, *rest = block.split(maxsplit=1)[:2] or [""]
    if first.lower() in _LANGUAGES:
        block = rest[0] if rest else ""
    return block.strip()
