"""What two tasks have in common that differ in the names of their nodes only."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod

_MOST = 5040
"""Ways to number equal nodes that are tried; there are fewer in every task of a real pool."""


def identity(labels: Sequence[Hashable], edges: Sequence[tuple[int, int]]) -> bytes:
    """A key that two graphs share if and only if they are the same but for the nodes' numbers.

    Nodes are told apart by their labels, then by those of their neighbours (colour refinement, by
    Weisfeiler and Leman); what is left equal is numbered in every way, and the smallest result
    counts.

    Args:
        labels: of the nodes: subtask and parameters. Any values that have the same `repr` in every
            process.
        edges: pairs of nodes.

    Returns:
        16 bytes.

    Examples:
        >>> identity(["a", "b"], [(0, 1)]) == identity(["b", "a"], [(1, 0)])
        True
        >>> identity(["a", "a"], [(0, 1)]) == identity(["a", "a"], [])
        False
    """
    colours = _refined([repr(label) for label in labels], edges)
    classes: dict[str, list[int]] = defaultdict(list)
    for node, colour in enumerate(colours):
        classes[colour].append(node)
    ordered = [classes[colour] for colour in sorted(classes)]
    key = repr((sorted(colours), _smallest(ordered, edges)))
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


def _refined(colours: list[str], edges: Sequence[tuple[int, int]]) -> list[str]:
    """Colours that no further look at the neighbours divides."""
    before: Mapping[int, list[int]] = defaultdict(list)
    after: Mapping[int, list[int]] = defaultdict(list)
    for first, second in edges:
        after[first].append(second)
        before[second].append(first)
    known = 0
    while known < len(set(colours)):
        known = len(set(colours))
        colours = [
            _digest(
                (
                    colour,
                    sorted(colours[other] for other in before[node]),
                    sorted(colours[other] for other in after[node]),
                )
            )
            for node, colour in enumerate(colours)
        ]
    return colours


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def _smallest(
    classes: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The edges under the numbering that makes them smallest."""
    alone = prod(factorial(len(nodes)) for nodes in classes) > _MOST
    ways = product(*([tuple(nodes)] if alone else list(permutations(nodes)) for nodes in classes))
    best: list[tuple[int, int]] | None = None
    for way in ways:
        numbers = {node: number for number, node in enumerate(n for nodes in way for n in nodes)}
        found = sorted((numbers[first], numbers[second]) for first, second in edges)
        if best is None or found < best:
            best = found
    return best or []
