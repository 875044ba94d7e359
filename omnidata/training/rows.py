"""Convert steps to rows of a trainer; each is checked by the task's own rules first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from omnidata import registry
from omnidata.actions import Screen
from omnidata.adapters.hf.options import CONTROLS, TOKENS
from omnidata.adapters.media_budget import Capabilities, parts_of
from omnidata.adapters.render import render_messages
from omnidata.errors import Finding, MediaError, UsageError
from omnidata.run.adapter_contract import fewer_modalities
from omnidata.run.selection import SHARES, Split
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import Resizing, answer_space, sent_size
from omnidata.tasks.marks import deciding
from omnidata.training.examples import refuse_predictions, target_shown
from omnidata.training.formats import (
    Content,
    Format,
    Objects,
    PreferenceFormat,
    PromptFormat,
    Row,
    format_names,
    get_format,
)
from omnidata.training.formats.base import ALL, Piece
from omnidata.training.media_store import Broken, File, Kept, Media, Sizing, Wanted
from omnidata.training.reward_recipes import RecipeName
from omnidata.training.rewards import TERMS, check_terms
from omnidata.types import Conversation, LoadedDataset, MediaRef, Modality, Part, Step, Target

# The settings of an export, and the refusal of settings that cannot be.

_REMEDIES: Mapping[Modality, str] = {
    "video": "--video frames to give pictures in place of clips",
    "audio": "--drop-audio to leave sound out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of an export.

    Attributes:
        format: name of the rows' format (see `omnidata.training.formats`).
        video: "file" keeps clips, "frames" exports some of their frames as pictures.
        frames: their number, evenly spread from the first to the last, each after its time.
        drop_audio: leave sound, and any mention of it, out of the prompts.
        sizing: of pictures and frames.
        objects: of ms-swift: write places into a column of their own, in this unit.
        shares: of the splits.
        copy: copy media files even if a hard link is possible.
        reward: the published recipe of the reward of prompts; None for the terms of `Reward`.
    """

    format: str
    video: Literal["file", "frames"] = "file"
    frames: int = 4
    drop_audio: bool = False
    sizing: Sizing = field(default_factory=Sizing)
    objects: Objects | None = None
    shares: Mapping[Split, float] = field(default_factory=lambda: SHARES)
    copy: bool = False
    reward: RecipeName | None = None

    @property
    def rows(self) -> Format:
        """The format of the rows.

        Raises:
            UsageError: there is no such format, or it cannot store `objects`.
        """
        found = get_format(self.format)
        return found.with_objects(self.objects) if self.objects else found

    @property
    def capabilities(self) -> Capabilities:
        """The media that prompts may have, as capabilities of a model."""
        accepts: set[Modality] = set(self.rows.holds)
        if self.video == "frames":
            accepts.add("video")
        if self.drop_audio:
            accepts.discard("audio")
        return Capabilities(
            accepts=frozenset(accepts),
            video="native" if self.video == "file" else "frames",
            frames=self.frames,
            degrade=self.drop_audio,
        )

    def reword(self, task: Asking) -> Asking:
        """Return the task, with prompts that do not mention sound if it is left out.

        Benchmarks whose prompts name the media have the option `modalities`; a task that is in no
        registry stays as it is.
        """
        value = task.options.get("modalities", "")
        fewer = value.replace("A", "")
        can = (
            fewer in task.allowed.get("modalities", ())
            and registry.find_benchmark(task.name) is not None
        )
        if not self.drop_audio or fewer == value or not can:
            return task
        found = get_task(task.name, {**task.options, "modalities": fewer})
        return found if task.past is None else found.with_past(task.past)

    def check(self, task: Asking, *, with_runs: bool = False) -> None:
        """Refuse what cannot be done, before any data are read.

        Args:
            task: writes the prompts.
            with_runs: whether there are runs whose answers the rows may hold.

        Raises:
            UsageError: the task has no such targets, or the trainer no such form.
        """
        if isinstance(self.rows, PreferenceFormat) and not with_runs:
            raise UsageError(
                f"rows of {self.format} hold answers of runs, and no run is named",
                where=f"--format {self.format}",
                expected="--pairs RUN as well",
            )
        refuse_predictions(task, beside=", or --histories RUN with such a run")
        if self.drop_audio and task.options.get("voice"):
            raise UsageError(
                "without audio the spoken instruction is lost",
                where="--drop-audio, -T voice",
                expected="one of the two",
            )
        if isinstance(self.rows, PromptFormat):
            check_terms(task, self.reward or TERMS)
        elif self.reward:
            raise UsageError(
                "a reward is for prompts without answers",
                where=f"--reward {self.reward}",
                expected=f"--format {' or '.join(format_names(PromptFormat))} with it",
            )
        if self.objects and answer_space(task.options) != "norm1000":
            units = task.allowed.get("coordinates", ())
            can = "norm1000" in units
            raise UsageError(
                "with --objects ms-swift writes the coordinates",
                where=f"--objects {self.objects}",
                expected="-T coordinates=norm1000, which ms-swift turns into what its model takes"
                if can
                else f"a task whose answers may have places in norm1000; those of {task.name} have "
                + (f"places in {' or '.join(units)} alone" if units else "no places"),
                remedy="add -T coordinates=norm1000" if can else "drop --objects",
            )

    def check_kinds(self, task: Asking, kinds: Iterable[Modality]) -> None:
        """Refuse modalities of a task's prompts that rows cannot hold.

        Raises:
            UsageError: there are such modalities; the remedy names the options.
        """
        accepts = self.capabilities.accepts
        lacking = [
            kind for kind in sorted(set(kinds) - accepts) if kind != "audio" or not self.drop_audio
        ]
        if lacking:
            flags = f"add {' and '.join(_REMEDIES[kind] for kind in lacking)}"
            fewer = fewer_modalities(task, ALL - {*lacking})
            raise UsageError(
                f"rows of {self.format} hold no {' and no '.join(lacking)}",
                where=f"--format {self.format}",
                expected=f"prompts of text and {' and '.join(sorted(self.rows.holds))}",
                remedy=f"{flags}; or drop them with {fewer}" if fewer else flags,
            )


_CURRENT = ("screenshot", "before", "after")
"""Roles of pictures without which a step shows nothing to learn from."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row as JSON with its line break, its columns that are not empty, and its files."""

    data: bytes
    columns: frozenset[str]
    media: frozenset[str]


def prompt_with_media(
    task: Asking, step: Step, capabilities: Capabilities
) -> tuple[Conversation, list[tuple[str, Wanted]]]:
    """Return a step's prompt, and its exported media with their roles."""
    conversation = task.conversation(step)
    return conversation, [
        (part.role, Wanted(part.media, part.size))
        for part in parts_of(conversation)
        if part.media and part.media.kind in capabilities.accepts
    ]


class ExclusionError(Exception):
    """A step becomes no row; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


@dataclass
class Maker:
    """Make rows; each method raises ExclusionError for a step that becomes none.

    Attributes:
        kinds: modalities that the export has files for.
        unstated: see `places_without_target`.
        root: the export, once it is done.
    """

    task: Asking
    options: Options
    stored: Media
    kinds: frozenset[Modality]
    unstated: Collection[str]
    root: Path = Path()

    def __post_init__(self) -> None:
        self._capabilities = self.options.capabilities
        self._rows = self.options.rows
        self._profile = self.task.profiles[self.task.default_profile]
        self._space = answer_space(self.task.options)
        self._own_controls = self.task.own_controls

    def make(self, step: Step) -> Line:
        """Return the row of a step."""
        content = self.make_prompt(step)
        target = self._answer(step, content.receipt)
        text, template = content.begun + target.text, content.begun + target.template
        content = replace(content, target=replace(target, text=text, template=template))
        made = self._rows.answers.row(content)
        self.check(step, made)
        if isinstance(self._rows, PromptFormat):
            made = self._rows.row(content)
        return self.line(step, content, made)

    def make_prompt(self, step: Step) -> Content:
        """Return the content of a step's row without the answer."""
        try:
            conversation, media = prompt_with_media(self.task, step, self._capabilities)
        except MediaError as error:
            raise _exclusion(step, "media-broken", error.what, error.expected) from None
        for role, wanted in media:
            kept = self.stored[wanted.key]
            if isinstance(kept, Broken):
                what = f"{role.replace('_', ' ')}: {kept.what}"
                raise _exclusion(step, "media-broken", what, kept.expected)
        absent = [role for role in _CURRENT if role in step.media and not step.media[role]]
        described = any(part.about for part in parts_of(conversation))
        if absent or not (described or any(wanted.ref.kind == "image" for _, wanted in media)):
            what = f"there is no {' and no '.join(absent) or 'picture'}"
            raise _exclusion(step, "picture-missing", what, "a picture of the screen")
        turns, receipt = render_messages(conversation, self._capabilities, _text, self._pieces)
        begun = ""
        if turns[-1].role == "assistant":  # trainers want an answer whole
            if isinstance(self._rows, PromptFormat):
                raise UsageError(
                    "the prompt contains the start of the answer, which trainers do not support",
                    where=f"--format {self.options.format}",
                    expected="prompts that end with the user's turn",
                    remedy="use another -T dialect, or drop it",
                )
            begun = "".join(piece.text for piece in turns.pop().parts)
        name, sample_id = self.task.name, step.sample_id
        return Content(name, sample_id, turns, receipt, self.kinds, self.root, begun)

    def _answer(self, step: Step, receipt: Mapping[str, Any]) -> Target:
        seen = sent_size(receipt, where=step.sample_id) or Resizing(step.screen, step.screen)
        original = seen.original
        if self._space == "px" and original != step.screen:
            raise _exclusion(
                step,
                "size-differs",
                f"the screenshot has {original[0]} x {original[1]} pixels, its target is for "
                f"{step.screen[0]} x {step.screen[1]}",
                "a target in pixels of the screenshot",
            )
        target = target_shown(self.task, step, seen.size)
        text = self._rows.answers.answer(target) if target else ""
        verdict = self._profile.judge(step, text, receipt)
        values = dict(zip(self._profile.values, verdict.values, strict=True))
        right = deciding(values)
        if target is None or right is None:
            if f"{step.episode}/{step.step_index}" not in self.unstated:
                what = "the step has no usable target"
                raise _exclusion(step, "target-missing", what, "a target")
            finding = Finding(
                "target-absent",
                "warning",
                step.sample_id,
                "the data state no target",
                "a target, but after the last action of a recording",
                "label it (docs/label.md), or do nothing: it is left out of the export",
            )
            raise ExclusionError(finding)
        ends: Mapping[str | None, Screen] = {"norm1000": (1000, 1000), "rel": (1, 1)}
        width, height = ends.get(self._space, seen.size)
        if not right or not (values.get("format_ok", True) or self._space == "px"):
            wrong = f"is no exact match by {self._profile.name}"
        elif not all(0 <= x <= width and 0 <= y <= height for x, y in target.points):
            wrong = "lies beyond the screen"
        else:
            return target
        raise _exclusion(
            step,
            "target-unreachable",
            f"the answer {text[:200]!r} {wrong}",
            "a target on the screen that an answer of the prompt's form can hit",
        )

    def check(self, step: Step, made: Row) -> None:
        """Refuse a row with an answer that a trainer or a model would misread.

        Chat templates write texts as they are, and tokenizers make tokens of them: a text may not
        hold a placeholder of the trainer or of any model, nor a control token except the task's.
        """
        form = self._rows.answers
        texts = form.texts(made)
        listed = {**form.placeholders(made), **dict.fromkeys(sorted(TOKENS), ())}
        counts = {tag: sum(text.count(tag) for text in texts) for tag in listed}
        if differs := [
            f"{count} {tag} in the texts, {len(listed[tag])} in the list"
            for tag, count in counts.items()
            if count != len(listed[tag])
        ]:
            raise _exclusion(
                step,
                "placeholder-in-text",
                f"a text of the data holds a placeholder for media: {'; '.join(differs)}",
                "texts without placeholders",
            )
        refused = sorted(CONTROLS - {*self._own_controls})
        if token := next((token for token in refused for text in texts if token in text), ""):
            raise _exclusion(
                step,
                "control-token-in-text",
                f"a text of the data holds the control token {token}",
                "texts without the control tokens of models",
            )

    def line(self, step: Step, content: Content, made: Row) -> Line:
        """Return a row as it is written, with the step's id and the roles of its media."""
        pieces = [piece for turn in content.turns for piece in turn.parts if piece.name]
        try:
            whole = {"sample_id": step.sample_id, **made, "roles": [p.role for p in pieces]}
            data = msgspec.json.encode(whole) + b"\n"
        except UnicodeEncodeError:
            what = "a text is not valid Unicode: a lone surrogate"
            raise _exclusion(step, "text-unwritable", what, "Unicode texts") from None
        return Line(
            data,
            frozenset(name for name, value in made.items() if value or isinstance(value, bool)),
            frozenset(piece.name for piece in pieces),
        )

    def _pieces(
        self, part: Part, ref: MediaRef, frames: int | None, capabilities: Capabilities
    ) -> tuple[list[Piece], dict[str, Any]]:
        kept = self.stored[Wanted(ref, part.size).key]
        assert isinstance(kept, Kept)
        if frames is None:
            return [_piece(ref.kind, kept.files[0], part.role)], kept.line
        pieces: list[Piece] = []
        for time, file in zip(kept.times_s, kept.files, strict=True):
            pieces += [_text(f"[Video frame at {time:.2f} s]:"), _piece("image", file, part.role)]
        return pieces, kept.line


def places_without_target(source: LoadedDataset) -> frozenset[str]:
    """Return "app/episode/step" of the rows that have no target by the loader's findings.

    A place is "app/episode/step (file)", and names may hold " (" as well: each beginning counts.
    """
    places = [f.where.split(" (") for f in source.findings if f.code == "target-absent"]
    return frozenset(
        " (".join(parts[:count]) for parts in places for count in range(1, len(parts) + 1)
    )


def _text(text: str) -> Piece:
    return Piece("text", text)


def _piece(kind: Modality, file: File, role: str) -> Piece:
    return Piece(kind, name=file.name, role=role, size=(file.width, file.height))


def _exclusion(step: Step, code: str, what: str, expected: str) -> ExclusionError:
    remedy = "correct the data, or drop the step with --exclude; it is left out of the export"
    return ExclusionError(Finding(code, "error", step.sample_id, what, expected, remedy))
