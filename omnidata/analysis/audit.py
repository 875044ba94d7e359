"""The audit of a task's data: scores of rules that see no media, and a test for leaks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from omnidata.analysis.audit_learning import (
    ALPHA,
    FOLDS,
    LINEAR,
    TREE,
    CrossValidation,
    PermutationTest,
    group_near_duplicates,
    permutation_test,
)
from omnidata.analysis.prompt_features import features
from omnidata.errors import DataError
from omnidata.metrics.intervals import Floats, Ints
from omnidata.predictions import Prediction
from omnidata.run.engines import Cluster
from omnidata.run.scoring import score
from omnidata.tasks.asking import Asking
from omnidata.tasks.profile import Profile
from omnidata.types import Progress, Step

Kind = Literal["baseline", "constant", "learned"]

_CEILING: Final = "oracle"
"""The baseline that looks at the target; its texts are right answers."""

_TRIED: Final = 100
_CHOICES: Final = 16
_CARRIERS: Final = 5
_LEAST_GROUPS: Final = 4 * FOLDS


@dataclass(frozen=True, slots=True)
class _Guess:
    """A rule that answers without looking at media.

    Attributes:
        name: "baseline NAME", or "always TEXT".
        answer: the text for a step.
        hits: float64 (N,), the profile's first value on each step; NaN = not judged.
    """

    name: str
    answer: Callable[[Step], str]
    hits: Floats


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that sees no media, and its scores.

    Attributes:
        name: e.g. "baseline center", "always Answer: A", "tree of depth 3".
        kind: "baseline", "constant" (the best of many, in hindsight), "learned" (cross-validated).
        metric: the mean of the report's value, by which rules are compared.
        overall: the profile's table.
        ci95: its intervals.
    """

    name: str
    kind: Kind
    metric: float
    overall: Mapping[str, float | None]
    ci95: Mapping[str, Sequence[float] | None]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit.

    Attributes:
        task, profile, options: of the benchmark.
        steps: all steps.
        judged: steps that the profile judges.
        groups: groups of near-duplicates.
        value: name of the value by which rules are compared, the profile's first; higher is better.
        metric: the table's column that is the mean of `value`; "" where no column is.
        rules: baselines and a constant, then learned rules.
        unlearned: the best rule that learns nothing.
        learned: the best learned rule; None where there is too little to learn from.
        chance: the test of `learned`; None where it is not better than `unlearned`.
        leak: whether the form of the prompt predicts the answer (docs/audit.md).
        carriers: features that alone, cross-validated, do better than `unlearned`.
        tree: a tree of depth 3 over all steps, as text; empty without a leak.
    """

    task: str
    profile: str
    options: Mapping[str, str]
    steps: int
    judged: int
    groups: int
    value: str
    metric: str
    rules: Sequence[Rule]
    unlearned: Rule
    learned: Rule | None = None
    chance: PermutationTest | None = None
    leak: bool = False
    carriers: Mapping[str, float] = field(default_factory=dict)
    tree: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object, with `unlearned` and `learned` by name."""
        found = asdict(self)
        for role in ("unlearned", "learned"):
            found[role] = found[role] and found[role]["name"]
        return {**found, "alpha": ALPHA}


def audit(
    task: Asking,
    steps: Sequence[Step],
    profile: Profile,
    *,
    seed: int = 0,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Answer every step without looking at it, and judge the answers like a model's.

    A leak is reported if the best of a tree, a linear classifier and every feature alone, each
    cross-validated over groups of near-duplicates, scores higher than every baseline and constant
    answer, and with shuffled features the best of them scores as high with a probability of at most
    0.5 %.

    Args:
        task: the benchmark with its options, which decide what the prompt shows.
        steps: at least one.
        profile: judges; rules are compared by its first value.
        seed: of folds, shuffles and the sample of constant answers.
        workers: processes that learn from shuffles, one per core if None; 1 = this one. The report
            is the same.
        cluster: learns from shuffles in place of this machine.
        progress: called with the number of shuffles done and of all.

    Raises:
        DataError: the profile judges no step.
        RunError: a process was lost.
    """
    baselines = _baselines(task, profile, steps)
    constants = _constants(task, profile, steps, seed=seed)
    judged = np.flatnonzero(~np.isnan(constants[0].hits))
    if not len(judged):
        raise DataError(
            f"{profile.name} judges none of the {len(steps)} steps",
            expected="at least one step with a usable target",
            remedy="`omnidata info` lists what is wrong with the targets",
        )
    judge = partial(_judge, task, profile, steps)
    rules = [judge(guess, "baseline") for guess in baselines]
    rules += [judge(guess, "constant") for guess in _without_copies(constants, baselines)[:1]]
    kept = [steps[number] for number in judged.tolist()]
    prompts = [task.conversation(step) for step in kept]
    groups = group_near_duplicates(kept, prompts)
    report = Report(
        task=task.name,
        profile=profile.name,
        options=task.options,
        steps=len(steps),
        judged=len(judged),
        groups=int(groups.max()) + 1,
        value=profile.values[0],
        metric=_column(profile, rules),
        rules=rules,
        unlearned=max(rules, key=lambda rule: rule.metric),
    )
    choices = _choose(_learnable(baselines, constants, steps))
    if len(choices) < 2 or report.groups < _LEAST_GROUPS:
        return report
    seen = features(prompts)
    if not seen.names:
        return report
    hits = np.array([guess.hits[judged] for guess in choices])
    cv = CrossValidation.split(seen, hits, groups, seed=seed)
    learned = [
        judge(_combine(name, choices, judged, picks, steps), "learned")
        for name, picks in _learned_picks(cv)
    ]
    best = max(learned, key=lambda rule: rule.metric)
    rules = [*rules, *learned]
    report = replace(report, rules=rules, learned=best, metric=_column(profile, rules))
    if best.metric <= report.unlearned.metric:
        return report
    chance = permutation_test(
        cv, best.metric, seed=seed, workers=workers, cluster=cluster, progress=progress
    )
    report = replace(report, chance=chance)
    return report if chance.p > ALPHA else _describe_leak(report, cv, choices)


def _baselines(task: Asking, profile: Profile, steps: Sequence[Step]) -> list[_Guess]:
    found = []
    for name in task.baselines:
        if name != _CEILING:
            answer = task.baseline(name, steps, {})
            found.append(_Guess(f"baseline {name}", answer, _hits(profile, steps, answer)))
    return found


def _constants(task: Asking, profile: Profile, steps: Sequence[Step], *, seed: int) -> list[_Guess]:
    """Return right answers of single steps, given to all steps; the best first.

    Of more than `_TRIED` answers the most frequent ones are tried, and of those that are right once
    a random sample.
    """
    counts = Counter(map(task.baseline(_CEILING, steps, {}), steps))
    texts = list(counts)
    random.Random(seed).shuffle(texts)
    texts.sort(key=counts.__getitem__, reverse=True)
    found = []
    for text in texts[:_TRIED]:
        answer = _always(text)
        found.append(_Guess(f"always {text}", answer, _hits(profile, steps, answer)))
    return sorted(found, key=lambda guess: -float(np.nansum(guess.hits)))


def _always(text: str) -> Callable[[Step], str]:
    return lambda step: text


def _hits(profile: Profile, steps: Sequence[Step], answer: Callable[[Step], str]) -> Floats:
    values = [profile.judge(step, answer(step)).values[0] for step in steps]
    return np.array(values, dtype=np.float64)


def _without_copies(guesses: Sequence[_Guess], others: Sequence[_Guess]) -> list[_Guess]:
    """Return the guesses that differ from all others in their hits."""
    seen = {guess.hits.tobytes() for guess in others}
    return [guess for guess in guesses if guess.hits.tobytes() not in seen]


def _judge(
    task: Asking, profile: Profile, steps: Sequence[Step], guess: _Guess, kind: Kind
) -> Rule:
    answers = (Prediction(sample_id=each.sample_id, output=guess.answer(each)) for each in steps)
    whole = np.ones(len(steps), dtype=np.bool_)
    found = score(task, profile, steps, answers, whole=whole, causes=False)
    return Rule(
        guess.name,
        kind,
        float(np.nanmean(guess.hits)),
        {name: found["overall"][name] for name in profile.columns},
        {name: found["ci95"][name] for name in profile.columns},
    )


def _column(profile: Profile, rules: Sequence[Rule]) -> str:
    """Return the first column that is the mean of the profile's first value for every rule."""
    for name in profile.columns:
        totals = [rule.overall[name] for rule in rules]
        means = [rule.metric for rule in rules]
        if None not in totals and np.allclose(np.array(totals, dtype=np.float64), means):
            return name
    return ""


def _learnable(
    baselines: Sequence[_Guess], constants: Sequence[_Guess], steps: Sequence[Step]
) -> list[_Guess]:
    """Return the constants, and the baselines that give few different answers."""
    few = max(_CHOICES, len(steps) // 10)
    plain = [guess for guess in baselines if len(set(map(guess.answer, steps))) <= few]
    return [*plain, *_without_copies(constants, plain)]


def _choose(guesses: Sequence[_Guess]) -> list[_Guess]:
    """Return the few guesses that a classifier chooses from, which cover most steps.

    The best is the first; each further one is right on the most steps not yet covered, at least 5
    and 1 % of the steps.
    """
    hits = np.nan_to_num(np.array([guess.hits for guess in guesses])) > 0
    least = max(5, hits.shape[1] // 100)
    open_steps = np.ones(hits.shape[1], dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < _CHOICES:
        gains = (hits & open_steps).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] < (least if chosen else 1):
            break
        chosen.append(best)
        open_steps &= ~hits[best]
    return [guesses[number] for number in chosen]


def _learned_picks(cv: CrossValidation) -> Iterator[tuple[str, Ints]]:
    """Yield each classifier's name and its pick for each prompt, (N,)."""
    best = next(iter(_rank_features(cv)))
    yield f"{cv.features.names[best]}, alone", cv.feature_picks()[:, best]
    for name in (TREE, LINEAR):
        yield name, cv.learned_picks(name)


def _rank_features(cv: CrossValidation) -> dict[int, float]:
    """Return the score of each feature, the best first; of equal ones that with fewest bins."""
    scores = cv.feature_scores().tolist()
    codes = cv.features.codes
    bins = (codes.max(axis=0) - codes.min(axis=0)).tolist()
    ranked = sorted(range(len(scores)), key=lambda number: (-scores[number], bins[number]))
    return {number: scores[number] for number in ranked}


def _describe_leak(report: Report, cv: CrossValidation, choices: Sequence[_Guess]) -> Report:
    best = list(_rank_features(cv).items())[:_CARRIERS]
    least = report.unlearned.metric
    return replace(
        report,
        leak=True,
        carriers={cv.features.names[number]: score for number, score in best if score > least},
        tree=cv.tree_text([guess.name.replace("\n", "\\n") for guess in choices]),
    )


def _combine(
    name: str, choices: Sequence[_Guess], judged: Ints, picks: Ints, steps: Sequence[Step]
) -> _Guess:
    """Return the picks as one guess; a step that is not judged gets the first choice."""
    chosen = dict.fromkeys((step.sample_id for step in steps), choices[0])
    hits = choices[0].hits.copy()
    for number, pick in zip(judged.tolist(), picks.tolist(), strict=True):
        chosen[steps[number].sample_id] = choices[pick]
        hits[number] = choices[pick].hits[number]
    return _Guess(name, lambda step: chosen[step.sample_id].answer(step), hits)
