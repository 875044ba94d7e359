"""The audit of a task's data: blind rules, their scores, and whether the best could be luck."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata.analysis.audit_learning import (
    ALPHA,
    FOLDS,
    LEARNERS,
    CrossValidation,
    Ints,
    PermutationTest,
    by_feature,
    cross_validated,
    described_tree,
    features,
    groups,
    permutation_test,
    ranked,
)
from omnidata.errors import DataError
from omnidata.predictions import Prediction
from omnidata.run.engines import Cluster
from omnidata.run.scoring import score
from omnidata.types import Conversation, Profile, Progress, Step, Task

# Answers that need no look at a step, and which steps each of them gets right.

CEILING = "oracle"
"""The baseline that looks at the target; its texts are what a right answer looks like."""

TRIED = 100
CHOICES = 16
Answer = Callable[[Step], str]


@dataclass(frozen=True, slots=True)
class Blind:
    """A rule that answers without looking.

    Attributes:
        name: "baseline NAME", or "always TEXT".
        answer: the text for a step.
        hits: float64 (N,), the profile's first value on each step; NaN = not judged.
    """

    name: str
    answer: Answer
    hits: Floats


def baselines(task: Task, profile: Profile, steps: Sequence[Step]) -> list[Blind]:
    """Every baseline of the task but the one that knows the target."""
    found = []
    for name in task.baselines:
        if name != CEILING:
            answer = task.baseline(name, steps, {})
            found.append(Blind(f"baseline {name}", answer, _hits(profile, steps, answer)))
    return found


def constants(task: Task, profile: Profile, steps: Sequence[Step], *, seed: int) -> list[Blind]:
    """Right answers of single steps, given to all steps; the best first.

    Args:
        task: the benchmark.
        profile: who judges.
        steps: the steps.
        seed: of the choice where more than `TRIED` different answers are right somewhere: the most
            frequent ones are tried, and of those that are right once a random sample.
    """
    counts = Counter(map(task.baseline(CEILING, steps, {}), steps))
    texts = list(counts)
    random.Random(seed).shuffle(texts)
    texts.sort(key=counts.__getitem__, reverse=True)
    found = []
    for text in texts[:TRIED]:
        answer = _always(text)
        found.append(Blind(f"always {text}", answer, _hits(profile, steps, answer)))
    return sorted(found, key=lambda rule: -float(np.nansum(rule.hits)))


def choices(rules: Sequence[Blind]) -> list[Blind]:
    """The few rules between which a learner chooses, so that as many steps as possible have one.

    The best rule is the first; each further one is right on the most steps on which none before it
    is, at least 5 and 1 % of the steps. Rules that are no constants, with a different answer for
    nearly every step, are the caller's to leave out.
    """
    if not rules:
        return []
    hits = np.nan_to_num(np.array([rule.hits for rule in rules])) > 0
    least = max(5, hits.shape[1] // 100)
    open_steps = np.ones(hits.shape[1], dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < CHOICES:
        gains = (hits & open_steps).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] < (least if chosen else 1):
            break
        chosen.append(best)
        open_steps &= ~hits[best]
    return [rules[number] for number in chosen]


def is_constant(rule: Blind, steps: Sequence[Step]) -> bool:
    """Whether the rule has few answers: one, or one for each kind of step."""
    return len(set(map(rule.answer, steps))) <= max(CHOICES, len(steps) // 10)


def _always(text: str) -> Answer:
    return lambda step: text


def _hits(profile: Profile, steps: Sequence[Step], answer: Answer) -> Floats:
    values = [profile.judge(step, answer(step)).values[0] for step in steps]
    return np.array(values, dtype=np.float64)


CARRIERS = 5
LEAST_GROUPS = 4 * FOLDS
Kind = Literal["baseline", "constant", "learned"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that looks at nothing, and what it scores.

    Attributes:
        name: e.g. "baseline center", "always Answer: A", "tree of depth 3".
        kind: "baseline", "constant" (the best of many, in hindsight), "learned" (cross-validated).
        metric: the report's value, averaged; what rules are compared by.
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
    """What an audit found.

    Attributes:
        task, profile, options: of the benchmark.
        steps: all steps; `judged`: those that the profile judges; `groups`: of near-duplicates.
        value: what rules are compared by, the first of the profile's; higher is better.
        metric: the table's column that is the mean of `value`; "" where no column is.
        rules: without any look, then learned.
        unlearned: the best rule that learns nothing.
        learned: the best learned rule; None where there is too little to learn from.
        chance: the test of `learned`; None where it does not beat `unlearned`.
        leak: whether the form of the prompt tells something about the answer (docs/audit.md).
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
    learned: Rule | None
    chance: PermutationTest | None
    leak: bool
    carriers: Mapping[str, float]
    tree: str

    def as_dict(self) -> dict[str, Any]:
        """The report as a JSON object; rules are named where they stand for themselves."""
        found = asdict(self)
        for role in ("unlearned", "learned"):
            found[role] = found[role] and found[role]["name"]
        return {**found, "alpha": ALPHA}


def audit(
    task: Task,
    steps: Sequence[Step],
    profile: Profile,
    *,
    seed: int = 0,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Answer every step without looking at it, and judge the answers like a model's.

    The rule by which a leak is called: the best of a tree, a linear classifier and every feature
    alone, each cross-validated over groups of near-duplicates, scores higher than every baseline
    and constant answer, and with features dealt out at random the best of them scores as high with
    a probability of at most 0.5 %.

    Args:
        task: the benchmark with its options, which decide what the prompt shows.
        steps: at least one.
        profile: who judges; rules are compared by its first value.
        seed: of folds, shuffles and the sample of constant answers.
        workers: processes that learn from shuffles, one per core if None; 1 = this one. The report
            is the same.
        cluster: whose workers do; None for this machine.
        progress: called with shuffles done and in all.

    Raises:
        DataError: the profile judges no step.
        RunError: as `permutation_test`.
    """
    known = baselines(task, profile, steps)
    fixed = constants(task, profile, steps, seed=seed)
    judged = np.flatnonzero(~np.isnan(fixed[0].hits))
    if not len(judged):
        raise DataError(
            f"{profile.name} judges none of the {len(steps)} steps",
            expected="at least one step with a usable target",
            remedy="`omnidata info` lists what is wrong with the targets",
        )
    table = _Table(task, profile, steps)
    rules = [table.rule(each, "baseline") for each in known]
    rules += [table.rule(each, "constant") for each in _others(known, fixed)[:1]]
    unlearned = max(rules, key=lambda rule: rule.metric)
    kept = [steps[number] for number in judged.tolist()]
    prompts = [task.prompt(step) for step in kept]
    group = groups(kept, prompts)
    plain = [each for each in known if is_constant(each, steps)]
    offered = choices([*plain, *_others(plain, fixed)])
    cv = _validation(prompts, [each.hits[judged] for each in offered], group, seed)
    learned = []
    for name, picks in _picks(cv).items() if cv else ():
        learned.append(table.rule(_chosen(name, offered, judged, picks, steps), "learned"))
    best = max(learned, key=lambda rule: rule.metric, default=None)
    luck = None
    if cv and best and best.metric > unlearned.metric:
        luck = permutation_test(
            cv,
            group,
            best.metric,
            seed=seed,
            workers=workers,
            cluster=cluster,
            progress=progress,
        )
    leak = luck is not None and luck.p <= ALPHA
    rules += learned
    return Report(
        task=task.name,
        profile=profile.name,
        options=task.options,
        steps=len(steps),
        judged=len(judged),
        groups=len(set(group.tolist())),
        value=profile.values[0],
        metric=_column(profile, rules),
        rules=rules,
        unlearned=unlearned,
        learned=best,
        chance=luck,
        leak=leak,
        carriers=_leaking_features(cv, unlearned.metric) if cv and leak else {},
        tree=_tree(cv, offered) if cv and leak else "",
    )


class _Table:
    """From a rule to its line in the table."""

    def __init__(self, task: Task, profile: Profile, steps: Sequence[Step]) -> None:
        self.task, self.profile, self.steps = task, profile, steps
        self.whole = np.ones(len(steps), dtype=np.bool_)

    def rule(self, rule: Blind, kind: Kind) -> Rule:
        said = (Prediction(sample_id=s.sample_id, output=rule.answer(s)) for s in self.steps)
        found = score(self.task, self.profile, self.steps, said, whole=self.whole, causes=False)
        columns = self.profile.columns
        return Rule(
            rule.name,
            kind,
            float(np.nanmean(rule.hits)),
            {name: found["overall"][name] for name in columns},
            {name: found["ci95"][name] for name in columns},
        )


def _others(known: Sequence[Blind], fixed: Sequence[Blind]) -> list[Blind]:
    """The constants that are not a baseline by another name."""
    seen = {rule.hits.tobytes() for rule in known}
    return [rule for rule in fixed if rule.hits.tobytes() not in seen]


def _column(profile: Profile, rules: Sequence[Rule]) -> str:
    """The first column that is the mean of the profile's first value for every rule, if any."""
    for name in profile.columns:
        totals = [rule.overall[name] for rule in rules]
        means = [rule.metric for rule in rules]
        if None not in totals and np.allclose(np.array(totals, dtype=np.float64), means):
            return name
    return ""


def _validation(
    prompts: Sequence[Conversation], hits: Sequence[Floats], group: Ints, seed: int
) -> CrossValidation | None:
    """What is to be learned; None where there is nothing to choose, or too little to learn from."""
    if len(hits) < 2 or len(set(group.tolist())) < LEAST_GROUPS:
        return None
    seen = features(prompts)
    return CrossValidation.of(seen, np.array(hits), group, seed=seed) if seen.names else None


def _picks(cv: CrossValidation) -> dict[str, Ints]:
    """The picks of the best single feature, then of every learner."""
    best, _ = ranked(cv)[0]
    alone = {f"{cv.features.names[best]}, alone": by_feature(cv)[:, best]}
    return alone | {name: cross_validated(cv, learner) for name, learner in LEARNERS.items()}


def _chosen(
    name: str, offered: Sequence[Blind], judged: Ints, picks: Ints, steps: Sequence[Step]
) -> Blind:
    """A learner's picks as a rule; a step that is not judged gets the first choice."""
    rules = dict.fromkeys((step.sample_id for step in steps), offered[0])
    hits = offered[0].hits.copy()
    for number, pick in zip(judged.tolist(), picks.tolist(), strict=True):
        rules[steps[number].sample_id] = offered[pick]
        hits[number] = offered[pick].hits[number]
    return Blind(name, lambda step: rules[step.sample_id].answer(step), hits)


def _leaking_features(cv: CrossValidation, mark: float) -> dict[str, float]:
    """The best features that do better than the mark alone."""
    names = cv.features.names
    return {names[number]: share for number, share in ranked(cv)[:CARRIERS] if share > mark}


def _tree(cv: CrossValidation, offered: Sequence[Blind]) -> str:
    """The tree's text, with the choices by their names, each in one line."""
    names = [rule.name.replace("\n", "\\n") for rule in offered]
    return described_tree(cv, names)
