"""Where a response says `Answer:`, however it is dressed.

The prompts of IDMBench and CriticBench (AgentStudio, appendices D and E) ask for a last line
`Answer: ...`. Models write `**Answer:**`, `ANSWER :` or `{"answer": ...}` and mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DRESS = " \t\xa0*_`\"'“”‘’()[]{}<>+-–—•·#~$|.…,;:=!?"
"""What may stand around an answer without being part of it, bullets among it."""

WIDE = str.maketrans("（），．：；［］＝", "(),.:;[]=")
"""Full-width signs and the ASCII ones they stand for."""

# Possessive: what cannot backtrack is read once. No match can begin inside a failed one.
# The look behind comes second: looking behind every character costs three times the search.
_MARKER = re.compile(r"answer(?<![^\W_]answer)[\s*_`\"']*+:", re.IGNORECASE)


def answers(text: str) -> Iterator[str]:
    """What follows each `Answer:` up to the next one, the last first.

    Full-width signs come out as ASCII. The pieces do not overlap, so that reading all of them costs
    no more than reading the text.

    Examples:
        >>> list(answers("Answer: A, no. **Answer:** B"))
        ['** B', ' A, no. **']
    """
    text = text.translate(WIDE)
    end = len(text)
    for marker in reversed(list(_MARKER.finditer(text))):
        yield text[marker.end() : end]
        end = marker.start()
