"""The tasks `step-critic` and `trajectory-critic`: were the answers of an agent right?

Ours. A row is made of a run (`omnidata synth criticbench --run`): what the agent was shown, what it
answered, and what the profile of its task said of that. Right is the positive class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec
import numpy as np

from omnidata.actions import Action, Screen, Space
from omnidata.errors import Finding
from omnidata.loaders.files import Look, RowFiles
from omnidata.loaders.load import Note, RowContext, about
from omnidata.loaders.row_files import Line, head_of
from omnidata.metrics.calibration import calibration
from omnidata.metrics.classification import RATES
from omnidata.metrics.paired import Unit
from omnidata.tasks.base import Benchmark
from omnidata.tasks.derivation import Derivation, Judged
from omnidata.tasks.explaining import explain
from omnidata.tasks.points import answers
from omnidata.tasks.totals import Mask
from omnidata.tasks.yes_no import YesNoProfile
from omnidata.types import (
    CAUSES,
    Conversation,
    Explanation,
    MediaRef,
    Message,
    Modality,
    Part,
    Profile,
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
    r"""What the last `Answer:` with a yes or a no says; None = unread.

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
    """The last `Confidence:`, in [0, 1]; None where there is none, or on another scale.

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


class CriticProfile(YesNoProfile):
    """Accuracy, precision, recall and F1 of right answers, and how far confidences can be trusted.

    A judgement without a confidence counts in the rates, and not in the calibration.
    """

    name = "critic"
    source = "ours; calibration as in Guo et al. (2017) and Geifman et al. (2019)"
    values = ("score", "said", "confidence", "p_right")
    columns: Mapping[str, Unit] = dict.fromkeys((*RATES, "ece", "aurc"), "share")
    lower_is_better = ("ece", "aurc")
    by: Mapping[str, Sequence[str]] = {"source": (), "model": (), "cause": tuple(CAUSES)}

    def truth(self, step: Step) -> bool:
        return bool(step.source["right"])

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read yes or no, and the confidence in it.

        Returns:
            `p_right` is the probability that the answers are right: the confidence in a yes, the
            rest in a no; 1 or 0 where there is no confidence.
        """
        said = read_judgement(text)
        if said is None:
            return Verdict(
                "unparsed", (False, None, None, None), None, "no yes or no after Answer:"
            )
        sure = read_confidence(text)
        certain = 1.0 if sure is None else sure
        values = (said == self.truth(step), said, sure, certain if said else 1 - certain)
        return Verdict("ok", values, {"right": said})

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table with `calibration`: reliability diagram and selective accuracy."""
        everywhere = np.ones(len(steps), dtype=np.bool_)
        return {**super().total(steps, rows), "calibration": _calibration(rows, everywhere)}

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        table = super()._table(steps, rows, mask)
        found = _calibration(rows, mask)
        told = {name: found[name] for name in ("ece", "aurc")}
        return {**table, **told, "ci95": {**table["ci95"], **dict.fromkeys(told)}}


def _calibration(rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
    sure = rows.values["confidence"]
    told = mask & ~np.isnan(sure)
    return calibration(sure[told], rows.values["score"][told] == 1)


# The rows.


class _Medium(msgspec.Struct):
    kind: Modality
    path: str


class _Shown(msgspec.Struct):
    medium: str


class _Turn(msgspec.Struct):
    shown: list[str | _Shown]
    answer: str
    size: tuple[int, int] | None = None


class _Row(msgspec.Struct):
    sample_id: Annotated[str, msgspec.Meta(min_length=1)]
    asks: str
    instruction: str
    group: str
    source: str
    model: str
    right: bool
    screen: tuple[int, int]
    media: dict[str, _Medium]
    turns: Annotated[list[_Turn], msgspec.Meta(min_length=1)]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class _Looking:
    """A picklable predicate, because tasks are pickled."""

    name: Name

    def __call__(self, path: Path) -> Look:
        head = head_of(path)
        asks = re.search(rb'"asks"\s*:\s*"([a-z-]+)"', head)
        known = asks and asks[1].decode() == self.name and b'"turns"' in head
        return "known" if known else "other"


def _row(name: Name) -> Callable[[Judged], dict[str, Any]]:
    def make_row(judged: Judged) -> dict[str, Any]:
        return {
            "sample_id": judged.name,
            "asks": name,
            "instruction": judged.instruction,
            "group": judged.group,
            "source": judged.source,
            "model": judged.model,
            "right": judged.right,
            "screen": list(judged.screen),
            "media": {
                role: {"kind": kind, "path": path} for role, (kind, path) in judged.media.items()
            },
            "turns": [
                {
                    "shown": [
                        part.text if part.kind == "text" else {"medium": part.role}
                        for part in turn.shown
                    ],
                    "answer": turn.answer,
                    **({"size": list(turn.size)} if turn.size else {}),
                }
                for turn in judged.turns
            ],
            **judged.about,
        }

    return make_row


class _Truth(TypedDict):
    right: bool


class Critic(Benchmark):
    """Whether an agent's answers are right, as the profile of its task has it.

    Args:
        name: "step-critic" for one answer, "trajectory-critic" for those of an episode.
        options: there are none.
    """

    baselines = ("oracle", "always-yes", "always-no", "majority")
    tags = ("source", "model", "cause")
    subsets = tuple(CAUSES)
    detailed_actions = False
    parsed_type = _Truth
    unpublished = "made from your own runs: omnidata synth criticbench DATA OUT --run RUN"

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._task: Name = next(known for known in NAMES if known == name)
        alone = self._task == "step-critic"
        self.title = "Step critic" if alone else "Trajectory critic"
        self.holds = (
            "judge whether an agent's answer to a step is right"
            if alone
            else "judge whether all answers of an agent in an episode are right"
        )
        self.question = "\n".join(
            (_BEGINS[self._task], _STEP, _ANSWERED, _SIZED, _ASKS[self._task], _HOW)
        )
        self.files: RowFiles = RowFiles(
            f'JSON lines of "asks": "{name}", with turns, media and right', _Looking(self._task)
        )
        self.derivation = Derivation(
            "criticbench",
            "answer" if alone else "answers",
            "steps.jsonl" if alone else "trajectories.jsonl",
            _row(self._task),
        )
        profile = CriticProfile()
        self.profiles: Mapping[str, Profile] = {profile.name: profile}
        super().__init__(name, options)

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterator[Step | None]:
        """Read the rows; media lie beside the file."""
        for line in self.files.rows(self.files.find(data), note):
            yield self._step(line, note)

    def _step(self, line: Line, note: Note) -> Step | None:
        place = RowContext(line.where, note)
        try:
            row = msgspec.convert(line.row, _Row)
        except msgspec.ValidationError as error:
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

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """One message: what the agent was shown and what it answered, turn by turn; the question.

        `predicted` is not used.
        """
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

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target:
        return _answer(right=step.source["right"])

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return a constant, or as `Benchmark.policy`."""
        if name in ("always-yes", "always-no"):
            text = _answer(right=name == "always-yes").text
            return lambda step: text
        return super().policy(name, steps)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:

        def sentence(parsed: Mapping[str, Any], right: bool) -> str:
            return f"the critic says {_word(parsed['right'])}, the profile {_word(truth)}"

        truth = step.source["right"]
        return explain(
            verdict,
            self.profiles[profile],
            sentence,
            target_label=_word(truth),
            answer_label=lambda parsed: _word(parsed["right"]),
            overlays=dict,
            noun="judgement",
        )


def _answer(*, right: bool) -> Target:
    text = f"Answer: {'Yes' if right else 'No'}\nConfidence: 1.00"
    return Target(text, text)


def _word(right: bool) -> str:
    return "right" if right else "wrong"
