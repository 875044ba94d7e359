"""Rows that ask a critic whether a model's answer to a prompt is right.

The answers are those of runs, and the profile of their task judges them. A row is an answer to a
step, or all answers in an episode, which is right if each of them is. `docs/critics.md` has the
rules; the benchmark writes its rows (`omnidata.tasks.derivation`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnidata.actions import Action
from omnidata.adapters.media_budget import HISTORY
from omnidata.errors import DataError, Finding, MediaError, plural
from omnidata.jsontext import encode, hash_of
from omnidata.loaders.steps import ids_of
from omnidata.media import AUDIO_RATE, linkable, resolve, samples, wav
from omnidata.run.answer_choice import answer_key, answer_screen_size
from omnidata.run.histories import Histories
from omnidata.run.recorded import recorded_steps
from omnidata.run.run_info import ANSWERS, model_name
from omnidata.run.scoring import get_profile
from omnidata.storage import atomic_write, link_or_copy, wrap_os_error
from omnidata.synth.derive import REPORT, RowsStaging, copy_medium, derivation_of
from omnidata.tasks.asking import Asking
from omnidata.tasks.derivation import Derivation, Judged, Turn
from omnidata.tasks.profile import Profile
from omnidata.training.preferences import NamedRun, diagnosis, judge_answer, open_runs, unusable
from omnidata.types import (
    Completion,
    Conversation,
    LoadedDataset,
    MediaRef,
    Modality,
    Part,
    Progress,
    Step,
)

MEDIA: Final = "media"
_SUFFIX: Final[Mapping[Modality, str]] = {"image": ".png", "video": ".mp4", "audio": ".wav"}
_KNOWN: Final = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".mp4", ".mov", ".mkv", ".webm", ".wav", ".mp3", ".m4a"}
)
_NAME: Final = 32  # of 64 digits of a hash
_TRUTHS: Final = ("right", "wrong")


class _CriticStaging(RowsStaging):
    contents = frozenset({REPORT, MEDIA})


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, the steps that it was asked about, and the counts of its episodes by outcome."""

    of: NamedRun
    asked: frozenset[str]
    episodes: Counter[str] = field(default_factory=Counter)


class _Reply(NamedTuple):
    """A judged answer; `cause` says why it is wrong."""

    step: Step
    answer: Completion
    key: str
    right: bool
    cause: str
    prompt: Conversation


def derive_critics(
    tasks: Sequence[Asking],
    task: Asking,
    source: LoadedDataset,
    runs: Sequence[Path],
    out: Path,
    *,
    profile: str | None = None,
    changed_media: bool = False,
    progress: Progress = lambda done, total: None,
) -> Mapping[str, Any]:
    """Write rows of some tasks, made of the answers in runs.

    The same call resumes an interrupted one.

    Args:
        tasks: those with a derivation of "answer" or "answers".
        task: of the runs, with their options.
        source: the data of the runs.
        runs: the folders; samples below one are runs as well.
        out: a new folder.
        profile: judges the answers; None for the task's default.
        changed_media: accept answers to media that have changed since.
        progress: called with the finished episodes and their number.

    Returns:
        The report, as in `rows.json`.

    Raises:
        UsageError: a run is of another task or other data, or had other prompts; or `out` has other
            content.
        RunError: a folder is no run, or has no answers, or media have changed since.
        DataError: no row can be made, or `out` holds rows of other data, runs or settings.
        PredictionError: answers cannot be read.
    """
    judge = get_profile(task, profile)
    with ExitStack() as files:
        opened: list[_Run] = []
        for of in open_runs(runs, task, source, "--run"):
            files.enter_context(closing(of.answers))
            asked = frozenset(ids_of(recorded_steps(of.info, source, of.path)))
            opened.append(_Run(of, asked))
        staging = _CriticStaging(
            out,
            task,
            source,
            tasks,
            inputs=[run.of.path for run in opened],
            profile=judge.name,
            runs=[_identify(run.of) for run in opened],
        )
        if report := staging.earlier_report():
            return report
        with staging, wrap_os_error(staging.path):
            made = _Maker(tasks, task, source, judge, opened, staging.path)
            report = made.write(progress)
            for run in opened:
                run.of.seen.check(allowed=changed_media, where=str(run.of.path))
            return staging.publish(report)


def _identify(run: NamedRun) -> Mapping[str, str]:
    with (run.path / ANSWERS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"run": str(run.path), "model": model_name(run.info), "answers": digest}


class _Maker:
    def __init__(
        self,
        tasks: Sequence[Asking],
        task: Asking,
        source: LoadedDataset,
        profile: Profile,
        runs: Sequence[_Run],
        folder: Path,
    ) -> None:
        self._rows: dict[str, Derivation] = {each.name: derivation_of(each) for each in tasks}
        self._task, self._source, self._profile, self._runs = task, source, profile, runs
        self._shelf = _Shelf(folder)
        self._folder = folder
        self._made = {name: Counter[str]() for name in self._rows}
        self._groups: dict[str, set[str]] = {name: set() for name in self._rows}
        self._findings: dict[str, Finding] = {}

    def write(self, progress: Progress) -> dict[str, Any]:
        total = len({step.episode for step in self._source.steps})
        with ExitStack() as files:
            out = {
                name: files.enter_context(atomic_write(self._folder / derivation.file))
                for name, derivation in self._rows.items()
            }
            for done, (_, same) in enumerate(
                groupby(self._source.steps, key=attrgetter("episode"))
            ):
                progress(done, total)
                for name, row in self._of_episode(list(same)):
                    out[name].write(encode(self._rows[name].row(row)) + b"\n")
                    self._made[name].update(("rows", "right" if row.right else "wrong"))
                    self._groups[name].add(row.group)
            if not any(each["rows"] for each in self._made.values()):
                counts = sum((run.of.counts + run.episodes for run in self._runs), Counter[str]())
                fates = ", ".join(f"{name}: {count}" for name, count in counts.most_common())
                raise DataError(
                    f"no row can be made from {plural(len(self._runs), 'run')} "
                    f"({fates or 'no answer'})",
                    where=" ".join(f"--run {run.of.path}" for run in self._runs),
                    expected="answers with a verdict",
                    remedy="finish the runs, or name others",
                )
        for name, derivation in self._rows.items():
            if not self._made[name]["rows"]:
                (self._folder / derivation.file).unlink()
        return {
            "files": {
                derivation.file: name
                for name, derivation in self._rows.items()
                if self._made[name]["rows"]
            },
            "answers": [
                {
                    "run": str(run.of.path),
                    "steps": dict(run.of.counts),
                    "episodes": dict(run.episodes),
                }
                for run in self._runs
            ],
            "made": {
                name: {
                    "rows": counts["rows"],
                    "groups": len(self._groups[name]),
                    **{truth: counts[truth] for truth in _TRUTHS},
                }
                for name, counts in self._made.items()
                if counts["rows"]
            },
            "findings": [dict(finding.as_dict()) for finding in self._findings.values()],
        }

    def _of_episode(self, steps: Sequence[Step]) -> Iterator[tuple[str, Judged]]:
        known: set[str] = set()
        for run in self._runs:
            asked = [step for step in steps if step.sample_id in run.asked]
            if not asked:
                continue
            replies, lacks = self._replies(run, asked)
            if len(steps) < steps[0].num_steps or len(asked) < len(steps):
                lacks = lacks or "cut"
            for reply in replies:
                row = self._answer(run, reply)
                run.of.counts[_fate(row, known)] += 1
                yield from self._new("answer", row, known)
            whole = None if lacks else self._answers(run, replies)
            run.episodes[lacks or _fate(whole, known)] += 1
            yield from self._new("answers", whole, known)

    def _new(self, of: str, row: Judged | None, known: set[str]) -> Iterator[tuple[str, Judged]]:
        if row is None or row.name in known:
            return
        known.add(row.name)
        yield from ((name, row) for name, each in self._rows.items() if each.of == of)

    def _replies(self, run: _Run, steps: Sequence[Step]) -> tuple[list[_Reply], str]:
        """Return the judged answers in an episode, and why one is missing; empty if none is."""
        found: list[_Reply] = []
        lacks = ""
        histories = Histories(self._task)
        for step in steps:
            answer = run.of.answers.get(step.sample_id)
            reply = self._judge(run, step, answer, histories.before(step))
            if isinstance(reply, _Reply):
                found.append(reply)
            else:
                run.of.counts[reply] += 1
                lacks = lacks or reply
            if self._task.needs_predictions:
                histories.remember(step, answer)
        return found, lacks

    def _judge(
        self, run: _Run, step: Step, answer: Completion | None, past: Sequence[Action | None]
    ) -> _Reply | str:
        """Return the judged answer, or why it has no verdict."""
        if answer is None or unusable(answer):
            return unusable(answer)
        run.of.seen.look(step, answer.delivery, answer.receipt)
        verdict, outcome = judge_answer(self._profile, step, answer)
        if outcome not in _TRUTHS:
            return outcome
        right = outcome == "right"
        why = None if right else diagnosis(self._task, self._profile, step, verdict, answer)
        key = answer_key(self._task, self._source.fingerprint, step, answer)
        prompt = self._task.conversation(step, list(past))
        return _Reply(step, answer, key, right, why.cause if why else "", prompt)

    def _answer(self, run: _Run, reply: _Reply) -> Judged | None:
        step = reply.step
        about = {
            "of": {"sample_id": step.sample_id, "run": str(run.of.named), "sample": run.of.number}
        }
        cause = {} if reply.right else {"cause": reply.cause}
        shown = [(reply, _flat_parts(reply.prompt), "")]
        return self._row(run, f"{step.sample_id}#{reply.key}", shown, {**about, **cause})

    def _answers(self, run: _Run, replies: Sequence[_Reply]) -> Judged | None:
        shown = []
        before: set[str] = set()
        for number, reply in enumerate(replies):
            parts = _flat_parts(reply.prompt)
            # The texts of the step on its own, without the earlier ones.
            alone = replace(reply.step, step_index=0, history=(), history_screens=())
            prompt = self._task.conversation(alone, [])
            words = [part for part in _flat_parts(prompt) if not part.media]
            if number:
                parts = [part for part in parts if part.media and self._is_now(part)]
                new = (
                    part.text
                    if part.about
                    else "\n".join(line for line in part.text.split("\n") if line not in before)
                    for part in words
                )
                parts[:0] = [Part("text", text) for text in new if text]
            before = {line for part in words for line in part.text.split("\n")}
            shown.append((reply, parts, f"_{number}"))
        episode = replies[0].step.episode
        about = {
            "of": {"episode": episode, "run": str(run.of.named), "sample": run.of.number},
            "wrong_steps": [reply.step.step_index for reply in replies if not reply.right],
        }
        key = hash_of([reply.key for reply in replies])[:16]
        return self._row(run, f"{episode}#{key}", shown, about)

    def _row(
        self,
        run: _Run,
        name: str,
        shown: Sequence[tuple[_Reply, list[Part], str]],
        about: Mapping[str, Any],
    ) -> Judged | None:
        """Return a row; None if a medium is missing.

        Each reply comes with the parts of its prompt and the end of their roles.
        """
        media: dict[str, tuple[Modality, str]] = {}
        turns = []
        for reply, parts, suffix in shown:
            stored = self._store_parts(reply.step, parts, media, suffix)
            if stored is None:
                return None
            size = answer_screen_size(self._task, reply.step, reply.answer)
            turns.append(Turn(stored, reply.answer.text, size))
        first = shown[0][0].step
        return Judged(
            name,
            first.group,
            self._task.name,
            model_name(run.of.info),
            first.instruction,
            first.screen,
            tuple(turns),
            media,
            all(reply.right for reply, _, _ in shown),
            about,
        )

    def _is_now(self, part: Part) -> bool:
        return (
            part.role not in self._task.benchmark.card.other_moments
            and not part.role.startswith(HISTORY)
        )

    def _store_parts(
        self,
        step: Step,
        parts: Sequence[Part],
        media: dict[str, tuple[Modality, str]],
        suffix: str,
    ) -> tuple[Part, ...] | None:
        found: list[Part] = []
        for part in parts:
            if part.media is None:
                found.append(Part("text", part.text))
                continue
            try:
                path = self._shelf.name(part.media)
            except MediaError as error:
                self._findings.setdefault(
                    step.sample_id,
                    Finding(
                        "answer-left-out",
                        "warning",
                        step.sample_id,
                        f"no row is made from the answer: {error.what}: {error.where}",
                        "the media that the model saw",
                        "restore the file",
                    ),
                )
                return None
            role = _free(f"{part.role or part.kind}{suffix}", media)
            media[role] = part.media.kind, path
            found.append(replace(part, role=role))
        return tuple(found)


def _fate(row: Judged | None, known: Collection[str]) -> str:
    if row is None:
        return "media_missing"
    return "repeated" if row.name in known else "right" if row.right else "wrong"


def _flat_parts(prompt: Conversation) -> list[Part]:
    several = len({message.role for message in prompt}) > 1
    parts: list[Part] = []
    for message in prompt:
        if several:
            parts.append(Part("text", f"[{message.role}]"))
        parts += message.parts
    return parts


def _free(role: str, media: Mapping[str, object]) -> str:
    names = (role, *(f"{role}_{number}" for number in range(2, len(media) + 3)))
    return next(name for name in names if name not in media)


class _Shelf:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}
        (folder / MEDIA).mkdir(exist_ok=True)

    def name(self, ref: MediaRef) -> str:
        own = [str(ref.root), ref.path, repr(ref.cell), ref.until, [*ref.marks], ref.inline]
        digest = hash_of(own)[:_NAME]
        if digest not in self._known:
            suffix = Path(ref.path).suffix.lower()
            name = f"{MEDIA}/{digest}{suffix if suffix in _KNOWN else _SUFFIX[ref.kind]}"
            if not (self._folder / name).exists():
                self._write(ref, self._folder / name)
            self._known[digest] = name
        return self._known[digest]

    def _write(self, ref: MediaRef, target: Path) -> None:
        if (file := linkable(ref)) is not None:
            resolve(ref)
            link_or_copy(file, target)
        elif ref.inline:
            with atomic_write(target, durable=False) as sound:
                sound.write(wav(samples(ref, rate=AUDIO_RATE), AUDIO_RATE))
        else:
            copy_medium(ref, target)
