"""OSWorld's rollouts -> steps, one for each turn of the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.actions import Action, Screen
from omnidata.errors import Finding, MediaError
from omnidata.loaders.osworld_actions import Reading, calls_of
from omnidata.loaders.osworld_domains import group_of
from omnidata.loaders.osworld_instructions import Instructions
from omnidata.loaders.osworld_recording import Recording, Timeline, estimated, matched
from omnidata.loaders.osworld_result import Result
from omnidata.loaders.osworld_tree import RECORDING, Rollout
from omnidata.loaders.osworld_turns import Run, Turn
from omnidata.loaders.place import Note, Place
from omnidata.media import image_size, unsafe
from omnidata.pyautogui import Code, nearest
from omnidata.types import MediaRef, Modality, Step

AlignBy = Literal["clock", "pictures"]

TAGS: Final = (
    "domain", "group", "action_space", "observation_type", "model", "outcome", "alignment",
)  # fmt: skip
"""The tags of a step: where its rollout lies, the group of Table 5, "success", "partial", "failure"
or "unfinished", and how its clips are cut: "exact", "estimated", or "none" where it has none."""

ROLES: Final[Mapping[str, Modality]] = {
    "screenshot": "image",
    "screenshot_after": "image",
    "video": "video",
    "video_after": "video",
}
"""`screenshot` and `video` show what was there before the agent acted; what its action did is in
`screenshot_after`, which is the one that the line names, and in `video_after`."""

UNKNOWN: Final[Screen] = (0, 0)
"""The screen of a step without a screenshot that can be read."""

_FIRST: Final = "step_0.png"  # of forks that keep what the agent saw first


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a run beside its turns.

    Attributes:
        rollout: the folder.
        run: the turns.
        number: of the run in its file, 0-based.
        runs: how many the file has; recording and result are about the last one.
        result: the rollout's.
    """

    rollout: Rollout
    run: Run
    number: int
    runs: int
    result: Result

    @property
    def is_last(self) -> bool:
        """Whether recording and result are about this one."""
        return self.number == self.runs - 1

    @property
    def episode_id(self) -> str:
        """The folder; of runs that were followed by others, with their number."""
        place = self.rollout.example_id if self.rollout.path == "." else self.rollout.path
        return place + ("" if self.is_last else f"@{self.number + 1}")


@dataclass(slots=True)
class StepReader:
    """Turns the runs of rollouts into steps.

    Attributes:
        instructions: where the tasks are said.
        align: how clips are cut.
        note: takes the findings.
    """

    instructions: Instructions
    align: AlignBy
    note: Note
    _sizes: dict[tuple[Path, str], Screen] = field(default_factory=dict)

    def steps(self, told: Told) -> Iterator[Step]:
        """The steps of a run, in order."""
        turns = told.run.turns
        if not turns:
            return
        shown = self._pictures(told)
        recording = self._recording(told)
        if shown[0] is None and turns[0].shown_before is None:
            shown[0] = self._first(told, recording)
        line = self._timeline(told, recording, shown[1:])
        tags = _tags(told, line)
        usual = self._first_size(shown)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, turn in enumerate(turns):
            index = turn.number - told.run.first_number
            sample_id = f"{told.episode_id}/{index}"
            media = self._media(told, number, shown, line)
            screen = self._screen(media, usual)
            reading = calls_of({"action_space": told.rollout.action_space, "rows": turn.rows})
            action = self._action(reading, turn, sample_id)
            gap = index - len(history)  # turns in which the agent said nothing that could be run
            history += [None] * gap
            screens += [screen] * gap
            step = Step(
                sample_id=sample_id,
                episode_id=told.episode_id,
                step_index=index,
                num_steps=len(turns),
                instruction=self.instructions.of(told.rollout, turn.rows[0]),
                screen=screen,
                media=media,
                history=tuple(history),
                history_screens=tuple(screens),
                action=action,
                tags=tags,
                source=_source(told, number, line),
            )
            yield named(step)
            history.append(action)
            screens.append(screen)

    def _pictures(self, told: Told) -> list[MediaRef | None]:
        """What was seen before the first turn, and after each."""
        names = [told.run.reset, *(turn.shown_after for turn in told.run.turns)]
        return [self._picture(told.rollout, name) for name in names]

    def _picture(self, rollout: Rollout, name: str | None) -> MediaRef | None:
        if name is None:
            return None
        if reason := unsafe(name):
            self.note(
                Finding(
                    "path-unsafe",
                    "error",
                    rollout.path,
                    f"screenshot: {reason}",
                    "the name of a file in the same folder",
                    "mend the name; the steps lack the picture until then",
                )
            )
            return MediaRef("image", rollout.root, name)  # which nobody opens
        return MediaRef("image", rollout.root, rollout.name(name))

    def _media(
        self,
        told: Told,
        number: int,
        shown: Sequence[MediaRef | None],
        line: Timeline | None,
    ) -> dict[str, MediaRef | None]:
        turn = told.run.turns[number]
        return {
            "screenshot": self._picture(told.rollout, turn.shown_before) or shown[number],
            "screenshot_after": shown[number + 1],
            "video": line.clip(number) if line else None,
            "video_after": line.clip(number + 1) if line else None,
        }

    def _first(self, told: Told, recording: Recording | None) -> MediaRef | None:
        """What the agent saw first, which the release does not keep; None with a finding."""
        kept = MediaRef("image", told.rollout.root, told.rollout.name(_FIRST))
        if self._size(kept) != UNKNOWN:
            return kept
        if recording is not None:
            return recording.first_frame(told.rollout.name("first_frame.png"))
        Place(told.episode_id, self.note).warn(
            "observation-missing",
            "the first screenshot is not kept, and "
            + ("no recording can be read" if told.is_last else "the recording is of a later run"),
            f"{RECORDING}, whose first frame it is",
            "the first step has no screenshot",
        )
        return None

    def _recording(self, told: Told) -> Recording | None:
        ref = MediaRef("video", told.rollout.root, told.rollout.name(RECORDING))
        if not told.is_last or not (ref.root / ref.path).exists():
            return None
        try:
            return Recording.of(ref)
        except MediaError as error:
            self._broken(told, error)
            return None

    def _broken(self, told: Told, error: MediaError) -> None:
        Place(told.episode_id, self.note).refuse(
            "recording-broken",
            f"{RECORDING}: {error.what}",
            error.expected,
            "copy the recording again; what is cut from it is missing until then",
        )

    def _timeline(
        self, told: Told, recording: Recording | None, pictures: Sequence[MediaRef | None]
    ) -> Timeline | None:
        """Where the turns lie in the recording; None without one, or without times."""
        if recording is None:
            return None
        times = [turn.time for turn in told.run.turns]
        known = [time for time in times if time is not None]
        if len(known) < len(times) or known != sorted(known):
            Place(told.episode_id, self.note).warn(
                "times-unusable",
                "the turns have no times, or times that go back",
                "action_timestamp YYYYmmdd@HHMMSS, with or without microseconds",
                "the steps have no clips; mend the times",
            )
            return None
        try:
            if self.align == "pictures":
                return matched(recording, known, pictures)
        except MediaError as error:
            self._broken(told, error)
        return estimated(recording, known)

    def _screen(self, media: Mapping[str, MediaRef | None], usual: Screen) -> Screen:
        """The size of the screenshot, or of one of the same machine's, which has one screen."""
        own = media["screenshot"]
        size = UNKNOWN
        if own is not None and (own.cell is None or usual == UNKNOWN):
            size = self._size(own)
        return usual if size == UNKNOWN else size

    def _first_size(self, shown: Sequence[MediaRef | None]) -> Screen:
        """The size of the first screenshot that can be read."""
        files = (ref for ref in shown if ref is not None and ref.cell is None)
        return next((size for ref in files if (size := self._size(ref)) != UNKNOWN), UNKNOWN)

    def _size(self, ref: MediaRef) -> Screen:
        key = ref.root, ref.path
        if key not in self._sizes:
            try:
                self._sizes[key] = image_size(ref)
            except MediaError:
                self._sizes[key] = UNKNOWN
        return self._sizes[key]

    def _action(self, reading: Reading, turn: Turn, sample_id: str) -> Action | None:
        """What comes nearest among the primitives; what cannot be said with them is a finding."""
        place = Place(f"{sample_id} ({turn.where})", self.note)
        for code, what in reading.flags.items():
            if code == "action-foreign":
                place.refuse(
                    code,
                    what,
                    "the name of an action of computer_13, or code",
                    "name the loader of that dataset; here the step has no action",
                )
            else:
                place.warn(code, what, "an action of the rollout's action space", "it is read")
        action = nearest(reading.calls, space="px", said=said(turn.rows))
        if action is None:
            unread = next((one for one in reading.calls if isinstance(one, Code)), None)
            place.warn(
                "action-code" if unread else "action-inexpressible",
                f"the action is not understood: {unread.why}"
                if unread
                else "no single primitive comes near to the action",
                "calls of pyautogui, or an action of computer_13",
                "the step has no action; its source keeps the text, which is never run",
            )
        return action


def named(step: Step) -> Step:
    """The step with its group: all rollouts of one example, whichever agent made them."""
    return replace(step, group=step.source["example_id"])


def said(rows: Sequence[Mapping[str, Any]]) -> str:
    """A turn's actions as the agent wrote them, one below the other."""
    found = [row.get("action", row.get("actions", "")) for row in rows]
    return "\n".join(
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found
    )


def _tags(told: Told, line: Timeline | None) -> dict[str, str]:
    rollout = told.rollout
    found = {
        "domain": rollout.domain,
        "group": group_of().get(rollout.domain, ""),
        "action_space": rollout.action_space,
        "observation_type": rollout.observation_type,
        "model": rollout.model,
        "outcome": told.result.outcome if told.is_last else "unfinished",
        "alignment": line.alignment if line else "none",
    }
    return {tag: value for tag, value in found.items() if value}


def _source(told: Told, number: int, line: Timeline | None) -> dict[str, Any]:
    """The lines untouched, and what the folder says beside them."""
    rollout, turn = told.rollout, told.run.turns[number]
    return {
        "rows": turn.rows,
        "before": told.run.before if number == 0 else [],
        "after": turn.after,
        "path": rollout.path,
        "run": told.number,
        "runs": told.runs,
        "domain": rollout.domain,
        "example_id": rollout.example_id,
        "instruction_id": rollout.instruction_id,
        "action_space": rollout.action_space,
        "observation_type": rollout.observation_type,
        "model": rollout.model,
        "score": told.result.score if told.is_last else None,
        "start_s": line.starts[number] if line else None,
        "alignment": line.alignment if line else None,
    }
