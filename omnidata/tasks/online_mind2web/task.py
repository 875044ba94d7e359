"""The task `online-mind2web`: success rates of agents on live web pages, and judges of them.

Source: Online-Mind2Web (Xue et al., 2025): the labels of persons, what WebJudge said, and the
trajectories, as its repository has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.errors import DataError
from omnidata.jsontext import as_name
from omnidata.loaders.files import OTHER_DATA, holds_rows, not_an_object, walk
from omnidata.loaders.load import Note, RowContext, short
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.media import unsafe
from omnidata.metrics.rollouts import RATES
from omnidata.tasks.outcomes import Outcomes, OutcomeScorer, Rollout
from omnidata.types import MediaRef, Publication, Remote

_EXPECTED: Final = (
    "human_label.json, lines of task_id and predicted_label, or folders TASK_ID/result.json with "
    "trajectory/"
)
_LABEL: Final = "_human_label"
_RESULT: Final = "result.json"
_LARGEST: Final = 512 * 1024**2
_LABELS: Final[Mapping[str, float | None]] = {"0": 0.0, "1": 1.0, "2": None}
"""Failure, success, and what an agent could not even begin."""
LEVELS: Final[Mapping[str, int | None]] = {"easy": None, "medium": None, "hard": None}
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".webp")
_NUMBER: Final = re.compile(r"\d+")
HUMAN, JUDGE = "online-mind2web", "online-mind2web-webjudge"


@dataclass(slots=True)
class _Known:
    """What several files say of one agent's rollout.

    Attributes:
        where: the first of them.
        row: the trajectory's, else that of the first.
        scores: by profile.
    """

    where: str
    row: Mapping[str, Any]
    scores: dict[str, float | None] = field(default_factory=dict)
    shots: Sequence[MediaRef] = ()


Told = dict[tuple[str, str], _Known]
"""What is known, by agent and task."""


class _Scorer(OutcomeScorer):
    """Success by the labels of persons, or by WebJudge's."""

    name = HUMAN
    size = 300
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {"level": LEVELS}
    profiles: ClassVar[Mapping[str, Any]] = {
        HUMAN: dict.fromkeys(RATES, "share"),
        JUDGE: dict.fromkeys(RATES, "share"),
    }

    def knows(self, path: Path) -> bool:
        """Whether a file has labels of persons or of WebJudge, or is a trajectory's."""
        if not holds_rows(path):
            return False
        head = head_of(path)
        named = b'_human_label"' in head or b'"predicted_label"' in head
        return named or (path.name == _RESULT and b'"action_history"' in head)

    def rollouts(self, data: Path, note: Note) -> Iterator[Rollout]:
        """The rollouts of every file, what they say of one put together."""
        if not data.exists():
            raise DataError("there is no such file or folder", where=str(data), expected=_EXPECTED)
        root = data if data.is_dir() else data.parent
        told: Told = {}
        tasks: dict[str, Mapping[str, Any]] = {}
        for path in filter(lambda path: self.knows(path) or _is_tasks(path), walk(data)):
            for line in read_rows(path):
                where, row = line.where, line.row
                if not isinstance(row, dict):
                    note(not_an_object(line, _EXPECTED))
                    continue
                own = as_name(row.get("task_id")) or (path.name == _RESULT and path.parent.name)
                if not own:
                    RowContext(where, note).refuse("task-missing", "there is no task_id", "one")
                elif "reference_length" in row:
                    tasks[own] = row
                else:
                    _add(told, own, row, path, root, RowContext(where, note))
        if not told:
            raise DataError(
                "no file there has results of Online-Mind2Web",
                where=str(data),
                expected=_EXPECTED,
                remedy=OTHER_DATA,
            )
        for (agent, own), known in told.items():
            yield _rollout(agent, own, known, tasks.get(own, {}))


class OnlineMind2Web(Outcomes):
    """Online-Mind2Web: what agents reached on the web, and whether a model sees that they did.

    Args:
        options: `actions`; unknown ones are a `UsageError`.
    """

    title = "Online-Mind2Web"
    platform = "web"
    holds = "results of agents on live web pages, with screenshots; whether they succeeded"
    expects = _EXPECTED
    sources = (
        Publication(
            "Online-Mind2Web",
            "https://huggingface.co/datasets/osunlp/Online-Mind2Web",
            "cc-by-4.0",
            remote=Remote(
                "hf://datasets/osunlp/Online-Mind2Web",
                note="the list of tasks. What agents did is published in other places, by each of "
                "them; size and gating are not verified",
            ),
        ),
    )
    score_files = _Scorer()


def _is_tasks(path: Path) -> bool:
    """Whether a file is the benchmark's list of tasks, which says how difficult each is."""
    return holds_rows(path) and b'"reference_length"' in head_of(path)


def _add(
    told: Told, own: str, row: Mapping[str, Any], path: Path, root: Path, at: RowContext
) -> None:
    labels = {name.removesuffix(_LABEL): row[name] for name in row if name.endswith(_LABEL)}
    for agent, label in labels.items():
        text = str(label)
        if text in _LABELS:
            known = told.setdefault((agent, own), _Known(at.where, row))
            known.scores[HUMAN] = _LABELS[text]
        else:
            at.refuse("label-unknown", f"{agent} has the label {short(label)}", "0, 1 or 2")
    folder = path.parent.parent if path.name == _RESULT else path.parent
    below = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else "."
    agent = path.stem if below == "." and path.name != _RESULT else below
    agent = root.name or "agent" if agent == "." else agent
    if "predicted_label" in row:
        known = told.setdefault((agent, own), _Known(at.where, row))
        said = row["predicted_label"]
        if JUDGE in known.scores:
            at.refuse(
                "judgement-repeated",
                f"another row has a label of {agent} at {own}",
                "one judge's labels: those of several have the same form",
                "name the file of one of them, or move the others; the first is used until then",
            )
            return
        known.scores[JUDGE] = float(said) if said in (0, 1) else None
    elif path.name == _RESULT:
        known = told.setdefault((agent, own), _Known(at.where, row))
        known.where, known.row = at.where, row
        known.shots = _shots(path.parent / "trajectory", row)


def _shots(folder: Path, row: Mapping[str, Any]) -> list[MediaRef]:
    """The screenshots in their order: as the steps name them, else by the numbers of the files."""
    history = row.get("action_history")
    steps = history if isinstance(history, list) else []
    named = [step.get("screenshot") for step in steps if isinstance(step, dict)]
    names = [name for name in named if isinstance(name, str) and name and not unsafe(name)]
    if not names and folder.is_dir():
        found = (path.name for path in folder.iterdir() if path.suffix.lower() in _PICTURES)
        names = sorted(found, key=_order)
    return [MediaRef("image", folder, name) for name in names]


def _order(name: str) -> tuple[int, str]:
    found = _NUMBER.search(name)
    return int(found[0][:18]) if found else 0, name


def _rollout(agent: str, own: str, known: _Known, task: Mapping[str, Any]) -> Rollout:
    row = known.row
    texts = (source.get(name) for source in (row, task) for name in ("task", "confirmed_task"))
    history = row.get("action_history")
    steps = history if isinstance(history, list) else []
    did = [step.get("action") if isinstance(step, dict) else step for step in steps]
    level = task.get("level")
    # An agent that says nothing at its end may have given up, or run out of steps.
    said = row.get("final_result_response") or row.get("agent_final_answer")
    return Rollout(
        agent,
        own,
        next((text for text in texts if isinstance(text, str) and text), own),
        dict(sorted(known.scores.items())),
        known.where,
        dict(row),
        tags={"level": level} if isinstance(level, str) and level in LEVELS else {},
        ending=("finished" if said else "unknown") if steps else None,
        turns=len(did) or None,
        did=[words for words in did if isinstance(words, str)],
        shots=known.shots,
    )
