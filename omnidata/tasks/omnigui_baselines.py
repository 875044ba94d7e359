"""OmniGUI's baselines: what a score means without a model. They look at targets alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from omnidata.actions import (
    POSITIONAL,
    SWIPES,
    Action,
    Point,
    Primitive,
    Space,
    answer,
    centre,
    convert,
)
from omnidata.errors import UsageError
from omnidata.types import Step

NAMES = ("oracle", "center", "random", "always-wait", "majority")
_CENTRE = Point(500, 500, "norm1000")


def policy(
    name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """One of five rules.

    * `oracle` answers with the target: the ceiling of a profile on this data.
    * `center` always taps the middle of the screen.
    * `random` draws a primitive and a place for each step from `-M seed=N` (0) and the step's id.
    * `always-wait` always answers NONE.
    * `majority` always answers the most frequent primitive of the data, at its mean place.

    Args:
        name: of the rule.
        steps: those it may look at.
        space: the unit in which it writes coordinates.
        options: as given with `-M key=value`.

    Returns:
        A step's answer, as the JSON that the prompt asks for.

    Raises:
        UsageError: there is no such rule or option.
    """
    if name not in NAMES:
        raise UsageError(
            f'there is no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(NAMES)}",
        )
    allowed = {"seed"} if name == "random" else set()
    for option in options.keys() - allowed:
        raise UsageError(
            f'baseline:{name} has no option "{option}"',
            where=f"-M {option}={options[option]}",
            expected="seed" if allowed else "no options",
        )
    seed = options.get("seed", "0")
    if not seed.lstrip("-").isdigit():
        raise UsageError("the seed is not a number", where=f"-M seed={seed}", expected="seed=0")
    usual = _majority(steps) if name == "majority" else Action(Primitive.NONE)
    rules: Mapping[str, Callable[[Step], Action]] = {
        "oracle": _oracle,
        "center": lambda step: Action(Primitive.TAP, (_CENTRE,)),
        "random": lambda step: _random(step, int(seed)),
        "always-wait": lambda step: Action(Primitive.NONE),
        "majority": lambda step: usual,
    }
    rule = rules[name]
    return lambda step: json.dumps(answer(rule(step), step.screen, space=space), ensure_ascii=False)


def _oracle(step: Step) -> Action:
    """The target; where there is none to be used, the profile that judges leaves it out."""
    return step.action or Action(Primitive.TASK_IMPOSSIBLE)


def _random(step: Step, seed: int) -> Action:
    # As bytes, since an id may hold a lone surrogate; the numbers are the same as from the text.
    draw = random.Random(f"{seed}/{step.sample_id}".encode("utf-8", "surrogatepass"))
    kind = draw.choice(list(Primitive))
    points = [Point(draw.randint(0, 1000), draw.randint(0, 1000), "norm1000") for _ in "se"]
    return Action(kind, (points[0],), (points[1],), text="")


def _majority(steps: Sequence[Step]) -> Action:
    targets = [(step.action, step.screen) for step in steps if step.action]
    if not targets:
        return Action(Primitive.NONE)
    kind = Counter(action.kind for action, _ in targets).most_common(1)[0][0]
    same = [(action, screen) for action, screen in targets if action.kind is kind]
    if kind is Primitive.INPUT:
        return Action(kind, text=Counter(action.text for action, _ in same).most_common(1)[0][0])
    if kind not in POSITIONAL and kind not in SWIPES:
        return Action(kind)
    start = [convert(centre(a.start[0]), "norm1000", screen) for a, screen in same if a.start]
    end = [convert(centre(a.end[0]), "norm1000", screen) for a, screen in same if a.end]
    return Action(kind, _mean(start), _mean(end))


def _mean(points: Sequence[Point]) -> tuple[Point, ...]:
    if not points:
        return ()
    x, y = fmean(point.x for point in points), fmean(point.y for point in points)
    return (Point(round(x), round(y), "norm1000"),)
