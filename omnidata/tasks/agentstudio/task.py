"""The tasks `groundui`, `idm-single`, `idm-multiple` and `criticbench`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from omnidata.actions import Action, Point, Screen, Space, convert
from omnidata.errors import UsageError
from omnidata.metrics.classification import RATES, Confusion, rates
from omnidata.metrics.intervals import Floats, Mask, summed
from omnidata.metrics.paired import Measures, Sums, Unit, known
from omnidata.metrics.row_tables import PLATFORMS, critic_table
from omnidata.tasks.agentstudio import load as loader
from omnidata.tasks.agentstudio.answers import judge_point, judge_released
from omnidata.tasks.agentstudio.explanations import critic, ground, multiple, single
from omnidata.tasks.agentstudio.files import TASKS, TaskName, find, recognises
from omnidata.tasks.agentstudio.prompt import OPTIONS, Prompt
from omnidata.tasks.agentstudio.published import TABLES, published
from omnidata.tasks.agentstudio.rows import Instructions, shown, target_box
from omnidata.tasks.agentstudio.rules import (
    LettersVerdict,
    judge_multiple,
    judge_single,
    letters_of,
    read_success,
    released_score,
)
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import place, resizing
from omnidata.tasks.profiles import RowProfile, owners, sized
from omnidata.tasks.published import Published
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Outcome,
    Profile,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

# AgentStudio's two scoring profiles for its four benchmarks.
#
# `agentstudio-paper` reads with care: edges belong to a box, the last readable `Answer:` decides.
# `agentstudio-release` gives the released evaluator's verdicts, its traps included. A row that is
# at fault itself (no usable box, an operation outside the action space, an empty window) is judged
# by neither and counted.

Reading = Literal["paper", "release"]
_BY: Mapping[str, Sequence[str]] = {"platform": PLATFORMS, "source": (), "subset": ()}


class AgentStudioProfile(RowProfile):
    """What the profiles share: their names and the axes of the table."""

    by = _BY

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.name = f"agentstudio-{reading}"


class PointProfile(AgentStudioProfile):
    """GroundUI: the point lies in the box (section 5.1).

    Args:
        reading: whose rules.
        space: unit of the coordinates in responses; the paper's prompt asks for [0, 1].
    """

    def __init__(self, reading: Reading, space: Space) -> None:
        super().__init__(reading)
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the point and hold it against the row's box."""
        rule = judge_point if self.reading == "paper" else judge_released
        resized = resizing(receipt, where=step.sample_id) if self.space == "px" else None
        to_screen = resized.to_screen if resized else None
        found = rule(step.source, text, space=self.space, to_screen=to_screen)
        outcome: Outcome = "unparsed" if found.fault == "no-pair" else "ok"
        # JSON has no infinity: a number that no float holds is told as a text.
        parsed = found.point and {"point": [x if math.isfinite(x) else str(x) for x in found.point]}
        return Verdict(outcome, (found.hit,), parsed, found.fault)


class LetterProfile(AgentStudioProfile):
    """IDM-Single: the letter is that of the action (section 5.2)."""

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the letter."""
        row = step.source
        found = judge_single(row["operation"], row["action_space"], text, reading=self.reading)
        return _lettered(found, (found.correct,))


class LettersProfile(AgentStudioProfile):
    """IDM-Multiple: the letters are those of the actions; edits where they are not."""

    values = ("score", "edit_distance")
    columns: Mapping[str, Unit] = {"accuracy": "share", "edit_distance": "number"}

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the letters."""
        operations = [action["operation"] for action in shown("idm-multiple", step.source)]
        space = step.source["action_space"]
        found = judge_multiple(operations, space, text, reading=self.reading)
        return _lettered(found, (found.correct, found.distance))


def _lettered(found: LettersVerdict, values: tuple[float | bool | None, ...]) -> Verdict:
    outcome: Outcome = "ok" if found.parsed else "unparsed"
    parsed = {"letters": list(found.parsed)} if found.parsed else None
    return Verdict(outcome, values, parsed, found.fault)


class CriticProfile(AgentStudioProfile):
    """CriticBench: does the trajectory succeed? (section 5.3).

    The release stores only whether a response is right, so that an unread one counts as the
    opposite of the truth; the paper's profile counts it as neither.
    """

    values = ("score", "said")
    columns: Mapping[str, Unit] = dict.fromkeys(RATES, "share")

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the response as true or false."""
        success: bool = step.source["is_success"]
        if self.reading == "release":
            score = bool(released_score(success, text))
            return Verdict("ok", (score, success == score), {"success": success == score})
        said = read_success(text)
        if said is None:
            return Verdict("unparsed", (False, None), None, "no truth value after an Answer:")
        return Verdict("ok", (said == success, said), {"success": said})

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """The rates are of the cells of the confusion, which rows add to."""
        judged = known(a.values["score"], b.values["score"])
        owner = owners(steps, np.ones(len(steps), dtype=np.bool_))
        truth = np.array([bool(step.source["is_success"]) for step in steps])
        sides = [_cells(truth, rows.values["said"]) for rows in (a, b)]

        def sums(chosen: Mask) -> Sums:
            kept = chosen & judged
            added_a, added_b = (summed(side[kept], owner[kept]) for side in sides)
            return Sums(added_a, added_b, _critic_rates, [tuple(range(7))] * len(RATES))

        return Measures(self.columns, self.by, ("accuracy", "score"), judged, sums)

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        chosen = np.flatnonzero(mask).tolist()
        said = rows.values["said"][chosen].tolist()
        truth = [bool(steps[number].source["is_success"]) for number in chosen]
        read = [None if value != value else bool(value) for value in said]
        groups: dict[int, list[int]] = {}
        for number, owner in enumerate(owners(steps, mask).tolist()):
            groups.setdefault(owner, []).append(number)
        per_group = [
            Confusion.of([truth[number] for number in places], [read[number] for number in places])
            for places in groups.values()
        ]
        shared = len(groups) < len(chosen)
        counts = Confusion.of(truth, read)
        return sized(critic_table(counts, per_group=per_group if shared else ()))


def _critic_rates(sums: Floats) -> Floats:
    """`rates`, where nothing by nothing is 0 as in the table; the last column counts rows."""
    found: Floats = np.nan_to_num(rates(sums[..., :6]))
    return np.where(sums[..., 6:] > 0, found, np.nan)


def _cells(truth: Mask, said: Floats) -> Floats:
    """(N, 7): for each row its cell of `Confusion`, and 1."""
    unread = np.isnan(said)
    yes = np.nan_to_num(said) == 1
    cells = [
        truth & yes,
        ~truth & yes,
        truth & ~yes & ~unread,
        ~truth & ~yes & ~unread,
        truth & unread,
        ~truth & unread,
        np.ones_like(truth),
    ]
    return np.column_stack(cells).astype(np.float64)


# AgentStudio's baselines: what a score means without a model.

NAMES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("oracle", "center"),
    "idm-single": ("oracle", "majority"),
    "idm-multiple": ("oracle", "majority"),
    "criticbench": ("oracle", "always-true", "always-false", "majority"),
}
"""`oracle` answers with the target; `center` points at the middle of the screen; `majority` always
gives the most frequent target of the row's action space (CriticBench: of the data)."""

_CONSTANT = {"always-true": "Answer: True", "always-false": "Answer: False"}


def policy(
    task: TaskName, name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """The rule of that name: a step's answer, in the form that the prompt asks for.

    Raises:
        UsageError: the task has no such rule, or an option is given.
    """
    if name not in NAMES[task]:
        raise UsageError(
            f'{task} has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(NAMES[task])}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    if name in _CONSTANT:
        return lambda step: _CONSTANT[name]
    if name == "center":
        return lambda step: _point(Point(0.5, 0.5, "rel"), step, space)
    if name == "oracle":
        return lambda step: _target(task, step, space)
    counts: dict[str, Counter[str]] = {}
    for step in steps:
        counts.setdefault(_kind(task, step), Counter())[_target(task, step, space)] += 1
    usual = {kind: answers.most_common(1)[0][0] for kind, answers in counts.items()}
    return lambda step: usual[_kind(task, step)]


def _kind(task: TaskName, step: Step) -> str:
    """Rows among which answers can be compared: letters mean different actions elsewhere."""
    return "" if task == "criticbench" else " ".join(map(str, step.source["action_space"]))


def _target(task: TaskName, step: Step, space: Space) -> str:
    """The right answer; an empty one where the row has none."""
    row = step.source
    if task == "criticbench":
        return f"Answer: {row['is_success']}"
    if task == "groundui":
        box = target_box(row)
        return _point(box.centre, step, space) if box else "Answer:"
    actions = [row] if task == "idm-single" else shown("idm-multiple", row)
    letters = letters_of([action["operation"] for action in actions], row["action_space"])
    return "Answer: " + "\n".join(letters or ())


def _point(point: Point, step: Step, space: Space) -> str:
    """All digits: a box without height is hit by the exact coordinate only."""
    found = convert(point, space, step.screen)
    return f"Answer: ({found.x!r}, {found.y!r})"


# AgentStudio's right answers: a point, letters, or a truth value, as the prompts ask for them.


def _point_text(step: Step, space: Space, size: Screen) -> Target | None:
    box = target_box(step.source)
    if box is None or min(step.screen) < 1:
        return None
    x, y = place(box, step.screen, space=space, size=size)
    return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))


def _letter(step: Step, space: Space, size: Screen) -> Target | None:
    letters = letters_of([step.source["operation"]], step.source["action_space"])
    return _said(f"Answer: {letters[0]}") if letters else None


def _letters(step: Step, space: Space, size: Screen) -> Target | None:
    operations = [action["operation"] for action in shown("idm-multiple", step.source)]
    letters = letters_of(operations, step.source["action_space"])
    return _said("\n".join(("Answer:", *letters))) if letters else None


def _truth(step: Step, space: Space, size: Screen) -> Target | None:
    return _said(f"Answer: {step.source['is_success']}")


def _said(text: str) -> Target:
    return Target(text, text)


TARGETS: Mapping[TaskName, Callable[[Step, Space, Screen], Target | None]] = {
    "groundui": _point_text,
    "idm-single": _letter,
    "idm-multiple": _letters,
    "criticbench": _truth,
}
"""By benchmark: the answer to a step, with coordinates in a unit, on a screenshot of that size.

None where the row has no usable target."""


SPACES: tuple[Space, ...] = ("rel", "px", "norm1000")
READINGS: tuple[Reading, ...] = ("paper", "release")
_SAID: Mapping[TaskName, tuple[str, str]] = {
    "groundui": (
        "GroundUI",
        "screenshots of web, desktop and mobile; the point that an instruction means",
    ),
    "idm-single": ("IDM-Single", "pairs of screenshots; the action between them"),
    "idm-multiple": ("IDM-Multiple", "screenshots in a row; the actions between them"),
    "criticbench": ("CriticBench", "trajectories of screenshots; whether they succeeded"),
}
"""By benchmark: its title, and what its data hold."""


class AgentStudio(Benchmark):
    """One of the four benchmarks of AgentStudio.

    Args:
        name: which one.
        options: of its prompt, and `coordinates` of GroundUI; unknown ones are a `UsageError`.
    """

    detailed_actions = False
    tags = loader.TAGS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._task: TaskName = next(known for known in TASKS if known == name)
        self.title, self.holds = _SAID[self._task]
        self.roles = loader.ROLES.get(self._task)
        self.subsets = (*PLATFORMS, *loader.FAMILIES[self._task])
        self.baselines = NAMES[self._task]
        self.tables = (TABLES[self._task],)
        points: Mapping[str, Sequence[str]] = {"coordinates": SPACES} if name == "groundui" else {}
        self.allowed = {**OPTIONS[self._task], **points}
        self.prompted_space = SPACES[0] if points else None
        super().__init__(name, options)
        self._space = next(
            space for space in SPACES if space == self.options.get("coordinates", SPACES[0])
        )
        self._prompt = Prompt(self._task, self.options)
        self.prompt_hash = self._prompt.hash
        # The released evaluator knows [0, 1] and, for one model, pixels.
        readings = READINGS[:1] if self._space == "norm1000" else READINGS
        profiles = [self._profile(reading) for reading in readings]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def _profile(self, reading: Reading) -> Profile:
        if self._task == "groundui":
            return PointProfile(reading, self._space)
        kinds: Mapping[str, Callable[[Reading], Profile]] = {
            "idm-single": LetterProfile,
            "idm-multiple": LettersProfile,
            "criticbench": CriticProfile,
        }
        return kinds[self._task](reading)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations."""
        wanted = self.options.get("instructions")
        instructions: Instructions = "raw" if wanted == "raw" else "recaptioned"
        return loader.load(
            data, self._task, instructions=instructions, check_media=check_media, strict=strict
        )

    def detect(self, data: Path) -> bool:
        """Whether the first row of a file has the benchmark's columns."""
        return recognises(data, self._task)

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over the annotations."""
        return find(data, self._task).fingerprint()

    def named(self, step: Step) -> Step:
        """The step with its group: its page or its recording."""
        return loader.named(step)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step."""
        return self._prompt.conversation(step)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The row's point, letters or truth value; None where it has no usable one."""
        return TARGETS[self._task](step, space or self._space, size or step.screen)

    @property
    def published(self) -> Published:
        """What the paper and its release print."""
        return published(self.name)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(self._task, name, steps, space=self._space, options=options)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why a verdict is what it is, and what can be drawn of it."""
        judge = self.profiles[profile]
        if self.name == "groundui":
            release = profile == "agentstudio-release"
            return ground(step, verdict, judge, is_release=release, space=self._space)
        if self.name == "idm-single":
            return single(step, verdict, judge)
        return (multiple if self.name == "idm-multiple" else critic)(step, verdict, judge)
