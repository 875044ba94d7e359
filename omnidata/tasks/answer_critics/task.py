"""The tasks `step-critic` and `trajectory-critic`: were the answers of an agent right?

Ours. A row is made of a run (`omnidata synth criticbench --run`): the agent's prompts and answers,
and the verdicts of its task's profile. Right is the positive class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypedDict

import msgspec
import numpy as np

from omnidata.actions import Screen, Space
from omnidata.dialects import UnreadError
from omnidata.loaders.files import RowFiles, look_for
from omnidata.loaders.load import Note, RowContext, about
from omnidata.loaders.row_files import Line
from omnidata.metrics.calibration import calibration
from omnidata.metrics.classification import RATES
from omnidata.metrics.paired import Unit
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    History,
    ParsedAnswer,
    Receipt,
    Rule,
    Values,
)
from omnidata.tasks.derivation import Derivation, Judged
from omnidata.tasks.explaining import explain
from omnidata.tasks.points import answers
from omnidata.tasks.profile import Profile
from omnidata.tasks.totals import Mask, YesNoTotals
from omnidata.types import (
    CAUSES,
    Conversation,
    Explanation,
    MediaRef,
    Message,
    Modality,
    Part,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

Name = Literal["step-critic", "trajectory-critic"]
NAMES: Final[tuple[Name, ...]] = ("step-critic", "trajectory-critic")

_HOW: Final = (
    "Answer in two lines and nothing else:\n"
    "Answer: Yes or No\n"
    "Confidence: how sure you are of this answer, from 0.00 to 1.00"
)
_BEGINS: Final[Mapping[Name, str]] = {
    "step-critic": "An agent works on a task on a screen, step by step. At one step this is what "
    "it was told and shown.",
    "trajectory-critic": "An agent was asked for the next action at each step of a task on a "
    "screen. Each step shows the screen of a recording in which the task is done, whatever the "
    "agent answered before.",
}
_ASKS: Final[Mapping[Name, str]] = {
    "step-critic": "Is this answer the right next action: the right kind of action, in the right "
    "place, with the right text?",
    "trajectory-critic": "Are all of its answers right: at each step the right kind of action, in "
    "the right place, with the right text?",
}
_STEP: Final = "Step {}."
_ANSWERED: Final = "The agent answered:"
_SIZED: Final = "(It was shown the screenshot in {} x {} pixels.)"

_DRESS = r"[\s*_`\"'“”‘’()\[\]]*+"
_SAID: Final = re.compile(
    rf"{_DRESS}(yes|no)(?![^\W_])(?!{_DRESS}(?:or\b|[/|]){_DRESS}(?:yes|no)\b)", re.IGNORECASE
)
_CONFIDENCE: Final = re.compile(
    rf"confidence(?<![^\W_]confidence)[\s*_`\"']*+[:=]{_DRESS}(\d++(?:\.\d++)?+|\.\d++)(?![^\W_])"
    r"[^\S\n]*+(%|per ?cent\b)?+"
    r"(?![^\S\n]*+\(?+(?:[/\\]|(?:of|out|in|to)\b|[-–±]\s*+\d|[.,]?\d|%))",
    re.IGNORECASE,
)


def read_judgement(text: str) -> bool | None:
    r"""Return whether the last `Answer:` with a yes or a no says yes; None = unread.

    Examples:
        >>> read_judgement("Answer: No? It taps the icon.\n**Answer:** yes\nConfidence: 0.9")
        True
        >>> read_judgement("Answer: Yes or No") or read_judgement("Yes")
    """
    for answer in answers(text):
        if found := _SAID.match(answer):
            return found[1].lower() == "yes"
    return None


def read_confidence(text: str) -> float | None:
    """Return the last `Confidence:`, in [0, 1]; None if there is none, or on another scale.

    Examples:
        >>> read_confidence("Confidence: 0.85"), read_confidence("**Confidence**: 85 %")
        (0.85, 0.85)
        >>> read_confidence("Confidence: 8/10") or read_confidence("Confidence: 85")
    """
    found = None
    for found in _CONFIDENCE.finditer(text):  # noqa: B007 the last one is wanted
        pass
    if found is None:
        return None
    value = float(found[1]) / (100 if found[2] else 1)
    return value if value <= 1 else None


class Judgement(NamedTuple):
    """The answer of a critic.

    Attributes:
        right: whether the agent's answers are right.
        confidence: in [0, 1]; None if the critic states none.
    """

    right: bool
    confidence: float | None


class Calibrated(YesNoTotals):
    """Accuracy, precision, recall and F1 of right answers, and the calibration of confidences.

    A judgement without a confidence counts in the rates, and not in the calibration.
    """

    values = ("score", "said", "confidence", "p_right")
    columns: Mapping[str, Unit] = dict.fromkeys((*RATES, "ece", "aurc"), "share")
    lower_is_better = ("ece", "aurc")

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table with `calibration`: reliability diagram and selective accuracy."""
        everywhere = np.ones(len(steps), dtype=np.bool_)
        return {**super().total(steps, rows), "calibration": _calibration(rows, everywhere)}

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        table = super()._table(steps, rows, mask)
        found = _calibration(rows, mask)
        areas = {name: found[name] for name in ("ece", "aurc")}
        return {**table, **areas, "ci95": {**table["ci95"], **dict.fromkeys(areas)}}


def _calibration(rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
    sure = rows.values["confidence"]
    stated = mask & ~np.isnan(sure)
    return calibration(sure[stated], rows.values["score"][stated] == 1)


def _is_right(step: Step) -> bool:
    return bool(step.source["right"])


class SameJudgement(Rule[Judgement]):
    """Compares the critic's judgement with the verdict of the task's profile."""

    name = "critic"
    source = "ours; calibration as in Guo et al. (2017) and Geifman et al. (2019)"
    totals = Calibrated(_is_right, by={"source": (), "model": (), "cause": tuple(CAUSES)})

    def judge(self, step: Step, parsed: ParsedAnswer[Judgement] | None) -> Values:
        """Compare the judgement with the row.

        Returns:
            `p_right` is the probability that the answers are right: the confidence in a yes, the
            rest in a no; 1 or 0 without a confidence.
        """
        if parsed is None:
            return (False, None, None, None)
        right, confidence = parsed.value
        certain = 1.0 if confidence is None else confidence
        p_right = certain if right else 1 - certain
        return (right == _is_right(step), right, confidence, p_right)


# The rows.


class _Medium(msgspec.Struct):
    kind: Modality
    path: str


class _Shown(msgspec.Struct):
    medium: str


class _Turn(msgspec.Struct, omit_defaults=True):
    shown: list[str | _Shown]
    answer: str
    size: tuple[int, int] | None = None


_Side = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Row(msgspec.Struct, omit_defaults=True):
    sample_id: Annotated[str, msgspec.Meta(min_length=1)]
    asks: str
    instruction: str
    group: str
    source: str
    model: str
    right: bool
    screen: tuple[_Side, _Side]
    media: dict[str, _Medium]
    turns: Annotated[list[_Turn], msgspec.Meta(min_length=1)]
    cause: str = ""


def _row(judged: Judged, *, name: Name) -> dict[str, Any]:
    row = _Row(
        sample_id=judged.name,
        asks=name,
        instruction=judged.instruction,
        group=judged.group,
        source=judged.source,
        model=judged.model,
        right=judged.right,
        screen=judged.screen,
        media={role: _Medium(kind, path) for role, (kind, path) in judged.media.items()},
        turns=[
            _Turn(
                [part.text if part.kind == "text" else _Shown(part.role) for part in turn.shown],
                turn.answer,
                turn.size,
            )
            for turn in judged.turns
        ],
    )
    return {**msgspec.to_builtins(row), **judged.about}


class _Record(TypedDict):
    right: bool


class Critic(Benchmark):
    """Whether an agent's answers are right, as the profile of its task has it.

    Args:
        name: "step-critic" for one answer, "trajectory-critic" for those of an episode.
        options: there are none.
    """

    baselines = ("oracle", "always-yes", "always-no", "majority")
    constants: Mapping[str, str] = {
        "always-yes": "Answer: Yes\nConfidence: 1.00",
        "always-no": "Answer: No\nConfidence: 1.00",
    }
    rules = (SameJudgement(),)

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._task: Name = next(known for known in NAMES if known == name)
        alone = self._task == "step-critic"
        self.card = Card(
            title="Step critic" if alone else "Trajectory critic",
            holds="judge whether an agent's answer to a step is right"
            if alone
            else "judge whether all answers of an agent in an episode are right",
            unpublished="made from your own runs: omnidata synth criticbench DATA OUT --run RUN",
            tags=("source", "model", "cause"),
            subsets=tuple(CAUSES),
            detailed_actions=False,
            answer_type=_Record,
        )
        self.question = "\n".join(
            (_BEGINS[self._task], _STEP, _ANSWERED, _SIZED, _ASKS[self._task], _HOW)
        )
        self.files: RowFiles = RowFiles(
            f'JSON lines of "asks": "{name}", with turns, media and right',
            look_for(("turns", re.compile(rb'"asks"\s*:\s*"%s"' % name.encode()))),
        )
        self.derivation = Derivation(
            "criticbench",
            "answer" if alone else "answers",
            "steps.jsonl" if alone else "trajectories.jsonl",
            partial(_row, name=self._task),
        )
        super().__init__(name, options)

    def steps(self, data: Path, note: Note) -> Iterator[Step | None]:
        """Read the rows; media lie beside the file."""
        for line in self.files.rows(self.files.find(data), note):
            yield self._step(line, note)

    def _step(self, line: Line, note: Note) -> Step | None:
        place = RowContext(line.where, note)
        try:
            row = msgspec.convert(line.row, _Row)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # of half a character
            place.refuse("row-unusable", str(error), self.files.columns)
            return None
        place = RowContext(line.where, about(note, row.sample_id))
        parts = (part for turn in row.turns for part in turn.shown)
        shown = {part.medium for part in parts if isinstance(part, _Shown)}
        if unknown := sorted(shown - row.media.keys()):
            place.refuse(
                "medium-unknown", f"media has no {unknown[0]!r:.80}", "each medium that turns show"
            )
            return None
        if row.asks != self._task:
            place.refuse("row-unusable", f"it asks {row.asks!r:.80}", f"rows that ask {self._task}")
            return None
        return Step(
            sample_id=row.sample_id,
            episode_id=row.sample_id,
            step_index=0,
            num_steps=1,
            instruction=row.instruction,
            screen=row.screen,
            media={
                role: MediaRef(medium.kind, line.path.parent, medium.path)
                for role, medium in row.media.items()
            },
            history=(),
            history_screens=(),
            action=None,
            tags={
                "source": row.source,
                "model": row.model,
                **({"cause": row.cause} if row.cause else {}),
            },
            source=dict(line.row),
            episode=row.sample_id,
            group=row.group,
        )

    def prompt(self, step: Step, history: History) -> Conversation:
        alone = self._task == "step-critic"
        parts = [Part("text", _BEGINS[self._task])]
        for number, turn in enumerate(step.source["turns"], 1):
            if not alone:
                parts.append(Part("text", _STEP.format(number)))
            for shown in turn["shown"]:
                if isinstance(shown, str):
                    parts.append(Part("text", shown))
                elif ref := step.media.get(shown["medium"]):
                    parts.append(Part(ref.kind, media=ref, role=shown["medium"]))
            size = turn.get("size")
            sized = f"\n{_SIZED.format(*size)}" if size else ""
            parts.append(Part("text", f"{_ANSWERED}\n{turn['answer']}{sized}"))
        parts.append(Part("text", f"{_ASKS[self._task]}\n{_HOW}"))
        return (Message("user", tuple(parts)),)

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Judgement]:
        right = read_judgement(text)
        if right is None:
            raise UnreadError("no yes or no after Answer:")
        return ParsedAnswer(Judgement(right, read_confidence(text)), {"right": right})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target:
        text = self.constants["always-yes" if _is_right(step) else "always-no"]
        return Target(text, text)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Judgement] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        truth = _word(_is_right(step))
        said = _word(parsed is not None and parsed.value.right)
        return explain(
            verdict,
            profile,
            lambda record, right: f"the critic says {said}, the profile {truth}",
            target_label=truth,
            answer_label=lambda record: said,
            overlays=dict,
            noun="judgement",
        )


def _word(right: bool) -> str:
    return "right" if right else "wrong"
