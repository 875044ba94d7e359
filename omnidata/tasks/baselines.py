"""Answers without a model, from the right answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from omnidata.actions import Space
from omnidata.errors import UsageError
from omnidata.tasks.coordinates import center_places
from omnidata.types import Step, Target


def check_baseline(
    task: str,
    name: str,
    known: Sequence[str],
    options: Mapping[str, str],
    taken: Sequence[str] = (),
) -> None:
    """Refuse an unknown baseline, or options other than those that it takes.

    Raises:
        UsageError: the baseline or an option does not exist.
    """
    if name not in known:
        raise UsageError(
            f'{task} has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(f'baseline:{each}' for each in known)}",
            remedy="choose one of these",
        )
    for option, value in options.items():
        if option not in taken:
            raise UsageError(
                f'baseline:{name} has no option "{option}"'
                if taken
                else f"baseline:{name} has no options",
                where=f"-M {option}={value}",
                expected=", ".join(taken),
                remedy="leave it out",
            )


def baseline_seed(options: Mapping[str, str]) -> int:
    """Return the seed of a baseline, `-M seed=N`; 0 by default.

    Raises:
        UsageError: it is no whole number.
    """
    seed = options.get("seed", "0")
    if not seed.lstrip("-").isdigit():
        raise UsageError("the seed is not a number", where=f"-M seed={seed}", expected="seed=0")
    return int(seed)


def answer_policy(
    name: str,
    steps: Sequence[Step],
    target: Callable[[Step], Target | None],
    space: Space | None,
) -> Callable[[Step], str]:
    """Return the right answers (`oracle`), or one answer for all steps.

    `majority` is the most frequent right answer, with its places moved to the middle of the
    screen; `center` is the most frequent one with one place. Answers that differ only in their
    places count as one; the first in the steps wins a tie.

    Args:
        name: "oracle", "majority" or "center".
        steps: the steps that the answer may depend on.
        target: returns the right answer to a step.
        space: the unit of places; None where answers have none.
    """
    if name == "oracle":
        return lambda step: found.text if (found := target(step)) else ""
    targets = [found for step in steps if (found := target(step))]
    if name == "center":
        targets = [target for target in targets if len(target.points) == 1]
    if not targets:
        return lambda step: ""
    counts = Counter(target.template for target in targets)
    usual = max(targets, key=lambda target: counts[target.template])
    return lambda step: center_places(usual, step.screen, space=space) if space else usual.text
