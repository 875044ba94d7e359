"""Asking: a benchmark with its options, as models are asked and answers are judged.

    step -> prompt -> a model's text -> parse -> rule -> verdict

A rule that has no reader of its own judges what the benchmark parsed. A dialect
(`tasks.asking_in_dialect`) asks and reads itself, and the rule judges the actions that it read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec

from omnidata import remote
from omnidata.actions import Action, Screen, Space
from omnidata.dialects import UnreadError
from omnidata.loaders.load import reading, refuse_findings
from omnidata.plugins import blaming
from omnidata.registry import plugin_origin
from omnidata.tasks.baselines import baseline_seed, check_baseline
from omnidata.tasks.benchmark import Benchmark, History, ParsedAnswer, Receipt
from omnidata.tasks.coordinates import resizing, to_screen
from omnidata.tasks.plugin_data import find_plugin_mistakes
from omnidata.tasks.profile import LONGEST, Profile, read_answer
from omnidata.types import (
    Conversation,
    Explanation,
    LoadedDataset,
    Step,
    Target,
    Verdict,
)


class Asking:
    """A benchmark with its options: asks about steps, reads answers and judges them.

    Attributes:
        history_window: the largest number of earlier actions in a prompt, the last ones; None for
            all. `-T history_window` sets it.
        past: the actions of a run before each step, by sample id, which prompts show in place of
            predicted histories; None without a run.

    Args:
        benchmark: what is asked.
    """

    history_window: int | None
    past: Mapping[str, Sequence[Action | None]] | None = None

    def __init__(self, benchmark: Benchmark) -> None:
        benchmark.check()
        self.benchmark = benchmark
        self.name = benchmark.name
        self.allowed = benchmark.allowed
        self.history_window = benchmark.card.history_window
        self.profiles: Mapping[str, Profile] = {
            rule.name: Profile(benchmark, rule) for rule in benchmark.rules
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
    def prompted_space(self) -> Space | None:
        """The unit of coordinates in prompts, whatever the options; None if options decide."""
        return self.benchmark.card.prompted_space

    @property
    def needs_predictions(self) -> bool:
        """Whether prompts show the model's own earlier answers, which are not known yet."""
        return self.options.get("history") == "predicted" and self.past is None

    def with_past(self, past: Mapping[str, Sequence[Action | None]]) -> Self:
        """Return a copy whose prompts show the actions of a run before each step."""
        found = copy(self)
        found.past = past
        return found

    def own_actions(
        self, step: Step, predicted: Sequence[Action | None] | None
    ) -> Sequence[Action | None] | None:
        """Return the model's own actions before a step: those of `past` if there is a run."""
        return predicted if self.past is None else self.past.get(step.sample_id, ())

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
        data, origin = remote.get(data), plugin_origin(self.name)
        if not origin:
            return self.benchmark.load(data, check_media=check_media, strict=strict)
        with blaming(origin):
            with reading(data, self.name):
                source = self.benchmark.load(data, check_media=check_media, strict=strict)
            findings = find_plugin_mistakes(source, self.profiles.values())
        if findings and strict:
            refuse_findings(findings, data)
        return replace(source, findings=[*source.findings, *findings])

    def history(self, predicted: Sequence[Action | None] | None) -> History:
        """Return the history that the options ask for, out of the model's own actions."""
        source = self.options.get("history", "gold")
        return History(source, predicted or (), self.history_window)

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """Return the conversation for one step."""
        return self.benchmark.prompt(step, self.history(self.own_actions(step, predicted)))

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, as `Benchmark.target`."""
        return self.benchmark.target(step, space=space, size=size)

    def parse(
        self, text: str, step: Step, receipt: Receipt = None, *, profile: str = ""
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
        if profile:
            return self.profiles[profile].read(step, text[:LONGEST], receipt)
        return read_answer(self.benchmark.parse, text[:LONGEST], step, receipt)

    def history_action(self, step: Step, text: str, receipt: Receipt = None) -> Action | None:
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
        self, step: Step, text: str, receipt: Receipt = None, *, profile: str = ""
    ) -> Verdict:
        """Judge an answer.

        Args:
            step: of the question.
            text: the untrusted answer.
            receipt: of the answer.
            profile: its name; empty for the default.
        """
        return self.profiles[profile or self.default_profile].judge(step, text, receipt)

    def explanation(
        self,
        step: Step,
        verdict: Verdict | None,
        text: str,
        *,
        profile: str,
        receipt: Receipt = None,
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

    def first_action(
        self, step: Step, verdict: Verdict, text: str, receipt: Receipt = None, *, profile: str
    ) -> Action | None:
        """Return the first action of an answer as the model wrote it; None if it is none.

        Args:
            step: of the question.
            verdict: on the answer.
            text: the answer.
            receipt: of the answer.
            profile: whose verdict it is.
        """
        if verdict.parsed is None:
            return None
        try:
            written = self.parse(text, step, receipt, profile=profile).written
        except UnreadError:
            return None
        return written[0] if written else None

    @property
    def baselines(self) -> Sequence[str]:
        """Names of answers without a model, those of `constants` too."""
        return list(dict.fromkeys((*self.benchmark.baselines, *self.benchmark.constants)))

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


def ask_with(made: Asking | Benchmark) -> Asking:
    """Return the asking of a benchmark; an asking is returned unchanged."""
    return Asking(made) if isinstance(made, Benchmark) else made
