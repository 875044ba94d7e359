"""A model writes the instructions: rounds of writing and reading until they tell the graphs."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata.errors import RunError, UsageError
from omnidata.jsontext import encode
from omnidata.run.cache import ResponseCache
from omnidata.run.engine import Engine, Progress
from omnidata.run.folder import TRANSIENT, RunFolder
from omnidata.run.limits import Limits
from omnidata.run.loop import run_loop
from omnidata.run.meter import Meter
from omnidata.run.prices import Budget
from omnidata.synth.compose.order import EdgeRule
from omnidata.synth.compose.questions import Questions, question
from omnidata.synth.compose.writing import (
    Draft,
    Misread,
    ask_to_read,
    ask_to_write,
    letters,
    read_edges,
)
from omnidata.types import Adapter, Completion, Conversation, Step

UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, and how to ask; no answer depends on what may be used.

    Attributes:
        model: the adapter.
        options: as given with `-M key=value`.
        rounds: how often an instruction is written at most.
        limits: how fast, how long and how dearly to ask.
        progress: called while the model is asked, with the answers of a round and their number.
    """

    model: Adapter
    options: Mapping[str, str] = field(default_factory=dict)
    rounds: int = 3
    limits: Limits = UNLIMITED
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check the number of rounds.

        Raises:
            UsageError: nobody would be asked.
        """
        if self.rounds < 1:
            raise UsageError(f"{self.rounds} rounds", where="--rounds", expected="1 or more")

    def as_dict(self) -> Mapping[str, Any]:
        """What decides the answers, as JSON values."""
        params = self.model.params
        return {
            "model": self.model.name,
            "model_options": dict(self.options),
            "model_settings": dict(self.model.settings),
            "generation": {
                "temperature": params.temperature,
                "max_new_tokens": params.max_new_tokens,
                "seed": params.seed,
            },
            "rounds": self.rounds,
        }


@dataclass(slots=True)
class Written:
    """What the model came to.

    Attributes:
        accepted: task -> its instruction and the round that it is of.
        rejected: tasks none of whose instructions told the graph.
        unanswered: tasks that wait for an answer: the API failed.
        why: how many instructions were not accepted, by reason.
        stopped: why the run ended before its end; empty if it did not.
    """

    accepted: dict[int, tuple[str, int]] = field(default_factory=dict)
    rejected: list[int] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    stopped: str = ""


def write_instructions(
    drafts: Sequence[Draft], author: Author, run: Path, *, seed: int, rule: EdgeRule
) -> Written:
    """Ask for an instruction of every draft, and take those from which the graph can be told.

    Every answer is a line of the run folder as soon as it is there, and is never asked for again. A
    failure of the API decides nothing: the task waits for the next call.

    Args:
        drafts: the tasks.
        author: the model, and how to ask it.
        run: the run folder.
        seed: shuffles what readers see.
        rule: which edges there are.

    Raises:
        RunError: the folder holds something else, or answers about other tasks.
        UsageError: a limit that cannot be kept.
    """
    questions = Questions(rule)
    told = [[d.number, d.intent, list(d.subtasks), sorted(d.edges)] for d in drafts]
    settings = {
        "task": questions.name,
        **author.as_dict(),
        "prompt_hash": questions.prompt_hash,
        "tasks": hashlib.sha256(encode(told)).hexdigest(),
        "seed": seed,
    }
    budget = Budget(author.limits, author.model.name)
    kept = ResponseCache(author.limits.cache) if author.limits.cache else nullcontext()
    with kept as cache, RunFolder(run, settings) as folder:
        for completion in folder.done.values():
            if completion.usage:
                budget.spend(completion.usage)
        rounds = _Rounds(drafts, author, folder, budget, cache, questions, seed, rule)
        run_loop(rounds.work())
        folder.finish(stopped=rounds.found.stopped, usage=budget.totals())
        return rounds.found


class _Rounds:
    """Rounds of questions to a model."""

    def __init__(
        self,
        drafts: Sequence[Draft],
        author: Author,
        folder: RunFolder,
        budget: Budget,
        cache: ResponseCache | None,
        questions: Questions,
        seed: int,
        rule: EdgeRule,
    ) -> None:
        self.found = Written()
        self._drafts = drafts
        self._author = author
        self._folder = folder
        self._budget = budget
        self._cache = cache
        self._questions = questions
        self._seed = seed
        self._rule = rule

    async def work(self) -> None:
        """Go on until every task is accepted, rejected or without an answer."""
        waiting: dict[int, Misread | None] = {draft.number: None for draft in self._drafts}
        try:
            for number in range(1, self._author.rounds + 1):
                waiting = await self._round(number, waiting)
                if not waiting or self.found.stopped:
                    break
        finally:
            with suppress(Exception):  # whatever an adapter lacks at its end, it has answered
                await self._author.model.close()
        if self.found.stopped:
            self.found.unanswered += waiting
        else:
            self.found.rejected += waiting

    async def _round(
        self, number: int, waiting: Mapping[int, Misread | None]
    ) -> dict[int, Misread | None]:
        """One instruction for each task, and what was read from it; those that wait for another."""
        drafts = [draft for draft in self._drafts if draft.number in waiting]
        still: dict[int, Misread | None] = {}
        write = {draft.number: ask_to_write(draft, waiting[draft.number]) for draft in drafts}
        texts = await self._ask(f"write/{number}", write, waiting, still)
        names = {draft.number: letters(draft, self._rng(draft, number)) for draft in drafts}
        read = {
            draft.number: ask_to_read(draft, texts[draft.number], names[draft.number], self._rule)
            for draft in drafts
            if draft.number in texts
        }
        earlier = {task: Misread(text) for task, text in texts.items()}
        answers = await self._ask(f"read/{number}", read, earlier, still)
        for draft in drafts:
            if draft.number not in answers:
                continue
            edges = read_edges(answers[draft.number], names[draft.number])
            if edges is not None and draft.tells(edges):
                self.found.accepted[draft.number] = texts[draft.number], number
            else:
                self.found.why["unreadable" if edges is None else "other edges"] += 1
                still[draft.number] = Misread(texts[draft.number], edges)
        return still

    def _rng(self, draft: Draft, number: int) -> random.Random:
        return random.Random(f"{self._seed}/read/{draft.number}/{number}")

    async def _ask(
        self,
        what: str,
        conversations: Mapping[int, Conversation],
        before: Mapping[int, Misread | None],
        still: dict[int, Misread | None],
    ) -> dict[int, str]:
        """The answers, by task; what has none waits for the next round, or for the next call."""
        steps = {task: question(f"{task}/{what}", text) for task, text in conversations.items()}
        if self.found.stopped:
            still.update({task: before[task] for task in steps})
            return {}
        known = len(self._folder.done)
        asked = sum(step.sample_id not in self._folder.done for step in steps.values())
        engine = Engine(
            self._questions,
            self._author.model,
            self._folder,
            self._author.model.params,
            limits=self._author.limits,
            budget=self._budget,
            cache=self._cache,
            meter=Meter(),
        )
        show = self._author.progress
        await engine.ask(
            list(steps.values()),
            (lambda done, _: show(done - known, asked)) if show else None,
        )
        self.found.stopped = engine.stopped
        return dict(self._answers(steps, before, still))

    def _answers(
        self,
        steps: Mapping[int, Step],
        before: Mapping[int, Misread | None],
        still: dict[int, Misread | None],
    ) -> Iterator[tuple[int, str]]:
        for task, step in steps.items():
            completion = self._folder.done.get(step.sample_id)
            if completion is None or completion.delivery in TRANSIENT:
                self.found.unanswered.append(task)
            elif text := _said(completion):
                yield task, text
            else:
                self.found.why["empty" if completion.delivery == "ok" else completion.delivery] += 1
                still[task] = before[task]


def _said(completion: Completion) -> str:
    return completion.text.strip() if completion.delivery == "ok" else ""


class UnansweredError(RunError):
    """A model did not answer everything; the same call goes on."""

    exit_code = 1


def explain(written: Written, run: Path) -> UnansweredError:
    """The error of a call that has to be made again.

    Args:
        written: with tasks that wait for an answer.
        run: the run folder.
    """
    what = f"{len(written.unanswered)} tasks wait for an answer"
    return UnansweredError(
        f"{what}: {written.stopped}" if written.stopped else f"{what}: the model gave none",
        where=str(run),
        expected="an answer to every question; nothing is written before",
        remedy="the same command asks again, and only for what is missing",
    )
