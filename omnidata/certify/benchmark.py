"""The probes as a benchmark, so they are asked like any other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Box, Point, Space
from omnidata.certify.exhibits import Exhibits
from omnidata.certify.probes import Probe, Question, make_probes
from omnidata.jsontext import hash_of
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    History,
    Note,
    ParsedAnswer,
    Receipt,
    Rule,
    Values,
)
from omnidata.tasks.pointing import PointSpeech, parse_place
from omnidata.tasks.points import UNITS
from omnidata.tasks.totals import RowTotals
from omnidata.types import Conversation, LoadedDataset, Modality, Step, Target

NAME: Final = "certify"
_SQUARE: Final = "the red square"
_REACH: Final = 0.01
"""Half the side of a target's box, as a share of the picture's shorter side."""


class _Right(Rule[Any]):
    """The answer is right."""

    name = "certify"
    totals = RowTotals(by={"probe": ()})

    def judge(self, step: Step, parsed: ParsedAnswer[Any] | None) -> Values:
        return (parsed is not None and parsed.record.get("said") == step.source["right"],)


class _Speech(PointSpeech):
    def question_kind(self, step: Step) -> Any:
        return self.asked if step.action else None


class Probes(Benchmark):
    """Questions with known answers.

    Args:
        options: `coordinates`, the unit of places.
    """

    card = Card(title="Probes", tags=("probe",), roles=None)
    allowed: Mapping[str, Sequence[str]] = {"coordinates": ("px", "norm1000", "rel")}
    rules = (_Right(),)
    baselines = ("oracle",)

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(NAME, options)
        self.space: Space = self.options["coordinates"]  # type: ignore[assignment]  # of `allowed`
        self.place = (
            "The picture shows a red square. Where is its centre? Answer with one point, as "
            f"[x, y] and nothing else. {UNITS[self.space]} x goes to the right, y goes down."
        )
        self.prompt_hash = hash_of(self.place)
        self.speech = _Speech(self.space)
        self.probes: Mapping[str, Probe] = {}

    def draw(self, folder: Path, kinds: Collection[Modality]) -> LoadedDataset:
        """Draw the media of probes of some modalities, and return their questions as steps."""
        folder.mkdir(parents=True, exist_ok=True)
        made = make_probes(Exhibits(folder.resolve()), kinds, place=self.place)
        self.probes = {probe.name: probe for probe in made}
        steps = [
            self._step(probe, number, question)
            for probe in made
            for number, question in enumerate(probe.questions)
        ]
        ids = [step.sample_id for step in steps]
        return LoadedDataset(
            NAME, folder, steps, [], 0, hash_of([self.place, *ids]), ids, ("probe",), {}
        )

    def _step(self, probe: Probe, number: int, question: Question) -> Step:
        media = [part.media for message in question.messages for part in message.parts]
        shown = [ref for ref in media if ref]
        action = None
        if question.at:
            (x, y), (width, height) = question.at, question.size
            reach = _REACH * min(question.size)
            x, y = x * width, y * height
            action = Action("tap", (Box(x - reach, y - reach, x + reach, y + reach, "px"),))
        roles = {"image": "screenshot", "video": "video", "audio": "audio"}
        return Step(
            sample_id=f"{probe.name}/{number}",
            episode_id=f"{probe.name}/{number}",
            step_index=0,
            num_steps=1,
            instruction=_SQUARE if question.at else "",
            screen=question.size,
            media={roles[ref.kind]: ref for ref in shown},
            history=(),
            history_screens=(),
            action=action,
            tags={"probe": probe.name},
            source={"right": question.right},
        )

    def question_of(self, step: Step) -> tuple[Probe, Question]:
        """Return the probe and the question of a step."""
        probe = self.probes[step.tags["probe"]]
        return probe, probe.questions[int(step.sample_id.rpartition("/")[2])]

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        """Read no files: `draw` makes the steps."""
        return ()

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the conversation of a question."""
        return self.question_of(step)[1].messages

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        """Read a place, or the answer with the probe's own reader."""
        if step.action:
            return parse_place(text, step, receipt, reading="fixed", space=self.space)
        return ParsedAnswer(said := self.question_of(step)[0].read(text), {"said": said})

    def target(self, step: Step, *, space: Space | None = None, size: Any = None) -> Target | None:
        """Return the right answer."""
        question = self.question_of(step)[1]
        if question.at is None:
            return Target(question.right, question.right)
        sides = {"px": size or question.size, "norm1000": (1000, 1000), "rel": (1, 1)}
        width, height = sides[space or self.space]
        point = Point(question.at[0] * width, question.at[1] * height, space or self.space)
        text = f"[{point.x:g}, {point.y:g}]"
        return Target(text, text)
