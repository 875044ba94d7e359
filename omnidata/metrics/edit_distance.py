"""Edit distance of sequences (AgentStudio, Table 9)."""

from __future__ import annotations

from collections.abc import Sequence


def edit_distance(letters: Sequence[str], reference: Sequence[str]) -> int:
    """Return the Levenshtein distance: insertions, deletions and replacements cost 1 each.

    Examples:
        >>> edit_distance("CGHCIG", "CCCCG")  # appendix D.3
        3
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(letters, reference)
