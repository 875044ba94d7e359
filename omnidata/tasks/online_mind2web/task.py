"""The task `online-mind2web`: success rates of agents on live web pages, and judges of them.

Sources: Online-Mind2Web (Xue et al., 2025): the labels of persons, what WebJudge said, and the
trajectories, as its repository has them; results with a `judge.score` as Browser Use publishes its
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.errors import DataError, Finding
from omnidata.jsontext import as_name, is_number
from omnidata.loaders.files import OTHER_DATA, holds_rows, not_an_object, walk
from omnidata.loaders.load import Note, RowContext, short
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.media import unsafe
from omnidata.metrics.rollouts import RATES
from omnidata.tasks.benchmark import Card, hub_publication
from omnidata.tasks.outcomes import Outcomes, OutcomeScorer, Rollout, outer_first, outermost
from omnidata.types import MediaRef

_EXPECTED: Final = (
    "human_label.json, lines of task_id and predicted_label, or folders TASK_ID/result.json with "
    "trajectory/ or judge.score"
)
_LABEL: Final = "_human_label"
_RESULT: Final = "result.json"
_SIGNS: Final = (b'"action_history"', b'"final_result_response"', b'"judge"')
_LABELS: Final[Mapping[str, float | None]] = {"0": 0.0, "1": 1.0, "2": None}
"""Failure, success, and what an agent could not even begin."""
LEVELS: Final[Mapping[str, int | None]] = {"easy": None, "medium": None, "hard": None}
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".webp")
_NUMBER: Final = re.compile(r"\d+")
HUMAN, JUDGE = "online-mind2web", "online-mind2web-webjudge"


@dataclass(slots=True)
class _Known:
    where: str
    row: Mapping[str, Any]
    scores: dict[str, float | None] = field(default_factory=dict)
    shots: Sequence[MediaRef] = ()
    judged: float | None = None
    is_read: bool = False


Attempts = dict[tuple[str, str], _Known]
"""What is known, by agent and task."""


class _Scorer(OutcomeScorer):
    name = HUMAN
    columns = _EXPECTED
    size = 300
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {"level": LEVELS}
    profiles: ClassVar[Mapping[str, Any]] = {
        HUMAN: dict.fromkeys(RATES, "share"),
        JUDGE: dict.fromkeys(RATES, "share"),
    }

    def knows(self, path: Path) -> bool:
        if not holds_rows(path):
            return False
        head = head_of(path)
        named = b'_human_label"' in head or b'"predicted_label"' in head
        return named or (path.name == _RESULT and any(sign in head for sign in _SIGNS))

    def rollouts(self, data: Path, note: Note) -> Iterator[Rollout]:
        root = data if data.is_dir() else data.parent
        attempts: Attempts = {}
        tasks: dict[str, Mapping[str, Any]] = {}
        paths = [
            path
            for path in walk(data)
            if self.knows(path) or (holds_rows(path) and b'"reference_length"' in head_of(path))
        ]
        folders = {path.parent for path in paths if path.name == _RESULT}
        for path in outer_first(paths, folders):
            own_folder = outermost(path.parent, folders)
            folder = own_folder.parent if own_folder in folders else path.parent
            agent = _agent(folder, path, root)
            for line in read_rows(path):
                where, row = line.where, line.row
                if not isinstance(row, dict):
                    note(not_an_object(line, _EXPECTED))
                    continue
                own = as_name(row.get("task_id")) or (path.name == _RESULT and path.parent.name)
                if not own:
                    RowContext(where, note).refuse("task-missing", "the row has no task_id", "one")
                elif "reference_length" in row:
                    tasks[own] = row
                else:
                    _add(attempts, agent, own, row, path, RowContext(where, note))
        if not attempts:
            raise DataError(
                "no file has results of Online-Mind2Web",
                where=str(data),
                expected=_EXPECTED,
                remedy=OTHER_DATA,
            )
        _judge(attempts, note)
        for (agent, own), known in attempts.items():
            yield _rollout(agent, own, known, tasks.get(own, {}))


class OnlineMind2Web(Outcomes):
    """Online-Mind2Web: what agents reached on the web, and whether a model sees that they did."""

    card = Card(
        title="Online-Mind2Web",
        holds="score or judge whether agents on live web pages succeeded; results with screenshots",
        platform="web",
        sources=(
            hub_publication(
                "Online-Mind2Web",
                "osunlp/Online-Mind2Web",
                "cc-by-4.0",
                paper="2504.01382",
                note="the list of tasks. The authors of each agent publish its results "
                "elsewhere; size and gating are not verified",
            ),
        ),
    )
    rollouts = _Scorer()


def _agent(folder: Path, path: Path, root: Path) -> str:
    if not folder.is_relative_to(root):
        return folder.resolve().name or "agent"
    below = folder.relative_to(root).as_posix()
    if below != ".":
        return below
    return root.name or "agent" if path.name == _RESULT else path.stem


def _add(
    attempts: Attempts, agent: str, own: str, row: Mapping[str, Any], path: Path, at: RowContext
) -> None:
    labels = {name.removesuffix(_LABEL): row[name] for name in row if name.endswith(_LABEL)}
    for labelled, label in labels.items():
        text = str(label)
        if text in _LABELS:
            known = attempts.setdefault((labelled, own), _Known(at.where, row))
            known.scores[HUMAN] = _LABELS[text]
        else:
            at.refuse("label-unknown", f"{labelled} has the label {short(label)}", "0, 1 or 2")
    if path.name == _RESULT:
        known = attempts.setdefault((agent, own), _Known(at.where, row))
        if known.is_read:
            at.warn(
                "rollout-repeated",
                f"another file also has {agent} at {own}",
                "one rollout of each agent per task",
                "move it if it is from another agent; the first is used until then",
            )
            return
        known.where, known.row, known.is_read = at.where, row, True
        known.shots = _shots(path.parent / "trajectory", row)
        known.judged = _own_judgement(row, at)
    if "predicted_label" in row:
        known = attempts.setdefault((agent, own), _Known(at.where, row))
        said = row["predicted_label"]
        if JUDGE in known.scores:
            at.refuse(
                "judgement-repeated",
                f"another row also labels {agent} at {own}",
                "the labels of one judge, since files of several judges look alike",
                "name the file of one of them, or move the others; the first is used until then",
            )
            return
        known.scores[JUDGE] = float(said) if said in (0, 1) else None


_MOST: Final = 100
"""The largest score of a judge: some scales end at 1, some at 100."""


def _own_judgement(row: Mapping[str, Any], at: RowContext) -> float | None:
    judge = row.get("judge")
    said = judge.get("score") if isinstance(judge, dict) else None
    if isinstance(said, bool):
        return float(said)
    if is_number(said) and 0 <= said <= _MOST:
        return float(said)
    if said is not None:
        at.refuse(
            "score-unusable",
            f"judge.score is {short(said)}",
            f"a number from 0 to 1, or to {_MOST}",
            "correct it; the rollout has no score until then",
        )
    return None


def _judge(attempts: Attempts, note: Note) -> None:
    most: dict[str, float] = {}
    for (agent, _), known in attempts.items():
        most[agent] = max(most.get(agent, 0.0), known.judged or 0.0)
    both: dict[str, int] = {}
    for (agent, _), known in attempts.items():
        if known.judged is None:
            continue
        if JUDGE in known.scores:
            both[agent] = both.get(agent, 0) + 1
        else:
            known.scores[JUDGE] = known.judged / (_MOST if most[agent] > 1 else 1)
    for agent, count in both.items():
        note(
            Finding(
                "judgement-repeated",
                "warning",
                agent,
                f"{count} rollouts have a judge.score beside a predicted_label",
                "one judge's",
                "nothing to do: the predicted_label is used",
            )
        )


def _shots(folder: Path, row: Mapping[str, Any]) -> list[MediaRef]:
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
        ending="finished" if said else "unknown" if steps else None,
        turns=len(did) or None,
        did=[words for words in did if isinstance(words, str)],
        shots=known.shots,
    )
