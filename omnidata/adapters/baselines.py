"""Baselines: what a score means without a model. They look at targets, never at media."""

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
from omnidata.types import Completion, GenerationParams, Modality, Request, Step

NAMES = ("oracle", "center", "random", "always-wait", "majority")
_CENTRE = Point(500, 500, "norm1000")


class Baseline:
    """One of five policies.

    * `oracle` answers with the target: the ceiling of a profile on this data.
    * `center` always taps the middle of the screen.
    * `random` draws a primitive and a place for each step from `-M seed=N` (0) and the step's id.
    * `always-wait` always answers NONE.
    * `majority` always answers the most frequent primitive of the data, at its mean place.
    """

    accepts: frozenset[Modality] = frozenset()
    max_batch = 256

    def __init__(
        self,
        name: str,
        steps: Sequence[Step],
        *,
        space: Space = "norm1000",
        options: Mapping[str, str] = {},
    ) -> None:
        """Prepare a policy from the steps it may look at."""
        policies: Mapping[str, Callable[[Step], Action]] = {
            "oracle": self._oracle,
            "center": lambda step: Action(Primitive.TAP, (_CENTRE,)),
            "random": self._random,
            "always-wait": lambda step: Action(Primitive.NONE),
            "majority": lambda step: self._usual,
        }
        if name not in policies:
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
        self.name = f"baseline:{name}"
        self._policy = policies[name]
        self._steps = {step.sample_id: step for step in steps}
        self._seed = int(seed)
        self._space = space
        self._usual = _majority(steps) if name == "majority" else Action(Primitive.NONE)

    async def generate(
        self, batch: Sequence[Request], params: GenerationParams
    ) -> list[Completion]:
        """Answer each step by the policy, as the JSON that the prompt asks for."""
        return [self._answer(self._steps[request.sample_id]) for request in batch]

    def _answer(self, step: Step) -> Completion:
        body = answer(self._policy(step), step.screen, space=self._space)
        return Completion(text=json.dumps(body, ensure_ascii=False))

    def _oracle(self, step: Step) -> Action:
        """The target; where there is none to be used, the profile that judges leaves it out."""
        return step.action or Action(Primitive.TASK_IMPOSSIBLE)

    def _random(self, step: Step) -> Action:
        draw = random.Random(f"{self._seed}/{step.sample_id}")
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
