"""The largest set of elements of a partial order of which no two are related."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.graphs import places


def largest_antichain(related: Sequence[int], among: int | None = None) -> int:
    """How many elements can be pairwise unrelated (Dilworth: elements less a largest matching).

    Augmenting paths over bit sets: graphs here have ten nodes, for which a matching of NetworkX or
    SciPy costs more to set up than to find.

    Args:
        related: for each element the bit set of those on one side of it, always the same side;
            transitive.
        among: bit set of the elements to choose from; None = all.

    Examples:
        >>> largest_antichain([0b000, 0b001, 0b001])
        2
    """
    if among is None:
        among = (1 << len(related)) - 1
    partners: dict[int, int] = {}
    for element in places(among):
        if related[element] & among:
            _match(element, related, among, partners)
    return among.bit_count() - len(partners)


def _match(element: int, related: Sequence[int], among: int, partners: dict[int, int]) -> None:
    """Give the element a partner, where the others can be given others.

    Args:
        element: the one to match.
        related: as above.
        among: as above.
        partners: right element -> left element; changed.
    """
    came: dict[int, int] = {}
    chosen = {left: right for right, left in partners.items()}
    waiting, unseen = [element], among
    while waiting:
        left = waiting.pop()
        found = related[left] & unseen
        unseen ^= found
        for right in places(found):
            came[right] = left
            if right in partners:
                waiting.append(partners[right])
                continue
            step: int | None = right
            while step is not None:
                left = came[step]
                partners[step] = left
                step = chosen.get(left)
            return
