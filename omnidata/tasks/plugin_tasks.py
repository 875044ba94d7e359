"""A benchmark that another distribution brings, as the rooms above see it."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from omnidata.actions import Point
from omnidata.errors import Finding, PluginError, counted, meant
from omnidata.files import staying_in
from omnidata.jsontext import encode
from omnidata.loaders.load import refuse_findings, short, unsafe_paths
from omnidata.metrics.paired import Measures
from omnidata.plugins import Blame
from omnidata.registry import PluginTask
from omnidata.tasks.base import Benchmark, explain
from omnidata.tasks.derivation import Derivation
from omnidata.tasks.explaining import compute_members
from omnidata.tasks.longest import judge_beginning
from omnidata.tasks.published import Published
from omnidata.types import (
    CAUSES,
    OUTCOMES,
    Diagnosis,
    Explanation,
    LoadedDataset,
    Outcome,
    Profile,
    Step,
    Task,
    Verdict,
    VerdictColumns,
)

if TYPE_CHECKING:
    from omnidata.loaders.task_library import Library


@dataclass(frozen=True, slots=True)
class PluginBenchmark(PluginTask):
    """The task with the defaults of `Benchmark` that call what only tasks may import."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By name."""
        found = self.task.profiles.items()
        return {name: PluginProfile(profile, self.blame) for name, profile in found}

    def load(self, data: Path, **options: Any) -> LoadedDataset:
        """Read the dataset's annotations, and nothing outside the data.

        Raises:
            DataError: with `strict`, an episode is torn, or two are merged, the path of a medium
                leads out of its folder, or a target is no place on the screen.
        """
        found = PluginTask.load(self, data, **options)
        steps = found.steps
        # A repository has those of the data it was made of.
        axes = lacking_axes(self.task.profiles.values(), steps)
        parts = (*torn_episodes(steps), *merged_episodes(steps), *axes)
        told = [one for one in parts if one not in found.findings]
        told += [*unsafe_paths(found), *misplaced_targets(found)]
        if told and options.get("strict"):
            refuse_findings(told, data)
        return replace(found, findings=[*found.findings, *told]) if told else found

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Its own explanation, or the one of `Benchmark`, whose answers are read as `read` does."""
        own = getattr(type(self.task), "explain", Benchmark.explain)
        if own is Benchmark.explain:
            return explain(self, self.profiles[profile], step, verdict, receipt=receipt)
        said = self.blame.call(
            self.task.explain, step.sample_id, step, verdict, profile=profile, receipt=receipt
        )
        if isinstance(said, Explanation):
            told: Explanation = self.blame.call(compute_members, step.sample_id, said)
            if _is_told(told.diagnosis):
                return told
        raise PluginError(
            f"{self.blame.origin} fails: `explain` gives {said!r:.300}",
            where=step.sample_id,
            expected="an Explanation, whose diagnosis is None or has a cause of "
            "omnidata.types.CAUSES, a text as its reading, and a finite distance or None",
            remedy="fix `explain`, or report it to the authors of the plug-in",
        )

    @property
    def overview(self) -> Any:
        """What `omnidata info` counts in its data."""
        return PluginView(self.task.overview, self.blame, f"the data of {self.task.name}")

    @property
    def library(self) -> Callable[[Path], Library] | None:
        """Reads its data as subtasks that tasks are composed of."""
        read = self.task.library
        return None if read is None else partial(self._library, read)

    def _library(self, read: Callable[[Path], Library], data: Path) -> Library:
        with self.reading(data, self.task.name):
            found: Library = self.blame.call(read, str(data), data)
        return found

    @property
    def derivation(self) -> Derivation | None:
        """How its rows are made of the data of other tasks."""
        found: Derivation | None = self.task.derivation
        if found is None:
            return None
        row = partial(self.blame.call, found.row, f"the rows of {self.task.name}")
        return replace(found, row=row)

    @property
    def score_files(self) -> Any:
        """Scores what was done without any text of a model."""
        scorer = self.task.score_files
        return scorer and PluginScorer(scorer, self.blame, f"the files of {self.task.name}")

    @property
    def published(self) -> Published:
        """What is published of it."""
        found: Published = self.blame.call(getattr, self.task.name, self.task, "published")
        return found

    def spelling(self, tag: str, value: str) -> str:
        """What the spellings of a tag's value have in common."""
        return str(self.blame.call(self.task.spelling, f"{tag} {value!r}", tag, value))


@dataclass(frozen=True, slots=True)
class Blamed:
    """An object of a distribution, but for what its functions raise.

    Attributes:
        held: the object; of a class, what it makes is blamed too.
        blame: calls its code.
        where: the data that it looks at.
    """

    held: Any
    blame: Blame
    where: str

    def __call__(self, *arguments: Any, **options: Any) -> Blamed:
        """What the class makes."""
        made = self.blame.call(self.held, self.where, *arguments, **options)
        return Blamed(made, self.blame, self.where)

    def __getattr__(self, name: str) -> Any:
        """What the object has."""
        if name in ("held", "blame", "where") or name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.held, name)
        return partial(self.blame.call, found, self.where) if callable(found) else found


@dataclass(frozen=True, slots=True)
class PluginView(Blamed):
    """The class of an overview."""

    def read(self, task: Task, data: Path, *, strict: bool) -> LoadedDataset:
        """Read the dataset as far as it can be shown, and nothing outside the data."""
        with staying_in(data):
            found: LoadedDataset = self.blame.call(
                self.held.read, str(data), task, data, strict=strict
            )
        return found


@dataclass(frozen=True, slots=True)
class PluginScorer(Blamed):
    """A scorer of files."""

    def score(self, data: Path, answers: Path | None, **options: Any) -> Any:
        """Score the files, and read nothing beside them."""
        with staying_in(data, *(() if answers is None else (answers,))):
            return self.blame.call(self.held.score, str(data), data, answers, **options)


_SLACK: Final = 1e-9
"""What the mean of shares may exceed them by."""
_MOST: Final = sys.float_info.max


@dataclass(frozen=True, slots=True)
class PluginProfile:
    """The profile as it is, but for what it raises.

    Attributes:
        profile: of the distribution.
        blame: calls its code.
    """

    profile: Profile
    blame: Blame

    def __getattr__(self, name: str) -> Any:
        """Whatever else the profile has."""
        if name in ("profile", "blame") or name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.profile, name)
        return partial(self._measures, found) if name == "measures" else found

    def _measures(self, measures: Callable[..., Measures], *pair: Any) -> Measures:
        """What its metrics are sums of."""
        where = "the comparison of two runs"
        found: Measures = self.blame.call(measures, where, *pair)
        return replace(found, sums=partial(self.blame.call, found.sums, where))

    @judge_beginning
    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step."""
        found = self.blame.call(self.profile.judge, step.sample_id, step, text, receipt)
        return self._verdict(found, "judge", step)

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step for which no answer came."""
        found = self.blame.call(self.profile.failed, step.sample_id, step, outcome)
        return self._verdict(found, "failed", step)

    def _verdict(self, found: object, of: str, step: Step) -> Verdict:
        """What it made of a step, if that is a verdict of this profile."""
        names = self.profile.values
        expected = f"Verdict(outcome, ({', '.join(names)},)), whose outcome is one of "
        expected += ", ".join(OUTCOMES)
        if not isinstance(found, Verdict):
            what = f"{found!r}, which is not a verdict"
        elif found.outcome not in OUTCOMES:
            what = f"the outcome {found.outcome!r}"
        elif not isinstance(found.values, tuple) or len(found.values) != len(names):
            what = f"the values {found.values!r}"
        elif wrong := self._wrong_value(found.values):
            what, expected = wrong
        elif not _is_json_object(found.parsed):
            what = f"{short(found.parsed)} as `parsed`"
            expected = "a dict of JSON values with texts as names, or None"
        elif not isinstance(found.reason, str):
            what, expected = (
                f"{short(found.reason)} as `reason`",
                "a text, empty if all was read",
            )
        else:
            return found
        raise PluginError(
            f"{self.blame.origin} fails: `{of}` of {self.profile.name} gives {what:.300}",
            where=step.sample_id,
            expected=expected,
            remedy=f"fix `{of}`, or report it to the authors of the plug-in",
        )

    def _wrong_value(self, values: tuple[object, ...]) -> tuple[str, str] | None:
        """The first value that cannot be totalled, and what it should be."""
        shares: Collection[str] = getattr(self.profile, "shares", ())
        for name, value in zip(self.profile.values, values, strict=True):
            if value is None or value is True or value is False:
                continue
            is_share = name in shares
            low, high = (-_SLACK, 1 + _SLACK) if is_share else (-_MOST, _MOST)
            # JSON has no number of another type, and neither NaN nor infinity.
            if type(value) in (int, float) and low <= cast("float", value) <= high:
                continue
            which = "from 0 to 1" if is_share else "that is finite"
            expected = f"True, False, an int or a float {which}, or None if nothing is judged"
            return f"{short(value)} as {name}", expected
        return None

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """The table."""
        where = f"the table of {len(steps)} steps"
        found: dict[str, Any] = self.blame.call(self.profile.total, where, steps, rows)
        return found


def _is_json_object(value: object) -> bool:
    """Whether a line of scores can have it as `parsed`."""
    if value is None:
        return True
    try:
        encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _is_told(diagnosis: object) -> bool:
    """Whether it is a diagnosis that can be written, or none."""
    if not isinstance(diagnosis, Diagnosis):
        return diagnosis is None
    away = diagnosis.distance
    is_number = away is None or (isinstance(away, int | float) and math.isfinite(away))
    return is_number and diagnosis.cause in CAUSES and isinstance(diagnosis.reading, str)


def torn_episodes(steps: Iterable[Step]) -> list[Finding]:
    """A finding for each episode whose tag `app` changes, where the loader has not named it.

    `Step` names an episode `app/episode_id` then, because two apps may have the same id. Those are
    told from the parts of one: the same number of a step comes twice, or each is whole.

    Args:
        steps: all of the data.
    """
    parts: dict[str, dict[str, list[Step]]] = {}
    for step in steps:
        if not _is_named(step):
            parts.setdefault(step.episode_id, {}).setdefault(step.episode, []).append(step)
    return [_torn(own, found) for own, found in parts.items() if len(found) > 1 and _is_one(found)]


def _is_named(step: Step) -> bool:
    """Whether the loader has said which episode it belongs to."""
    app = step.tags.get("app")
    return step.episode != (f"{app}/{step.episode_id}" if app else step.episode_id)


def _is_one(parts: dict[str, list[Step]]) -> bool:
    numbers = [step.step_index for part in parts.values() for step in part]
    lacking = any(len(part) < part[0].num_steps for part in parts.values())
    return lacking and len(set(numbers)) == len(numbers)


def _torn(own: str, parts: dict[str, list[Step]]) -> Finding:
    names = list(parts)
    return Finding(
        "episode-torn",
        "error",
        own,
        f"the tag app changes within the episode, which falls into {', '.join(names[:3])}"
        + ("" if len(names) <= 3 else f" and {len(names) - 3} more"),
        "the same tag app, or none, for all steps of an episode",
        "name the episode in the loader, Step(episode=...), or rename the tag; the parts count as "
        "episodes until then",
        tuple(step.sample_id for part in parts.values() for step in part),
    )


def merged_episodes(steps: Iterable[Step]) -> list[Finding]:
    """A finding for each episode in which a number of a step comes twice, as if two had one id.

    An episode that the loader has named is what it says.

    Args:
        steps: all of the data, each with a sample id of its own.
    """
    episodes: dict[str, list[Step]] = {}
    for step in steps:
        if not _is_named(step):
            episodes.setdefault(step.episode, []).append(step)
    counts = ((one, Counter(step.step_index for step in one)) for one in episodes.values())
    return [
        _merged(one, [number for number, count in found.items() if count > 1])
        for one, found in counts
        if len(found) < len(one)
    ]


def _merged(steps: Sequence[Step], repeated: Sequence[int]) -> Finding:
    first = repeated[0]
    twice = [step.sample_id for step in steps if step.step_index == first]
    also = ", ".join(map(str, repeated[1:4])) + (" and others" if len(repeated) > 4 else "")
    return Finding(
        "step-number-repeated",
        "error",
        steps[0].episode,
        f"{counted(len(twice), 'step')} of the episode have step_index {first}: "
        + ", ".join(twice[:3])
        + ("" if len(twice) <= 3 else f" and {len(twice) - 3} more")
        + ("" if len(repeated) == 1 else f"; so it is with step_index {also}"),
        "each step_index once in an episode",
        "give each of several episodes an episode_id of its own, or number the steps from 0; they "
        "count as one episode until then",
        tuple(step.sample_id for step in steps),
    )


def lacking_axes(profiles: Iterable[Profile], steps: Sequence[Step]) -> list[Finding]:
    """A finding for each axis of a profile's table that is the tag of no step.

    Args:
        profiles: of the task.
        steps: all of the data.
    """
    tags = {tag for step in steps for tag in step.tags}
    users: dict[str, str] = {}
    for profile in profiles:
        for axis in getattr(profile, "by", ()):
            users.setdefault(axis, profile.name)
    return [
        Finding(
            "axis-unknown",
            "warning",
            name,
            f"no step has the tag {axis}, by which the profile's table has groups",
            f"one of {', '.join(sorted(tags))}" if tags else "steps with tags",
            meant(axis, tags) or "correct `by` of the profile, or the tags of the steps",
        )
        for axis, name in users.items()
        if steps and axis not in tags
    ]


_PLACES = frozenset({"target-outside", "target-unreadable", "box-outside", "box-unusable"})


def misplaced_targets(source: LoadedDataset) -> list[Finding]:
    """A finding for each step whose action is done where no screen is.

    Steps of whose places the loader has said something are left to it.

    Args:
        source: with the findings of its loader.
    """
    told = {
        name
        for found in source.findings
        if found.code in _PLACES
        for name in (found.where, *found.sample_ids)
    }
    steps = (step for step in source.steps if step.action and step.sample_id not in told)
    return [found for step in steps if (found := _misplaced(step))]


def _misplaced(step: Step) -> Finding | None:
    """The first place of a step's action that is wrong."""
    assert step.action
    remedy = "correct the row; the target is used as it is until then"
    actions = (step.action, *step.action.then)
    for region in (place for one in actions for place in (*one.start, *one.end)):
        if isinstance(region, Point):
            left, top, right, bottom = region.x, region.y, region.x, region.y
        else:
            left, top, right, bottom = region.left, region.top, region.right, region.bottom
        edges = short([left, top, right, bottom])
        width, height = {"px": step.screen, "rel": (1, 1)}.get(region.space, (1000, 1000))
        try:
            in_order = left <= right and top <= bottom
            inside = min(left, top) >= 0 and right <= width and bottom <= height
        except TypeError:
            in_order = inside = False
        if not in_order:
            code, what = "box-unusable", f"the target {edges} is not a box"
            expected = "four numbers, left <= right and top <= bottom"
        elif inside or (region.space == "px" and min(step.screen) < 1):  # or nobody knows
            continue
        else:
            code, what = "target-outside", f"the target {edges} exceeds the screen"
            unit = "" if region.space == "px" else f', in "{region.space}"'
            expected = f"a place within {width} x {height}{unit}"
        return Finding(code, "warning", step.sample_id, what, expected, remedy, (step.sample_id,))
    return None
