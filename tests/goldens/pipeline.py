"""Worlds of what an answer goes through: prompts, reading, verdicts, causes, rewards and tables.

For each world of data one world `asked-WORLD`. Most records have rows, aligned with a list of
answers that another record holds: a difference names the step and the answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, get_args

from omnidata.errors import OmnidataError, UsageError
from omnidata.predictions import Prediction
from omnidata.training.reward_recipes import RecipeName
from omnidata.types import Delivery, LoadedDataset, Step
from tests.goldens.answers import bent, receipts
from tests.goldens.asking import Asking, as_json
from tests.goldens.record import FIXED
from tests.goldens.surfaces import Surface, dialect_names, round_floats
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

COMMON: Final[Sequence[Mapping[str, str]]] = (
    {"history_window": "1"},
    {"media_until": "0.5"},
    {"history_screenshots": "1"},
    {"language": "en"},
)
"""Common options that change prompts."""

STEPS = 14
"""Steps of a world that answers are to, those with different answers first."""

REACHES = (40.0, 140.0)
"""Distances, in thousandths of the screen, within which rules of phones accept a tap."""

MUTANTS = 160
IN_DIALECT = 60
"""Answers in each dialect."""

MUTATED = frozenset(("aitz", "agentnetbench", "mind2web", "screenspot"))
"""A world of each platform and one of grounding, where as many answers in each dialect again are
mutated."""

MOST_STEPS = 60
"""Steps of a world that histories and tables are of, from the first."""

AGAIN = frozenset(("aitw", "cagui", "agentnet", "screenspot-pro"))
"""Worlds of benchmarks that another world tries in every dialect."""

_NUMBER = re.compile(r"\b\d+(\.\d+)?\b")
_SCREEN_UNITS = ("px", "auto")
"""Units for which the size of the screenshot as sent matters."""


@dataclass
class _World:
    """The data of a world, and what was frozen of it; `name` is the benchmark's."""

    folder: str
    name: str
    asking: Asking
    source: LoadedDataset
    data: Path
    frozen: Mapping[str, Sequence[tuple[str, str]]]
    loaded: dict[str, Sequence[Step]] = field(default_factory=dict)

    def steps(self, asking: Asking) -> Sequence[Step]:
        """Return the steps as they are under options; in dialects some options change none."""
        same = ("history", "history_window", "patches", "media_until")
        given = asking.given
        if "dialect" in given:
            given = {name: value for name, value in given.items() if name not in same}
        key = json.dumps(given)
        if key not in self.loaded:
            self.loaded = {key: asking.load(self.data, check_media=False).steps}
        return self.loaded[key]

    def answers(self, of: str, made: Iterator[tuple[Step, str]]) -> tuple[Record, Answers]:
        """Return the record of a list of answers, and the list: that which was frozen, if any."""
        rows = self.frozen.get(of) or [(step.sample_id, text) for step, text in made]
        steps = {step.sample_id: step for step in self.source.steps}
        return (
            {"kind": "answers", "of": of, "rows": rows},
            [(steps[own], text) for own, text in rows],
        )


def asked(world: str) -> Surface:
    """Return the function that records the pipeline of a world of data."""

    def record(folder: Path, old: Sequence[Record]) -> Iterator[Record]:
        name = WORLDS[world][0]
        data = build(world, folder)
        asking = Asking(name)
        source = asking.load(data, check_media=False)
        frozen = {line["of"]: line["rows"] for line in old if line["kind"] == "answers"}
        yield from _all(_World(world, name, asking, source, data, frozen))

    return record


def _all(world: _World) -> Iterator[Record]:
    asking, source = world.asking, world.source
    steps = _different(asking, source.steps)
    line, given = world.answers("own", _own_answers(asking, steps))
    yield line
    for units in asking.allowed.get("coordinates", ("",)):
        asked = Asking(world.name, {"coordinates": units} if units else {})
        yield from _own_verdicts(asked, given)
        yield from _targets(asked, source.steps[:MOST_STEPS])
        yield from _baselines(asked, source.steps)
        yield from _rewards(asked, source, given[::3])
    for option, values in asking.allowed.items():
        if option not in ("coordinates", "history"):
            for value in values[1:]:
                yield from _under_option(world, {option: value}, given)
    yield from _columns(asking)
    yield from _failures(asking, steps)
    yield from _totals(asking, source.steps[:MOST_STEPS], given)
    yield from _histories(world, {}, given)
    yield from _prompts(world, None)
    for dialect in dialect_names()[:: 3 if world.folder in AGAIN else 1]:
        yield from _in_dialect(world, dialect, steps, given)


# Answers.


def _different(asking: Asking, steps: Sequence[Step]) -> list[Step]:
    """The first steps of each form of answer, then others spread over the data."""
    forms: dict[str, Step] = {}
    for step in steps:
        target = asking.target(step)
        forms.setdefault(target.template if target else "", step)
    first = list(forms.values())[:STEPS]
    others = [steps[number * len(steps) // STEPS] for number in range(STEPS)]
    chosen = {step.sample_id: step for step in [*first, *others]}
    return list(chosen.values())[:STEPS]


def _own_answers(asking: Asking, steps: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """Right answers in all units and sizes, bent ones, and those of other benchmarks."""
    right: list[str] = []
    for step in steps:
        texts: dict[str, None] = {}
        for space in (None, "px", "norm1000", "rel"):
            for receipt in ("none", "half", "stretched") if space == "px" else ("none",):
                try:
                    target = asking.target(step, space=space, size=_sent(step, receipt))
                except UsageError:  # answers of the benchmark know no such unit
                    continue
                if target:
                    texts[target.text] = None
        right += texts
        yield from ((step, text) for text in texts)
        for text in islice(texts, 1):
            yield from ((step, wrong) for wrong in bent(text))
        yield from ((step, beside) for beside in _beside(asking, step))
    known = [*right, *FIXED]
    others = [*FIXED, *mutants(known, MUTANTS, seed=len(asking.name))]
    yield from zip(cycle(steps), others, strict=False)


def _beside(asking: Asking, step: Step) -> Iterator[str]:
    """Right answers with places just within and just beyond the reach of rules."""
    for reach in (*REACHES, *sorted({asking.columns(rule)["reach"] for rule in asking.rules})):
        for share in (0.985, 1.015):
            yield from asking.answers_beside(step, reach * share)


def _sent(step: Step, receipt: str) -> tuple[int, int] | None:
    line = receipts(step.screen)[receipt].get("parts", [{}])[-1]
    return (line["width"], line["height"]) if line else None


def _dialect_answers(
    asking: Asking, steps: Sequence[Step], others: Answers
) -> Iterator[tuple[Step, str]]:
    """Right answers in a dialect, bent ones, and those of others."""
    right = [(step, target.text) for step in steps if (target := asking.target(step))]
    wrong = [(step, text) for step, found in right for text in bent(found)]
    yield from right
    yield from _spread(wrong, IN_DIALECT // 2)
    yield from zip(cycle(steps), _spread(FIXED, IN_DIALECT // 4), strict=False)
    yield from _spread(others, IN_DIALECT // 4)


def _mutated_answers(
    asking: Asking, steps: Sequence[Step], dialect: str
) -> Iterator[tuple[Step, str]]:
    """Right answers in a dialect and those of others, mutants of them, and places that are 0."""
    right = [(step, target.text) for step in steps if (target := asking.target(step))]
    known = [*sorted({text for _, text in right}), *FIXED]
    seed = dialect_names().index(dialect)
    yield from zip(cycle(steps), [*known, *mutants(known, IN_DIALECT, seed=seed)], strict=False)
    for step, text in right:
        yield from ((step, _NUMBER.sub("0", text, count=count)) for count in (1, 0))


def _spread(items: Sequence[Any], count: int) -> list[Any]:
    """Items spread evenly over a sequence."""
    picked = {number * len(items) // count for number in range(count)} if items else set()
    return [items[number] for number in sorted(picked)]


def _prediction(step: Step, text: str, receipt: str) -> Prediction:
    sent = receipts(step.screen)[receipt]
    return Prediction(sample_id=step.sample_id, output=text, receipt=sent)


def _failed(step: Step, failure: Delivery | None) -> Prediction | None:
    if failure is None:
        return None
    return Prediction(sample_id=step.sample_id, output="{", delivery=failure, error="it failed")


# Verdicts.


def _own_verdicts(asking: Asking, answers: Answers) -> Iterator[Record]:
    in_pixels = asking.given.get("coordinates") in _SCREEN_UNITS
    for rule in asking.rules:
        for receipt in receipts((1, 1)) if in_pixels else ("none", "half"):
            yield _verdicts(asking, "own", answers, rule, receipt)
        yield _explanations(asking, "own", answers, rule, "half" if in_pixels else "none", 7)


def _verdicts(
    asking: Asking, of: str, answers: Answers, rule: str, receipt: str, stride: int = 1
) -> Record:
    return {
        "kind": "verdicts",
        "of": of,
        "as": [asking.given, rule, receipt],
        "stride": stride,
        "rows": [
            asking.scores_line(step, _prediction(step, text, receipt), rule)
            for step, text in answers[::stride]
        ],
    }


def _explanations(
    asking: Asking, of: str, answers: Answers, rule: str, receipt: str, stride: int
) -> Record:
    return {
        "kind": "explanations",
        "of": of,
        "as": [asking.given, rule, receipt],
        "stride": stride,
        "rows": [
            asking.explanation(step, _prediction(step, text, receipt), rule)
            for step, text in answers[::stride]
        ],
    }


def _under_option(world: _World, options: Mapping[str, str], answers: Answers) -> Iterator[Record]:
    """Verdicts on steps as another option loads them."""
    try:
        asking = Asking(world.name, options)
        steps = {step.sample_id: step for step in asking.load(world.data, check_media=False).steps}
    except OmnidataError as error:
        yield {"kind": "refused", "as": options, "error": type(error).__name__}
        return
    if steps.keys() >= {step.sample_id for step, _ in answers}:
        loaded = [(steps[step.sample_id], text) for step, text in answers]
        for rule in asking.rules:
            yield _verdicts(asking, "own", loaded, rule, "none", 4)
    else:
        yield {"kind": "other steps", "as": options, "ids": sorted(steps)}


def _columns(asking: Asking) -> Iterator[Record]:
    for rule in asking.rules:
        yield {"kind": "columns", "as": [asking.given, rule], "is": asking.columns(rule)}


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


# What is right, and what it is worth.


def _targets(asking: Asking, steps: Sequence[Step]) -> Iterator[Record]:
    for receipt in ("none", "half"):
        for space in (None, "px"):
            rows = []
            for step in steps:
                try:
                    target = asking.target(step, space=space, size=_sent(step, receipt))
                except UsageError:
                    break
                rows.append([step.sample_id, as_json(target)])
            yield {"kind": "targets", "as": [asking.given, space, receipt], "rows": rows}


def _baselines(asking: Asking, steps: Sequence[Step]) -> Iterator[Record]:
    for name in asking.baselines:
        answers = asking.baseline_answers(name, steps)
        rows = [[step.sample_id, text] for step, text in zip(steps, answers, strict=True)]
        yield {"kind": "baseline", "as": [asking.given, name], "rows": rows[:MOST_STEPS]}


def _rewards(asking: Asking, source: LoadedDataset, answers: Answers) -> Iterator[Record]:
    terms: list[Any] = [{"format": 0.1, "type": 0.4, "exact": 0.5}, {"distance": 1.0}]
    for rule in asking.rules:
        first = rule == asking.default_rule
        for one in [*terms, {"rank": 1.0}, *get_args(RecipeName)] if first else terms:
            reward = asking.reward(source, rule, one)
            if reward is None:
                continue
            ranked = one == {"rank": 1.0} or one == "aepo"
            given = [*answers, *_candidates(asking, answers)] if ranked else answers
            rows = []
            for step, text in given:
                try:
                    sent = receipts(step.screen)["half"]
                    rows.append([step.sample_id, reward.score(step.sample_id, text, receipt=sent)])
                except OmnidataError as error:
                    rows.append([step.sample_id, type(error).__name__])
            yield {"kind": "rewards", "as": [asking.given, rule, one], "rows": rows}


def _candidates(asking: Asking, answers: Answers) -> Iterator[tuple[Step, str]]:
    """Lists of places, of which the first, the second or none is right."""
    for step in {step.sample_id: step for step, _ in answers}.values():
        target = asking.target(step, size=_sent(step, "half"))
        if target and target.points:
            right, wrong = list(target.points[0]), [0, 0]
            for places in ([right, wrong], [wrong, right, [1, 0]], [wrong], [wrong, wrong, wrong]):
                yield step, json.dumps([{"point_2d": place} for place in places])


# Tables.


def _totals(asking: Asking, steps: Sequence[Step], answers: Answers) -> Iterator[Record]:
    """Tables of right, wrong and failed answers, and of two sets of them side by side."""
    sides = [_mixed(asking, steps, answers, seed) for seed in (0, 1)]
    for rule in asking.rules:
        try:
            results: Any = asking.results(steps, sides[0][:-1] or sides[0], rule)
            pair: Any = asking.paired_rates(steps, (sides[0], sides[1]), rule)
        except OmnidataError as error:
            results, pair = type(error).__name__, None
        yield {"kind": "results", "as": [asking.given, rule], "is": round_floats(results)}
        yield {"kind": "paired", "as": [asking.given, rule], "is": round_floats(pair)}


def _mixed(asking: Asking, steps: Sequence[Step], answers: Answers, seed: int) -> list[Prediction]:
    found = []
    for number, step in enumerate(steps, seed):
        target = asking.target(step)
        text = target.text if target and number % 3 else answers[number * 5 % len(answers)][1]
        failed = _failed(step, FAILURES[number % 4]) if number % 7 == 6 else None
        found.append(failed or _prediction(step, text, "half" if number % 2 else "none"))
    return found


# Prompts and histories.


def _prompts(world: _World, dialect: str | None) -> Iterator[Record]:
    """Prompts under common options and histories; of a dialect fewer, which are much alike."""
    spoken = {"dialect": dialect} if dialect else {}
    histories = [{"history": value} for value in world.asking.allowed.get("history", ())[:2]]
    for options in ({}, *histories[1:], *COMMON):
        given = {**spoken, **options}
        try:
            asking = Asking(world.name, given)
            steps = world.steps(asking)
            shown = [
                (step.sample_id, json.dumps(as_json(asking.conversation(step))))
                for step in _spread(steps, 6 if dialect else 30)
            ]
        except OmnidataError as error:
            yield {"kind": "no prompts", "as": given, "error": type(error).__name__}
            continue
        yield {
            "kind": "prompts",
            "as": given,
            "hash": asking.prompt_hash,
            "rows": [[name, _hash(text)] for name, text in shown],
        }
        yield {"kind": "prompt", "as": given, "is": shown[-1]}


def _histories(world: _World, spoken: Mapping[str, str], answers: Answers) -> Iterator[Record]:
    """Earlier answers as prompts tell them, with screenshots of several sizes."""
    if "predicted" not in world.asking.allowed.get("history", ()):
        return
    units = () if spoken else world.asking.allowed.get("coordinates", ())
    variants: list[Mapping[str, str]] = [{"coordinates": unit} for unit in units[1:]]
    for more in ({}, *variants, {"history_window": "1"}, {"patches": "1"}):
        given = {**spoken, "history": "predicted", **more}
        try:
            asking = Asking(world.name, given)
            steps = world.steps(asking)[:MOST_STEPS]
        except OmnidataError as error:
            yield {"kind": "no histories", "as": given, "error": type(error).__name__}
            continue
        sizes = ("none", "half", "stretched", "larger file")
        for receipt in sizes[:2] if spoken else sizes:
            yield from _history(asking, steps, answers, receipt)


def _history(
    asking: Asking, steps: Sequence[Step], answers: Answers, receipt: str
) -> Iterator[Record]:
    memory, rows, last = asking.histories(), [], ""
    for number, step in enumerate(steps):
        past = memory.before(step)
        last = json.dumps(as_json(asking.conversation(step, past)))
        rows.append([step.sample_id, as_json(past[-1]) if past else None, _hash(last)])
        target = asking.target(step, size=_sent(step, receipt))
        text = target.text if target and number % 3 != 2 else answers[number * 3 % len(answers)][1]
        answer = _failed(step, FAILURES[number % 5]) if number % 9 == 8 else None
        if number % 9 != 8:
            answer = _prediction(step, text, receipt)
        memory.remember(step, answer.completion() if answer else None)
    yield {"kind": "history", "as": [asking.given, receipt], "rows": rows}
    yield {"kind": "prompt with history", "as": [asking.given, receipt], "is": last}


def _in_dialect(
    world: _World, dialect: str, steps: Sequence[Step], others: Answers
) -> Iterator[Record]:
    try:
        asking = Asking(world.name, {"dialect": dialect})
    except UsageError:
        yield {"kind": "no dialect", "as": dialect}
        return
    line, given = world.answers(dialect, _dialect_answers(asking, steps[:8], others))
    yield line
    default = asking.default_rule
    first = (default, f"{default}+strict")
    for rule in asking.rules:
        stride = 1 if rule in first else 5
        for receipt in ("none", "half"):
            yield _verdicts(asking, dialect, given, rule, receipt, stride)
    yield _explanations(asking, dialect, given, default, "none", 3)
    if world.folder in MUTATED:
        of = f"{dialect} mutated"
        line, mutated = world.answers(of, _mutated_answers(asking, world.source.steps, dialect))
        yield line
        yield from (_verdicts(asking, of, mutated, rule, "none") for rule in first)
    yield from _targets(asking, steps)
    yield from _failures(asking, steps[:2])
    yield from _rewards_in_dialect(asking, world.source, given[::2])
    yield from _totals_in_dialect(asking, world.source.steps[:MOST_STEPS], given)
    yield from _histories(world, {"dialect": dialect}, given)
    yield from _prompts(world, dialect)


def _rewards_in_dialect(
    asking: Asking, source: LoadedDataset, answers: Answers
) -> Iterator[Record]:
    reward = asking.reward(source, asking.default_rule, "ui-r1")
    if reward:
        rows = [[step.sample_id, reward.score(step.sample_id, text)] for step, text in answers]
        yield {"kind": "rewards", "as": [asking.given, "ui-r1"], "rows": rows}


def _totals_in_dialect(asking: Asking, steps: Sequence[Step], answers: Answers) -> Iterator[Record]:
    mixed = _mixed(asking, steps, answers, 0)
    for rule in (asking.default_rule, f"{asking.default_rule}+strict"):
        results = asking.results(steps, mixed, rule)
        yield {"kind": "results", "as": [asking.given, rule], "is": round_floats(results)}
        yield {"kind": "columns", "as": [asking.given, rule], "is": asking.columns(rule)}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


ASKED = {f"asked-{world}": asked(world) for world in WORLDS if world != "omnigui-few"}
"""Name -> what is recorded of it."""
