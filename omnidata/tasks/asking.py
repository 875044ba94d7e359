"""Asking: a benchmark with its options, as models are asked and answers are judged.

    step -> prompt -> a model's text -> parse -> rule -> verdict

A rule that has no reader of its own judges what the benchmark parsed. In a dialect
(`tasks.dialect_option`) the dialect asks and reads, and the rule judges the actions that it read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from omnidata import remote
from omnidata.actions import Action, Screen, Space
from omnidata.dialects import UnreadError
from omnidata.tasks.baselines import baseline_seed, check_baseline
from omnidata.tasks.benchmark import Benchmark, Card, History, Parse, ParsedAnswer, Rule
from omnidata.tasks.class_checks import (
    check_decision,
    check_metrics,
    check_options,
    check_question,
    check_reach,
    fault,
)
from omnidata.tasks.coordinates import resizing, to_screen
from omnidata.tasks.longest import LONGEST
from omnidata.tasks.old_contract import OldNames
from omnidata.tasks.totals import EpisodeTotals
from omnidata.types import (
    Conversation,
    Explanation,
    LoadedDataset,
    Outcome,
    Profile,
    Step,
    Target,
    Task,
    Verdict,
    VerdictColumns,
)

if TYPE_CHECKING:
    from omnidata.metrics.paired import Measures


class Asking(OldNames):
    """A benchmark with its options: asks about steps, reads answers and judges them.

    Attributes:
        history_window: the largest number of earlier actions in a prompt, the last ones; None for
            all. `-T history_window` sets it.

    Args:
        benchmark: what is asked.
    """

    history_window: int | None

    def __init__(self, benchmark: Benchmark) -> None:
        _check(benchmark)
        self.benchmark = benchmark
        self.name = benchmark.name
        self.allowed = benchmark.allowed
        self.history_window = benchmark.card.history_window
        self.profiles: Mapping[str, Profile] = {
            rule.name: AskedProfile(benchmark, rule) for rule in benchmark.rules
        }

    @property
    def options(self) -> Mapping[str, str]:
        """Options in force, for `run.json`."""
        return self.benchmark.options

    @property
    def default_profile(self) -> str:
        """Name of the first rule."""
        return self.benchmark.rules[0].name

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompt texts and the options."""
        return self.benchmark.prompt_hash

    @property
    def needs_predictions(self) -> bool:
        """Whether prompts show the model's own earlier answers."""
        return self.options.get("history") == "predicted"

    @property
    def stop(self) -> Sequence[str]:
        """Texts at which answers end; none in a benchmark's own words."""
        return ()

    @property
    def special_tokens(self) -> bool:
        """Whether answers contain special tokens; not in a benchmark's own words."""
        return False

    @property
    def own_controls(self) -> Collection[str]:
        """Control tokens of models in prompts and answers; none in a benchmark's own words."""
        return ()

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations.

        Args:
            data: a file, a folder or a URL.
            check_media: check that the media exist.
            strict: make the first finding an error.

        Raises:
            DataError: the data have nothing readable of this benchmark.
        """
        return self.benchmark.load(remote.get(data), check_media=check_media, strict=strict)

    def history(self, predicted: Sequence[Action | None] | None) -> History:
        """Return the history that the options ask for, out of the model's own actions."""
        source = self.options.get("history", "gold")
        return History(source, predicted or (), self.history_window)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """Return the conversation for one step."""
        return self.benchmark.prompt(step, self.history(predicted))

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, as `Benchmark.target`."""
        return self.benchmark.target(step, space=space, size=size)

    def parse(
        self, text: str, step: Step, receipt: Mapping[str, Any] | None = None, *, profile: str = ""
    ) -> ParsedAnswer[Any]:
        """Read an answer as a profile reads it.

        Args:
            text: the untrusted answer; only the beginning of a very long one is read.
            step: of the question.
            receipt: of the answer.
            profile: its name; empty for the benchmark's own reading.

        Raises:
            UnreadError: the text is no answer.
        """
        own = {rule.name: rule.parse for rule in self.benchmark.rules}.get(profile)
        return _parsed(own or self.benchmark.parse, text[:LONGEST], step, receipt)

    def history_action(
        self, step: Step, text: str, receipt: Mapping[str, Any] | None = None
    ) -> Action | None:
        """Return an answer as an action for histories of predictions; None if it is none."""
        try:
            written = self.parse(text, step, receipt).written
        except UnreadError:
            return None
        if not written:
            return None
        resized = resizing(receipt, step.screen, where=step.sample_id)
        first, *rest = (to_screen(action, resized) for action in written)
        return msgspec.structs.replace(first, then=tuple(rest)) if rest else first

    def verdict(
        self, step: Step, text: str, receipt: Mapping[str, Any] | None = None, *, profile: str = ""
    ) -> Verdict:
        """Judge an answer.

        Args:
            step: of the question.
            text: the untrusted answer.
            receipt: of the answer.
            profile: its name; empty for the default.
        """
        return self.profiles[profile or self.default_profile].judge(step, text, receipt)

    def failed(self, step: Step, outcome: Outcome, *, profile: str = "") -> Verdict:
        """Return the verdict on a step without an answer."""
        return self.profiles[profile or self.default_profile].failed(step, outcome)

    def explanation(
        self,
        step: Step,
        verdict: Verdict | None,
        text: str,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explain a verdict in words and pictures; without one, explain the step.

        Args:
            step: the step.
            verdict: on the answer; None without one.
            text: the answer; empty without one.
            profile: name of the profile whose verdict it is.
            receipt: of the answer.
        """
        parsed = None
        if verdict and verdict.parsed is not None:
            try:
                parsed = self.parse(text, step, receipt, profile=profile)
            except UnreadError:  # the line of scores was edited
                parsed = None
        return self.benchmark.explain(step, verdict, parsed, self.profiles[profile], receipt)

    @property
    def baselines(self) -> Sequence[str]:
        """Names of answers without a model."""
        return self.benchmark.baselines

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return a baseline: a function from a step to its answer.

        Raises:
            UsageError: the baseline or an option does not exist.
        """
        random = self.benchmark.random if name == "random" else None
        taken = ("seed",) if random else ()
        check_baseline(self.name, name, self.baselines, options, taken)
        if random is None:
            return self.benchmark.policy(name, steps)
        seed = baseline_seed(options)
        return lambda step: random(step, seed)


_VALUES: Final = "a tuple of values, or a Verdict"
_ANSWER: Final = "a ParsedAnswer, or an UnreadError for a text that is no answer"


def _parsed(
    parse: Parse[Any], text: str, step: Step, receipt: Mapping[str, Any] | None
) -> ParsedAnswer[Any]:
    try:
        found = parse(text, step, receipt)
    except RecursionError:
        raise UnreadError("the answer is nested too deeply") from None
    if not isinstance(found, ParsedAnswer):
        raise TypeError(f"`parse` returned {found!r:.80}: expected {_ANSWER}")
    return found


def as_task(made: Task | Benchmark) -> Task:
    """Return a benchmark as callers ask it; a task stays as it is."""
    return cast("Task", Asking(made) if isinstance(made, Benchmark) else made)


def _check(benchmark: Benchmark) -> None:
    """Refuse mistakes that would change prompts or numbers without an error."""
    kind = type(benchmark)
    if not isinstance(getattr(benchmark, "card", None), Card):
        raise fault(kind, "has no card", "`card = Card(title=...)`")
    rules = getattr(benchmark, "rules", ())
    if not rules:
        raise fault(kind, "has no rule", "`rules` with at least one rule that judges answers")
    check_options(kind, benchmark.allowed)
    for rule in rules:
        check_reach(kind, rule.name, rule.reach)
        if isinstance(rule.totals, EpisodeTotals):
            check_metrics(type(rule), rule.name, rule.totals)
        else:
            check_decision(kind, rule.name, rule.totals)
    if kind.prompt is Benchmark.prompt:
        check_question(kind, benchmark.question)


class AskedProfile:
    """A rule with the reader that it judges by: `--profile NAME`.

    Args:
        benchmark: reads answers for rules without a reader of their own.
        rule: judges what was read.
    """

    def __init__(self, benchmark: Benchmark, rule: Rule[Any]) -> None:
        self.rule = rule
        self.name = rule.name
        self.source, self.leaves_out, self.reach = rule.source, rule.leaves_out, rule.reach
        self._totals = rule.totals
        self.values, self.columns = rule.totals.values, rule.totals.columns
        self.lower_is_better = rule.totals.lower_is_better
        self.by, self.legend = rule.totals.by, rule.totals.legend
        self.metrics: Mapping[str, str] = getattr(rule.totals, "metrics", {})
        self.answer_reader = rule.answer_reader
        self._parse = rule.parse or benchmark.parse

    @cached_property
    def shares(self) -> Collection[str]:
        """The values in [0, 1] that columns average; empty for totals of another kind."""
        return self._totals.shares

    @property
    def step_metric(self) -> tuple[str, str]:
        """The metric that is the share of right steps, and the value that says whether one is."""
        return self._totals.step_metric

    def metric_of(self, name: str) -> str:
        """Return the metric of `omnidata.metrics.episodes` for a column; else its name."""
        found = self._totals
        return found.metric_of(name) if isinstance(found, EpisodeTotals) else name

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and judge it."""
        read = text if len(text) <= LONGEST else text[:LONGEST]
        try:
            parsed = _parsed(self._parse, read, step, receipt)
        except UnreadError as error:
            found = self.judge_parsed(step, None, str(error))
        else:
            found = self.judge_parsed(step, parsed)
        if read is text:
            return found
        note = f"only the first {LONGEST:,} of {len(text):,} characters were read"
        return msgspec.structs.replace(found, reason="; ".join(filter(None, (found.reason, note))))

    def judge_parsed(
        self, step: Step, parsed: ParsedAnswer[Any] | None, reason: str = ""
    ) -> Verdict:
        """Judge an answer that was read.

        Args:
            step: of the question.
            parsed: the answer; None if it could not be read.
            reason: why it could not be read.
        """
        found = self.rule.judge(step, parsed)
        if isinstance(found, Verdict):
            return found
        if not isinstance(found, tuple):
            raise TypeError(f"the rule {self.name} returned {found!r:.80}: expected {_VALUES}")
        if parsed is None:
            return Verdict("unparsed", found, None, reason)
        return Verdict("ok", found, parsed.record, parsed.note)

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """Return the verdict on a step without an answer: that on an empty text."""
        if self.rule.failed:
            return Verdict(outcome, self.rule.failed(step))
        return Verdict(outcome, self.judge(step, "").values)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of verdicts."""
        return self._totals.total(steps, rows)

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """Return the sums behind the metrics of two runs."""
        return self._totals.measures(steps, a, b)
