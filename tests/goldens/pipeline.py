"""Worlds of what an answer goes through: prompts, reading, verdicts, causes, rewards and tables.

For each world of data one world `asked-WORLD`. Most records have rows, aligned with a list of
answers that another record holds: a difference names the step and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from omnidata.errors import UsageError
from omnidata.predictions import Prediction
from omnidata.types import Delivery, Step
from tests.goldens.answers import bent, receipts
from tests.goldens.asking import Asking
from tests.goldens.record import FIXED
from tests.goldens.worlds import WORLDS, build
from tests.metrics.mutations import mutants

Record = dict[str, Any]
Answers = Sequence[tuple[Step, str]]

FAILURES: Final[tuple[Delivery | None, ...]] = (
    "truncated",
    "refused",
    "api_error",
    "media_error",
    None,
)
"""How a request fails; None where it was never made."""

STEPS = 12
"""Steps of a world that answers are to, spread over it."""

MUTANTS = 160

IN_DIALECT = 40
"""Answers in each dialect."""

_SCREEN_UNITS = ("px", "auto")
"""Units for which the size of the screenshot as sent matters."""


def asked(world: str) -> Any:
    """Return the function that records the pipeline of a world of data."""

    def record(folder: Path, old: Sequence[Record]) -> Iterator[Record]:
        name = WORLDS[world][0]
        data = build(world, folder)
        asking = Asking(name)
        source = asking.load(data, check_media=False)
        if not source.steps:
            return
        frozen = {line["of"]: line["rows"] for line in old if line["kind"] == "answers"}
        steps = _spread(source.steps)
        by_id = {step.sample_id: step for step in source.steps}
        rows = frozen.get("own") or [(s.sample_id, text) for s, text in _answers(asking, steps)]
        yield {"kind": "answers", "of": "own", "rows": rows}
        given = [(by_id[own], text) for own, text in rows]
        yield from _columns(asking)
        yield from _failures(asking, steps)
        for units in asking.allowed.get("coordinates", ("",)):
            options = {"coordinates": units} if units else {}
            yield from _own_verdicts(Asking(name, options), given, options)

    return record


def _spread(items: Sequence[Any], count: int = STEPS) -> list[Any]:
    """Items spread evenly over a sequence."""
    picked = {number * len(items) // count for number in range(count)} if items else set()
    return [items[number] for number in sorted(picked)]


def _answers(asking: Asking, steps: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """Right answers in all units and sizes, bent ones, and those of other benchmarks."""
    right: list[str] = []
    for step in steps:
        texts: dict[str, None] = {}
        for space in (None, "px", "norm1000", "rel"):
            for receipt in ("none", "half", "stretched") if space == "px" else ("none",):
                line = receipts(step.screen)[receipt].get("parts", [{}])[-1]
                size = (line["width"], line["height"]) if line else None
                try:
                    target = asking.target(step, space=space, size=size)
                except UsageError:  # answers of the benchmark know no such unit
                    continue
                if target:
                    texts[target.text] = None
        right += texts
        yield from ((step, text) for text in texts)
        for text in islice(texts, 1):
            yield from ((step, wrong) for wrong in bent(text))
    known = [*right, *FIXED]
    others = [*FIXED, *mutants(known, MUTANTS, seed=len(asking.name))]
    yield from zip(cycle(steps), others, strict=False)


def _columns(asking: Asking) -> Iterator[Record]:
    for rule in asking.rules:
        yield {"kind": "columns", "as": rule, "is": asking.columns(rule)}


def _failures(asking: Asking, steps: Sequence[Step]) -> Iterator[Record]:
    for rule in asking.rules:
        for failure in FAILURES:
            yield {
                "kind": "failed request",
                "as": [asking.given, rule, failure or "missing"],
                "rows": [
                    [step.sample_id, asking.scores_line(step, _failed(step, failure), rule)]
                    for step in steps[:6]
                ],
            }


def _failed(step: Step, failure: Delivery | None) -> Prediction | None:
    if failure is None:
        return None
    return Prediction(sample_id=step.sample_id, output="{", delivery=failure, error="it failed")


def _own_verdicts(asking: Asking, answers: Answers, options: Mapping[str, str]) -> Iterator[Record]:
    for rule in asking.rules:
        for name in receipts((1, 1)):
            if name not in ("none", "half") and options.get("coordinates") not in _SCREEN_UNITS:
                continue
            yield {
                "kind": "verdicts",
                "of": "own",
                "as": [asking.given, rule, name],
                "rows": [
                    asking.scores_line(step, _prediction(step, text, name), rule)
                    for step, text in answers
                ],
            }


def _prediction(step: Step, text: str, receipt: str) -> Prediction:
    sent = receipts(step.screen)[receipt]
    return Prediction(sample_id=step.sample_id, output=text, receipt=sent)


ASKED = {f"asked-{world}": asked(world) for world in WORLDS if world != "omnigui"}
"""Name -> what is recorded of it."""
