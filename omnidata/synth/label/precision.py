"""How often labels are right, measured where the action is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from omnidata.metrics.proportion import share
from omnidata.synth.label.labels import Label
from omnidata.types import Step


def precision(asked: Iterable[tuple[Step, Label]]) -> dict[str, Any] | None:
    """The table of the steps whose action is known.

    Precision is over the labels that were made; a step that the model left unlabelled lowers
    `coverage` instead.

    Args:
        asked: steps as they were asked about, and what came of it.

    Returns:
        `known` (steps), `labelled`, `coverage` (its share), `type` and `exact` (of the labels, the
        right ones: see `metrics.proportion.share`), `by_extension`
        (labels that a rule of ours judged, since the known action is a point), and
        `most_frequent` (`primitive`, `share`: what answering nothing else would get for the type).
        None if no action is known.
    """
    known = [(step.action, label) for step, label in asked if step.action]
    if not known:
        return None
    made = [label for _, label in known if label.action]
    often = Counter(action.kind.name for action, _ in known).most_common(1)[0]
    return {
        "known": len(known),
        "labelled": len(made),
        "coverage": len(made) / len(known),
        "type": share(sum(bool(label.type_match) for label in made), len(made)),
        "exact": share(sum(bool(label.exact_match) for label in made), len(made)),
        "by_extension": sum(label.extension for label in made),
        "most_frequent": {"primitive": often[0], "share": often[1] / len(known)},
    }
