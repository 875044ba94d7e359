"""Instructions by a model, checked by reading the graph from them (OmniBench, appendix B.4).

One question asks for an instruction, another one, which shows the instruction without the graph,
asks for the dependencies. They must be those of the graph.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.actions import Screen, Space
from omnidata.errors import UsageError
from omnidata.jsontext import BROKEN, decode, encode
from omnidata.run.asker import LocalAsker, OpenModel
from omnidata.run.cost import Budget, Limits
from omnidata.run.evaluate import UNLIMITED
from omnidata.run.journal import TRANSIENT, RunFolder
from omnidata.synth import recaption
from omnidata.synth.compose.search import identity
from omnidata.synth.compose.settings import EdgeRule
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    History,
    Note,
    ParsedAnswer,
    Receipt,
)
from omnidata.types import (
    Adapter,
    Conversation,
    Message,
    Part,
    Progress,
    Step,
    Target,
)

Edge = tuple[int, int]

_WRITE = """\
You write instructions for somebody at a desktop computer. You are given the goal, the subtasks, \
and which subtask needs the result of which. Write one instruction in plain English that covers \
every subtask, with all names and paths exactly as they are given. The reader must be able to tell \
from it which subtask needs the result of which; where two subtasks do not depend on each other, \
do not make it sound as if one had to come first. Answer with the instruction alone."""

_READ = """\
You are given an instruction for somebody at a desktop computer, and the subtasks that it consists \
of, in no particular order. Tell from the instruction alone which subtask needs the result of \
which. {rule} Answer with a JSON object alone: {{"edges": [["A", "B"]]}} says that B needs the \
result of A."""

_RULES: Mapping[EdgeRule, str] = {
    "latest": "Only direct needs count: where several subtasks change one thing after another, "
    "each needs the result of the one right before it.",
    "every": "All needs count: where several subtasks change one thing after another, each needs "
    "the results of all before it.",
}

_AGAIN = """\
A reader of an earlier version got the dependencies wrong. That version was:
{instruction}
{mistakes}
Write another one that cannot be misread in this way."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that needs an instruction.

    Attributes:
        number: of the task.
        intent: of the task.
        subtasks: application and instruction of each, in a valid order.
        edges: between places in that order.
    """

    number: int
    intent: str
    subtasks: Sequence[tuple[str, str]]
    edges: frozenset[Edge]

    def is_graph(self, edges: frozenset[Edge]) -> bool:
        """Return whether these are the task's edges; subtasks with equal texts may be swapped."""
        return edges == self.edges or (
            identity(self.subtasks, sorted(edges)) == identity(self.subtasks, sorted(self.edges))
        )


class Misread(NamedTuple):
    """An instruction and the wrong edges read from it; None if the answer was unreadable."""

    instruction: str
    read: frozenset[Edge] | None = None


def ask_to_write(draft: Draft, misread: Misread | None) -> Conversation:
    """Return the question for an instruction, after a misread one or the first time."""
    names = [f"S{place + 1}" for place in range(len(draft.subtasks))]
    lines = [f"Goal: {draft.intent}", "Subtasks:"]
    lines += _lines(names, draft.subtasks)
    lines.append("Dependencies:")
    lines += [_need(*edge) for edge in sorted(draft.edges)]
    if not draft.edges:
        lines.append("none: the subtasks do not depend on each other")
    if misread is not None:
        lines.append(_AGAIN.format(instruction=misread.instruction, mistakes=_why(draft, misread)))
    return _conversation(_WRITE, "\n".join(lines))


def _why(draft: Draft, misread: Misread) -> str:
    if misread.read is None:
        return "No dependencies could be told from it."
    missed, wrong = draft.edges - misread.read, misread.read - draft.edges
    return "\n".join(
        [
            *(f"It did not tell that {_need(*edge)}." for edge in sorted(missed)),
            *(f"It seemed to tell that {_need(*edge)}, which is not so." for edge in sorted(wrong)),
        ]
    )


def _need(first: int, second: int) -> str:
    return f"S{second + 1} needs the result of S{first + 1}"


def ask_to_read(
    draft: Draft, instruction: str, names: Sequence[str], rule: EdgeRule
) -> Conversation:
    """Return the question for the dependencies, without the graph; `names` are by place."""
    pairs = sorted(zip(names, draft.subtasks, strict=True))
    lines = ["Instruction:", instruction, "Subtasks:"]
    lines += _lines([name for name, _ in pairs], [subtask for _, subtask in pairs])
    return _conversation(_READ.format(rule=_RULES[rule]), "\n".join(lines))


def _lines(names: Sequence[str], subtasks: Sequence[tuple[str, str]]) -> list[str]:
    return [
        f"{name}: in {app}: {text}" if app else f"{name}: {text}"
        for name, (app, text) in zip(names, subtasks, strict=True)
    ]


def _conversation(system: str, user: str) -> Conversation:
    return (
        Message("system", (Part("text", system),)),
        Message("user", (Part("text", user),)),
    )


def read_edges(text: str, names: Sequence[str]) -> frozenset[Edge] | None:
    """Return the edges in an answer; None if it has no readable ones.

    Text around the JSON object does not matter; an unknown name makes it unreadable.

    Args:
        text: the model's answer.
        names: of the subtasks, by place.

    Examples:
        >>> sorted(read_edges('Sure: {"edges": [["B", "A"]]}', ["A", "B"]))
        [(1, 0)]
        >>> sorted(read_edges('{"B": ["A"]}', ["A", "B"]))
        [(1, 0)]
        >>> read_edges('{"edges": [["A", "Z"]]}', ["A", "B"]) is None
        True
    """
    try:
        value = decode(text[text.find("{") : text.rfind("}") + 1])
    except RecursionError:
        return None
    if value is BROKEN or not isinstance(value, dict):
        return None
    pairs = value.get("edges", value)
    if isinstance(pairs, dict):
        several = (
            (a, others if isinstance(others, list) else [others]) for a, others in pairs.items()
        )
        pairs = [(first, second) for first, others in several for second in others]
    places = {name: place for place, name in enumerate(names)}
    found = set()
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            return None
        first, second = (places.get(name) if isinstance(name, str) else None for name in pair)
        if first is None or second is None:
            return None
        found.add((first, second))
    return frozenset(found)


# Questions about drafts as a task, whose steps they are.


class Questions(Benchmark):
    """Questions about drafts as a benchmark."""

    card = Card(title="compose", holds="drafts of tasks; an instruction that tells each")
    rules = (recaption.Written(),)  # any text: the next round asks whether it has the graph
    baselines: Sequence[str] = ()

    def __init__(self, rule: EdgeRule) -> None:
        super().__init__("compose", {})
        texts = "\0".join((_WRITE, _READ, _RULES[rule], _AGAIN))
        self.prompt_hash = hashlib.sha256(texts.encode()).hexdigest()

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        """Raise an error: no files of questions exist.

        Raises:
            UsageError: always.
        """
        raise UsageError("questions about tasks are not loaded", where=str(data))

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the question, which was made with its step."""
        conversation: Conversation = step.source["conversation"]
        return conversation

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[str]:
        """Take any text."""
        return ParsedAnswer(text, {"text": text})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return None: the right words are unknown."""
        return None


def _step(sample_id: str, conversation: Conversation) -> Step:
    return Step(
        sample_id=sample_id,
        episode_id=sample_id,
        step_index=0,
        num_steps=1,
        instruction="",
        screen=(0, 0),
        media={},
        history=(),
        history_screens=(),
        action=None,
        tags={},
        source={"conversation": conversation},
    )


# A model writes the instructions: rounds of writing and reading until the graphs are read.


@dataclass(frozen=True, slots=True)
class Author:
    """The model and its settings; answers do not depend on the limits.

    Attributes:
        model: the adapter.
        options: as given with `-M key=value`.
        rounds: the largest number of attempts to write an instruction.
        limits: of rate, time and cost.
        progress: called with the answers of a round and their number.
    """

    model: Adapter
    options: Mapping[str, str] = field(default_factory=dict)
    rounds: int = 3
    limits: Limits = UNLIMITED
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"{self.rounds} rounds", where="--rounds", expected="1 or more")

    def as_dict(self) -> Mapping[str, Any]:
        """Return everything that the answers depend on, as JSON values."""
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
    """The instructions of the model.

    Attributes:
        accepted: task -> its instruction and round.
        rejected: tasks without an accepted instruction.
        unanswered: tasks that wait for an answer, since the API failed.
        why: number of instructions that were not accepted, by reason.
        stopped: the reason of an early end; empty if there was none.
    """

    accepted: dict[int, tuple[str, int]] = field(default_factory=dict)
    rejected: list[int] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    stopped: str = ""


def write_instructions(
    drafts: Sequence[Draft], author: Author, run: Path, *, seed: int, rule: EdgeRule
) -> Written:
    """Ask for an instruction of every draft, and accept those from which the graph can be read.

    Every answer is a line of the run folder as soon as it arrives, and is never asked for again. A
    failure of the API decides nothing: the task waits for the next call.

    Raises:
        RunError: the folder holds something else, or answers about other tasks.
        UsageError: a limit that cannot be kept.
    """
    questions = Asking(Questions(rule))
    tasks = [[d.number, d.intent, list(d.subtasks), sorted(d.edges)] for d in drafts]
    settings = {
        "task": questions.name,
        **author.as_dict(),
        "prompt_hash": questions.prompt_hash,
        "tasks": hashlib.sha256(encode(tasks)).hexdigest(),
        "seed": seed,
    }
    limits = author.limits
    budget = Budget(limits, author.model.name)
    with OpenModel(author.model) as model, ExitStack() as stack:
        asker = LocalAsker(questions, model, (), author.model.params, limits)
        code = asker.begin(stack, ()).code
        folder = RunFolder(run, settings, code=code, reuse=limits.reuse_answers)
        stack.enter_context(folder)
        for completion in folder.done.values():
            if completion.usage:
                budget.spend(completion.usage)
        rounds = _Rounds(author, asker, folder, budget, seed, rule)
        rounds.work(drafts)
        folder.finish(stopped=rounds.found.stopped, usage=budget.totals())
        return rounds.found


@dataclass(slots=True)
class _Rounds:
    author: Author
    asker: LocalAsker
    folder: RunFolder
    budget: Budget
    seed: int
    rule: EdgeRule
    found: Written = field(default_factory=Written)

    def work(self, drafts: Sequence[Draft]) -> None:
        waiting: dict[int, Misread | None] = {draft.number: None for draft in drafts}
        for number in range(1, self.author.rounds + 1):
            here = [draft for draft in drafts if draft.number in waiting]
            waiting = self._round(number, here, waiting)
            if not waiting or self.found.stopped:
                break
        (self.found.unanswered if self.found.stopped else self.found.rejected).extend(waiting)

    def _round(
        self, number: int, drafts: Sequence[Draft], waiting: Mapping[int, Misread | None]
    ) -> dict[int, Misread | None]:
        """Return the tasks that need another round, each with its misread instruction."""
        write = {draft.number: ask_to_write(draft, waiting[draft.number]) for draft in drafts}
        texts = self._ask(f"write/{number}", write)
        names = {draft.number: self._names(draft, number) for draft in drafts}
        read = {
            draft.number: ask_to_read(draft, text, names[draft.number], self.rule)
            for draft in drafts
            if (text := texts.get(draft.number))
        }
        answers = self._ask(f"read/{number}", read)
        still = {task: waiting[task] for task, text in texts.items() if text is None}
        for draft in drafts:
            task = draft.number
            text, answer = texts.get(task), answers.get(task)
            if not text or task not in answers:
                continue
            edges = None if answer is None else read_edges(answer, names[task])
            if edges is not None and draft.is_graph(edges):
                self.found.accepted[task] = text, number
                continue
            still[task] = Misread(text, edges)
            if answer is not None:
                self.found.why["unreadable" if edges is None else "other edges"] += 1
        return still

    def _names(self, draft: Draft, number: int) -> list[str]:
        """Return names of the subtasks by place, which do not reveal their order to a reader."""
        names = [chr(ord("A") + place) for place in range(len(draft.subtasks))]
        random.Random(f"{self.seed}/read/{draft.number}/{number}").shuffle(names)
        return names

    def _ask(self, what: str, questions: Mapping[int, Conversation]) -> dict[int, str | None]:
        """Return the final answers by task; None for one without a usable text."""
        if self.found.stopped:
            return dict.fromkeys(questions)
        steps = {task: _step(f"{task}/{what}", asked) for task, asked in questions.items()}
        done, show = self.folder.done, self.author.progress
        known, new = len(done), sum(step.sample_id not in done for step in steps.values())
        progress = (lambda count, _: show(count - known, new)) if show else None
        self.asker.ask(list(steps.values()), self.folder, self.budget, progress)
        self.found.stopped = self.asker.outcome.stopped
        answers: dict[int, str | None] = {}
        for task, step in steps.items():
            completion = done.get(step.sample_id)
            if completion is None or completion.delivery in TRANSIENT:
                self.found.unanswered.append(task)
            elif completion.delivery == "ok" and (text := completion.text.strip()):
                answers[task] = text
            else:
                self.found.why["empty" if completion.delivery == "ok" else completion.delivery] += 1
                answers[task] = None
        return answers


# Instructions by template, from which the graph can be read again.


def instruct(intent: str, subtasks: Sequence[tuple[str, str]], edges: Sequence[Edge]) -> str:
    """Return the instruction: the subtasks and their dependencies; see `Draft`.

    Examples:
        >>> print(instruct("Greet Ann", [("Word", "Write it"), ("Mail", "Send it")], [(0, 1)]))
        Greet Ann. Whatever waits for nothing can be done at any time.
        1. In Word: Write it.
        2. (after 1) In Mail: Send it.
    """
    head = f"{_plain(intent).rstrip('.')}. " if intent else ""
    lines = [f"{head}Whatever waits for nothing can be done at any time."]
    for place, (app, text) in enumerate(subtasks):
        numbers = [str(first + 1) for first, second in edges if second == place]
        numbers.sort(key=int)
        *some, last = numbers or [""]
        joined = f"{', '.join(some)} and {last}" if some else last
        waits = f"(after {joined}) " if joined else ""
        where = f"In {_plain(app)}: " if app else ""
        lines.append(f"{place + 1}. {waits}{where}{_plain(text).rstrip('.')}.")
    return "\n".join(lines)


def _plain(text: str) -> str:
    return " ".join(text.split())
