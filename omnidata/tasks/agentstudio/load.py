"""AgentStudio's GroundUI, IDM-Single, IDM-Multiple and CriticBench as steps.

Every row is a step and an episode of its own. Source: AgentStudio, section 5 and Appendices C to E;
the rows are those of the authors' release, in its own form or in the Hub's.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.loaders.load import Note, RowContext, about, check_screen, load_data, short, size_of
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.repository import is_repository
from omnidata.loaders.steps import Steps, number_steps, row_ids
from omnidata.media import unsafe
from omnidata.tasks.agentstudio import files as agentstudio_files
from omnidata.tasks.agentstudio import rows
from omnidata.tasks.agentstudio.files import Files, Held, Line, Row, TaskName
from omnidata.tasks.agentstudio.rows import Instructions, Repeats
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

TAGS = ("platform", "source", "subset")
"""The tags of a step: where it was recorded, the family of its source, the row's own source."""

_COLUMNS: Mapping[TaskName, Mapping[str, str]] = {
    "groundui": {"screenshot": "image"},
    "idm-single": {"before": "obs_before", "after": "obs_after"},
}
ROLES: Mapping[TaskName, Mapping[str, Modality]] = {
    task: dict.fromkeys(columns, "image") for task, columns in _COLUMNS.items()
}
"""The media of a step. Trajectories have `observation_0`, `observation_1`, ... as their data go."""

_TRAJECTORIES = ("mind2web", "aitw", "vwa", "agent_studio")
FAMILIES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("mind2web", "omniact", "motif", "screenspot", "agent_studio"),
    "idm-single": _TRAJECTORIES,
    "idm-multiple": _TRAJECTORIES,
    "criticbench": _TRAJECTORIES,
}
"""The families of sources of the published data."""


def load(
    data: Path | str,
    task: TaskName,
    *,
    instructions: Instructions = "recaptioned",
    strict: bool = False,
    check_media: bool = True,
) -> LoadedDataset:
    """Read the rows of a benchmark; no medium is decoded.

    A step's `source` is the untouched row. The Hub's form spreads a trajectory over columns and
    keeps the images inside; its rows become those of the authors' files: actions as a list, names
    of images, no null key in `metadata`.

    A step's `screen` is the `resolution` of a GroundUI row, else the size of its first image, else
    (0, 0). `action` is None: targets and answers are in `source`.

    Args:
        data: a `.jsonl` or `.parquet` file, a folder with one such file (found by its columns), or
            a Parquet repository. Images lie in `images/` beside it.
        task: the benchmark.
        instructions: those of GroundUI: recaptioned, or raw as the original datasets had them.
        strict: make the first finding an error.
        check_media: check that the images exist and are whole (a few file reads per image).

    Returns:
        Steps in the order of the rows, named `<file stem>/<row>`, and findings.

    Raises:
        DataError: nothing readable as this benchmark is there, or several files could be meant, or
            `strict` and there is a finding.
    """
    data = Path(data)
    source = load_data(
        data,
        task,
        TAGS,
        lambda: _read(data, task, instructions, check_media=check_media),
        strict=strict,
        check_media=check_media,
        depends=(instructions,),
    )
    if not is_repository(data):
        return source
    restored = (_restore(step, task, instructions) for step in source.steps)
    return replace(source, steps=Steps.of(restored))


def _restore(step: Step, task: TaskName, instructions: Instructions) -> Step:
    """Restore a step of a repository, which has the roles of all tasks and one instruction."""
    if task == "groundui":
        text = rows.instruction_of(step.source, instructions)
        return step if text is None else replace(step, instruction=text)
    if task == "idm-single":
        return step
    count = len(_observations(step.source))
    media = {role: step.media.get(role) for role in map(_role, range(count))}
    return replace(step, media=media)


def _read(
    data: Path, task: TaskName, instructions: Instructions, *, check_media: bool
) -> LoadedDataset:
    files = agentstudio_files.find(data, task)
    findings: list[Finding] = []
    reader = _Reader(task, instructions, files, findings.append)
    lines = enumerate(agentstudio_files.read(files, findings.append))
    places = array("q")  # of each row the number of its step, -1 for none
    steps = Steps.of(number_steps((reader.step(line, number) for number, line in lines), places))
    if not steps:
        raise DataError(
            "no row could be read" + (f": {findings[0]}" if findings else ""),
            where=str(data),
            expected=f"at least one row of {task}",
            remedy="correct the rows that the findings name, or name other data",
        )
    if check_media and not all(ref.cell for s in steps for ref in s.media.values() if ref):
        check_media_files(steps, findings.append)
    longest: list[str] = max((list(step.media) for step in steps), key=len)
    roles: dict[str, Modality] = dict.fromkeys(longest, "image")
    return LoadedDataset(
        task,
        data,
        steps,
        findings,
        places.count(-1),
        files.fingerprint(),
        row_ids(steps, places),
        TAGS,
        roles,
    )


@dataclass(slots=True)
class _Reader:
    task: TaskName
    instructions: Instructions
    files: Files
    note: Note
    repeats: Repeats = field(default_factory=Repeats)

    def step(self, line: Line, number: int) -> Step | None:
        sample_id = f"{self.files.stem}/{number}"
        place = RowContext(f"{sample_id} ({line.where})", about(self.note, sample_id))
        row = line.row
        if row is None or not rows.CHECKS[self.task](row, place):
            return None
        try:
            canonical = json.dumps(row, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            place.refuse(
                "column-wrong", f"the row is not JSON ({type(error).__name__})", "JSON values only"
            )
            return None
        self.repeats.check(row, canonical, place)
        instruction = row.get("instruction")
        if self.task == "groundui":
            instruction = rows.instruction_of(row, self.instructions, place)
            if instruction is None:
                return None
        media = self._media(line, row, place)
        first = next(iter(media.values()))
        step = Step(
            sample_id=sample_id,
            episode_id=str(number),
            step_index=0,
            num_steps=1,
            instruction=instruction if isinstance(instruction, str) else "",
            screen=rows.screen_of(row) or size_of(first if first and not first.cell else None),
            media=media,
            history=(),
            history_screens=(),
            action=None,
            tags=rows.tags_of(row, place),
            source=row,
        )
        return assign_group(step)

    def _media(self, line: Line, row: Row, place: RowContext) -> dict[str, MediaRef | None]:
        images: list[tuple[str, object, str, int | None]]
        if self.task in _COLUMNS:
            columns = _COLUMNS[self.task].items()
            images = [(role, row.get(column), column, None) for role, column in columns]
        else:
            names = _observations(row)
            images = [(_role(n), name, "obs_before", n) for n, name in enumerate(names)]
            if len(names) > (count := len(row["actions"])):
                images[-1] = (_role(count), names[-1], "obs_after", count - 1)
        return {
            role: self._image(name, role, place, line.held, column, item)
            for role, name, column, item in images
        }

    def _image(
        self,
        name: object,
        role: str,
        place: RowContext,
        held: Held | None,
        column: str,
        item: int | None,
    ) -> MediaRef | None:
        if isinstance(name, str):
            reason = unsafe(name)
        else:
            reason = "the row names no image" if name is None else f"it is a {type(name).__name__}"
        if reason:
            place.refuse(
                "path-unsafe" if name is not None else "image-missing",
                f"{role.replace('_', ' ')} {short(name)}: {reason}",
                f"a path relative to {self.files.images}",
                "correct the path; the step lacks the image until then",
            )
        if not isinstance(name, str):
            return None
        if held and column in held.columns and not self.files.images.is_dir():
            return held.image(column, name, item)
        return MediaRef("image", self.files.images, name)  # opening it checks the path


def assign_group(step: Step) -> Step:
    """Return the step with its group: the page of a row of GroundUI, the recording of another row.

    The column `group` of rows of `omnidata synth` comes first. A row is an episode, whose name
    begins with the group: other data have other rows of the same number.
    """
    row = step.source
    images = [row.get("image"), row.get("obs_before"), row.get("obs_after")]
    images += _observations(row) if "actions" in row else []
    first = next((name for name in images if isinstance(name, str)), None)
    if first is None:
        return replace(step, episode=step.sample_id, group=step.sample_id)
    is_page = "screenshot" in step.media  # rows of the other sets may have any column besides
    if is_page:
        check_screen(step)
    stated = row.get("group")
    own = first if is_page else _recording_of(first)
    group = stated if isinstance(stated, str) and stated else own
    return replace(step, episode=f"{group}#{step.sample_id}", group=group)


_FRAME = re.compile(
    r"(.+?)(?:_[0-9]+"  # aitw_images/general/5055803312245834626_0.png, vwa_reddit_render_36_2.png
    r"|-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # mind2web_images/<recording>-<action>.jpg
    r"|/[0-9a-f]{32})"  # agent_studio/human/<recording>/<picture>.png
    r"[.][a-z]+"
)


def _recording_of(image: str) -> str:
    """Return the recording of an image of IDMBench or CriticBench, by the image's name.

    Examples:
        >>> _recording_of("aitw_images/general/17915011704193583092_1.png")
        'aitw_images/general/17915011704193583092'
        >>> _recording_of("m2w/0.png")
        'm2w/0.png'
    """
    found = _FRAME.fullmatch(image)
    return found[1] if found else image


def _role(position: int) -> str:
    return f"observation_{position}"


def _observations(row: Row) -> list[Any]:
    actions = row["actions"]
    last = actions[-1].get("obs_after")
    return [action.get("obs_before") for action in actions] + ([] if last is None else [last])
