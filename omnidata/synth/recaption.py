"""Write new instructions for elements of screenshots with any model, and keep verified ones.

As for GroundUI (AgentStudio, appendix C.2), a model sees each screenshot with its element framed
and writes the instruction. Then it, or another model, locates the element by the new instruction on
the screenshot without the frame. Instructions that do not lead back to the element are dropped. See
`docs/recaption.md`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnidata import types
from omnidata.actions import Box, Screen, Space
from omnidata.errors import DataError, MediaError, UnansweredError, UsageError, plural
from omnidata.media import image, png, resolve
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.registry import is_ours, working
from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import UNLIMITED, Count
from omnidata.run.journal import TRANSIENT
from omnidata.storage import atomic_write, file_name, wrap_os_error
from omnidata.synth.annotate import ModelSettings, ask
from omnidata.synth.derive import (
    PICTURES,
    Album,
    RowsStaging,
    derivation_of,
    platform_of,
    write_rows,
)
from omnidata.synth.folder import run_folder
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Note,
    ParsedAnswer,
    Receipt,
    Rule,
    UnreadError,
    Values,
)
from omnidata.tasks.derivation import Element
from omnidata.tasks.explaining import SCREENSHOT
from omnidata.tasks.totals import Column, RowTotals
from omnidata.types import Adapter, LoadedDataset, MediaRef, Progress, Step

MARKED: Final = "marked"
"""The folder of the screenshots with their elements framed."""
_OLD: Final = "before:"
"""Prefix of the sample ids of rows with their old instruction."""
_LONGEST: Final = 300
_FRAME: Final = ((255, 255, 255), (230, 0, 0))
"""Colours of the frame, from the outside to the inside."""

_ASK: Final = """\
A red frame marks one element of this screenshot. Write the instruction that tells somebody who \
sees the screenshot without the frame to click this element and no other: one short sentence that \
begins with a verb and names the element by its text or its look, and by its place only where \
others look the same. Do not mention the frame. Answer with the instruction alone."""


# The question: write an instruction.


def read_caption(text: str) -> str | None:
    r"""Return the instruction in an answer; None if the answer is not one line.

    Examples:
        >>> read_caption('Instruction: "Open the settings."')
        'Open the settings.'
        >>> read_caption("Here it is:\n\nOpen the settings.") is None
        True
    """
    said = text.strip().removeprefix("Instruction:").strip()
    if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'" and said.count(said[0]) == 2:
        said = said[1:-1].strip()
    return said if 0 < len(said) <= _LONGEST and len(said.splitlines()) == 1 else None


class Written(Rule[str]):
    """Accepts any instruction; the grounding decides whether it is good."""

    name = "written"
    totals = RowTotals([Column("score", "score")])

    def judge(self, step: Step, parsed: ParsedAnswer[str] | None) -> Values:
        """Return whether there is an instruction."""
        return (parsed is not None,)


class Captions(Benchmark):
    """The question for an instruction, as a benchmark."""

    card = Card(
        title="recaption",
        holds="screenshots with an element framed; the instruction that means it",
    )
    question = _ASK
    rules = (Written(),)
    baselines: Sequence[str] = ("oracle",)

    def __init__(self) -> None:
        super().__init__("recaption", {})

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        """Raise an error: no files of questions exist.

        Raises:
            UsageError: always.
        """
        raise UsageError("questions about elements are not loaded", where=str(data))

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[str]:
        """Read the instruction.

        Raises:
            UnreadError: the answer is not one line.
        """
        caption = read_caption(text)
        if caption is None:
            raise UnreadError("the answer is not one line")
        return ParsedAnswer(caption, {"instruction": caption})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> types.Target | None:
        """Return the data's own instruction: `baseline:oracle` changes nothing."""
        return types.Target(step.instruction, step.instruction)


def writer_for(task: str) -> str:
    """Return the task that writes rows for elements of a task: itself, or a general one.

    Raises:
        UsageError: no installed task writes such rows.
    """
    takes = [n for n, each in working() if each.derivation and each.derivation.of == "target"]
    if not takes:
        raise UsageError("no task writes rows of elements", expected="one with a `derivation`")
    return min(takes, key=lambda name: (name != task, not is_ours(name)))


# The elements of any data.


class _Target(NamedTuple):
    step: Step
    box: Box  # in pixels of the step's screen
    shot: MediaRef


def _target(task: Asking, step: Step) -> _Target | str:
    """Return the step with the one box to click, or the reason why it has none."""
    if step.action and (step.action.kind, step.action.button, step.action.count) != (
        "tap", "left", 1,
    ):  # fmt: skip
        return "no click"
    shot = step.media.get(SCREENSHOT)
    if shot is None or min(step.screen) < 1:
        return "no screenshot"
    if shot.cell is None:
        try:
            resolve(shot)
        except MediaError:
            return "no screenshot"
    drawn = task.explanation(step, None, "", profile=task.default_profile).overlays.get(SCREENSHOT)
    boxes = [region for region in (drawn.target if drawn else ()) if isinstance(region, Box)]
    if not drawn or len(boxes) != 1 or len(drawn.target) != 1:
        return "no target that is one box"
    (box,) = boxes
    if box.left >= box.right or box.top >= box.bottom:
        return "a target without an area"
    return _Target(step, box, shot)


def draw_frame(shot: MediaRef, box: Box, screen: Screen) -> bytes:
    """Return the screenshot as PNG, with a frame around the box.

    Args:
        shot: the screenshot.
        box: in pixels of the screen.
        screen: its size, which may differ from that of the picture.

    Raises:
        MediaError: the screenshot cannot be read.
    """
    import numpy as np
    from PIL import Image, ImageDraw

    picture = Image.fromarray(image(shot).pixels)
    across, down = (side / of for side, of in zip(picture.size, screen, strict=True))
    line = max(2, round(min(picture.size) / 200))
    draw = ImageDraw.Draw(picture)
    for number, colour in enumerate(_FRAME):
        edge = line * (len(_FRAME) - number)  # outside, so that the element stays visible
        corners = (
            box.left * across - edge, box.top * down - edge,
            box.right * across + edge, box.bottom * down + edge,
        )  # fmt: skip
        draw.rectangle(corners, outline=colour, width=line)
    return png(np.asarray(picture))


# Asking, and the report.


@dataclass(frozen=True, slots=True)
class Asked:
    """A model, and the function that creates it for the questions of a task.

    Attributes:
        name: its SPEC.
        made: creates it, here or by a recipe on the workers of a cluster.
        options: as given with `-M key=value`.
    """

    name: str
    made: Callable[[Asking, Sequence[Step]], Adapter | Recipe]
    options: Mapping[str, str] = field(default_factory=dict)


class CaptionsStaging(RowsStaging):
    """The staging folder of rows with new instructions."""

    contents = RowsStaging.contents | {MARKED}


def recaption(
    task: Asking,
    source: LoadedDataset,
    rows_of: Asking,
    out: Path,
    *,
    author: Asked,
    grounder: Asked,
    limits: Limits = UNLIMITED,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
    count: Count | None = None,
) -> Mapping[str, Any]:
    """Write rows with new instructions that lead the grounder back to their elements.

    The same call resumes after an interruption; answered questions are not repeated.

    Args:
        task: of the data, with its options.
        source: the data.
        rows_of: the task whose `derivation` writes the rows, and whose question and profile check
            them.
        out: a new or empty folder, or the result of the same call. Answers are beside it, in
            `run_folder(out)`: `captions`, and `by-` with the grounder's name.
        author: the model that writes.
        grounder: the model that locates the element, by the old and by the new instruction.
        limits: of rate, time and cost.
        cluster: the machines that ask models with a recipe; None for this one.
        progress: called during a run.
        count: see `omnidata.run.evaluate.evaluate`; called for each run.

    Returns:
        The report, as in `rows.json`. If no instruction leads back, `files` is empty and nothing
        is written.

    Raises:
        DataError: the data have no element, or `out` holds rows of other data or settings.
        MediaError: a screenshot cannot be copied.
        UnansweredError: a question got no answer.
        UsageError: `out` has other content, or a model cannot be asked.
    """
    staging = CaptionsStaging(
        out,
        task,
        source,
        [rows_of],
        model=author.name,
        model_options=dict(author.options),
        prompt_hash=Captions().prompt_hash,
    )
    if report := staging.earlier_report():
        _check_grounder(report, grounder, out)
        return report
    targets, left_out = _find_targets(task, source)
    derivation, captions = derivation_of(rows_of), Asking(Captions())
    runs = _Runs(run_folder(out), limits, cluster, progress, count)
    # Created before the folder, so that a model that fails leaves nothing behind.
    writer = author.made(captions, [target.step for target in targets])
    with staging, wrap_os_error(staging.path):
        targets, questions = _questions(targets, left_out, source, staging.path)
        answers = runs.ask("captions", captions, questions, author, writer) if targets else []
        album = Album()
        about = {"model": author.name, "grounder": grounder.name}
        elements, rejected = _collect_captions(task, targets, answers, about, album)
        album.write(staging.path / PICTURES, progress or (lambda done, total: None))
        file = staging.path / derivation.file
        before, after = _ground(rows_of, file, elements, grounder, runs) if elements else ([], [])
        kept = [element for element, hit in zip(elements, after, strict=True) if hit]
        lost = [element for element, hit in zip(elements, after, strict=True) if not hit]
        report = {
            "files": {derivation.file: rows_of.name} if kept else {},
            "grounder": grounder.name,
            "elements": {
                "all": len(targets),
                "captioned": len(elements),
                "kept": len(kept),
                "left_out": dict(left_out.most_common()),
            },
            "grounded": {
                "before": share(sum(before), len(before)),
                "after": share(sum(after), len(after)),
            },
            "rejected": rejected
            + [
                _rejection(e.about["recaption"]["of"], e.raw, e.instruction, "not found again")
                for e in lost
            ],
        }
        if kept:
            write_rows(file, map(derivation.row, kept))
            staging.publish(report)
    return {**staging.plan, **report}


def _check_grounder(report: Mapping[str, Any], grounder: Asked, out: Path) -> None:
    if report["grounder"] != grounder.name:
        raise DataError(
            f"its rows were grounded by {report['grounder']}",
            where=str(out),
            expected=f"rows that {grounder.name} has grounded, or a new folder",
            remedy="give another OUT",
        )


def _find_targets(task: Asking, source: LoadedDataset) -> tuple[list[_Target], Counter[str]]:
    """Return the elements, and the number of other steps by reason."""
    found = [_target(task, step) for step in source.steps]
    targets = [each for each in found if isinstance(each, _Target)]
    left_out = Counter(each for each in found if isinstance(each, str))
    if not targets:
        raise DataError(
            f"no element can be framed: {', '.join(left_out) or 'there is no step'}",
            where=str(source.root),
            expected="steps whose target is one box on their screenshot",
        )
    return targets, left_out


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs beside the rows, which share limits and machines."""

    folder: Path
    limits: Limits
    cluster: Cluster | None
    progress: Progress | None
    count: Count | None

    def ask(
        self, name: str, task: Asking, asked: LoadedDataset, who: Asked, model: Adapter | Recipe
    ) -> list[Prediction]:
        """Return the answer to each step.

        Raises:
            UnansweredError: there is not one for each.
        """
        settings = ModelSettings(
            model,
            options=who.options,
            limits=self.limits,
            cluster=self.cluster if isinstance(model, Recipe) else None,
            progress=self.progress,
            count=self.count,
        )
        _, lines = ask(task, asked, self.folder / name, settings, must_judge=True)
        found = [line for step in asked.steps if (line := lines.get(step.sample_id))]
        final = [line for line in found if line.delivery not in TRANSIENT]
        if waiting := len(asked.steps) - len(final):
            raise UnansweredError(
                f"{plural(waiting, 'question')} got no answer",
                where=str(self.folder / name),
                expected="an answer to every question; nothing is written until then",
                remedy="repeat the command; it asks only for missing answers",
            )
        return final


def _questions(
    targets: Sequence[_Target], left_out: Counter[str], source: LoadedDataset, folder: Path
) -> tuple[list[_Target], LoadedDataset]:
    marked = folder / MARKED
    marked.mkdir(exist_ok=True)
    kept, steps = [], []
    for number, target in enumerate(targets):
        path = marked / f"{number:06}.png"
        if not path.exists():
            try:
                drawn = draw_frame(target.shot, target.box, target.step.screen)
            except MediaError:
                left_out["a screenshot that cannot be read"] += 1
                continue
            with atomic_write(path, durable=False) as file:
                file.write(drawn)
        kept.append(target)
        shown = MediaRef("image", folder, f"{MARKED}/{path.name}")
        steps.append(
            replace(
                target.step,
                media={SCREENSHOT: shown},
                history=(),
                history_screens=(),
                step_index=0,
                num_steps=1,
                episode=target.step.sample_id,
            )
        )
    return kept, replace(source, steps=steps, roles={SCREENSHOT: "image"}, findings=[])


def _collect_captions(
    task: Asking,
    targets: Sequence[_Target],
    answers: Sequence[Prediction],
    about: Mapping[str, str],
    album: Album,
) -> tuple[list[Element], list[Mapping[str, Any]]]:
    places = {target.shot: number for number, target in enumerate(targets)}
    elements: list[Element] = []
    rejected: list[Mapping[str, Any]] = []
    for target, line in zip(targets, answers, strict=True):
        step, text = target.step, line.output or ""
        said = read_caption(text) if line.delivery == "ok" else None
        if said is None:
            why = "not one line" if line.delivery == "ok" else line.delivery
            rejected.append(_rejection(step.sample_id, step.instruction, text, why))
            continue
        element = Element(
            step.group,
            step.tags.get("source", task.name),
            platform_of(task, step),
            album.name(places[target.shot], 0, target.shot),
            step.screen,
            target.box,
            said,
            step.instruction,
            {"recaption": {"of": step.sample_id, **about}},
        )
        elements.append(element)
    return elements, rejected


def _ground(
    rows_of: Asking, file: Path, elements: Sequence[Element], grounder: Asked, runs: _Runs
) -> tuple[list[bool], list[bool]]:
    """Return which elements are found by the old instruction, and which by the new one."""
    write_rows(file, map(derivation_of(rows_of).row, elements))
    rows = rows_of.load(file)
    both = _with_old(rows, elements)
    finder = grounder.made(rows_of, both.steps)
    lines = runs.ask(f"by-{file_name(grounder.name)}", rows_of, both, grounder, finder)
    profile = rows_of.profiles[rows_of.default_profile]
    hits = {
        step.sample_id
        for step, line in zip(both.steps, lines, strict=True)
        if line.delivery == "ok" and profile.judge(step, line.output or "", line.receipt).values[0]
    }
    before = [f"{_OLD}{row}" in hits for row in rows.row_ids]
    return before, [row in hits for row in rows.row_ids]


def _with_old(rows: LoadedDataset, elements: Sequence[Element]) -> LoadedDataset:
    """Return the rows, followed by the same with their old instruction."""
    raw = dict(zip(rows.row_ids, (element.raw for element in elements), strict=True))
    old = [
        replace(step, sample_id=f"{_OLD}{step.sample_id}", instruction=raw[step.sample_id])
        for step in rows.steps
    ]
    fingerprint = hashlib.sha256(f"{_OLD}{rows.fingerprint}".encode()).hexdigest()
    return replace(rows, steps=[*rows.steps, *old], fingerprint=fingerprint)


def _rejection(name: str, raw: str, said: str, why: str) -> Mapping[str, Any]:
    return {"of": name, "raw": raw, "said": said, "why": why}
