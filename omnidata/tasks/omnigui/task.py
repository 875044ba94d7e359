"""The task `omnigui`: the unified prompt, two profiles, right answers, baselines, explanations."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from omnidata.actions import (
    NUMBERS,
    Action,
    Box,
    Direction,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    finger_way,
    history_text,
    round_half_up,
)
from omnidata.dialects import CannotSayError
from omnidata.errors import DataError, Finding, UsageError
from omnidata.jsontext import compact, hash_of, whole_number
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS, instructions
from omnidata.loaders.instructions import MIN_BYTES, Language, find_voice, voice_file
from omnidata.metrics.intervals import Ints, Mask
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import place
from omnidata.tasks.explaining import RuleWords, by_action, explain_action
from omnidata.tasks.json_answers import LABELS, Answer, Pair, ParseFailure
from omnidata.tasks.log_rows import Difference
from omnidata.tasks.omnigui import load as loader
from omnidata.tasks.omnigui import rules as matching
from omnidata.tasks.omnigui.answers import PLACED, parse
from omnidata.tasks.omnigui.files import app_key, find, language_of, table7
from omnidata.tasks.omnigui.overview import TABLES, VARIATIONS, View
from omnidata.tasks.omnigui.rows import ROLES, is_history, success_of, success_values
from omnidata.tasks.omnigui.rules import POINT_RADIUS, PredictedSpace, on_screen
from omnidata.tasks.profiles import EpisodeProfile
from omnidata.tasks.published import Published, read_published
from omnidata.tasks.totals import Runs, number_keys
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    MediaRef,
    Message,
    Outcome,
    Overlays,
    Part,
    Profile,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

# OmniGUI's unified prompt, version 2, with its ablations and its voice instruction.
#
# The text is the benchmark's (Appendix A.1), kept byte for byte as the release has it in
# `prompts/omnigui_v2.txt`; `prompts/SOURCES.md` has the hashes of all five variants.

HISTORY_VERSION = "history-v1"
OPTIONS: Mapping[str, Sequence[str]] = {
    "modalities": ("IAV", "IV", "IA", "I"),
    "history": ("gold", "none", "predicted"),
    "history_screenshot": ("on", "off"),
    "prompt_form": ("paper", "release"),
    "voice": ("",),
    "voice_form": ("paper", "release"),
}
_WITH = {
    "IAV": "screenshots, audio and video",
    "IV": "screenshots and video",
    "IA": "screenshots and audio",
    "I": "screenshots",
}
_ASK = "Analyze the current screenshot and output the next action as JSON."
_DIRECTIVE = "Listen to the voice instruction audio for the task description."
_PLACEHOLDER = {
    "paper": "[Please listen to the voice instruction]",
    "release": "[请听语音指令 / Please listen to the voice instruction]",
}
_FIRST_RULE = "- Base actions on the current screenshot (the last image in your input).\n"
_RELEASE_ENGLISH = {
    *("amazon", "instagram", "snapchat", "spotify", "x", "youtube", "tiktok", "duolingo"),
    *("googletranslate", "imdb", "ted", "vimeo", "redbulltv", "tasty"),
}


def _instructions_of(step: Step) -> tuple[str, ...]:
    """The paper's, then the release's if it differs; an empty one of the release is left out."""
    release = _release_instruction(step.source) if _is_released(step.source) else ""
    others = (release,) if release and release != step.instruction else ()
    return (step.instruction, *others)


@cache
def system_prompt(modalities: str = "IAV", voice_form: str = "") -> str:
    """The system prompt.

    Args:
        modalities: "IAV", or an ablation of section 4.3: "IV", "IA", "I".
        voice_form: "" for a written instruction; "paper" puts the directive before the normal first
            sentence (Appendix A.1); "release" is the released code's own wording.

    Examples:
        >>> print(system_prompt("I").split(". You need")[0])
        You are an Android GUI Agent. You are given a task and your action history, with screenshots
    """
    folder = resources.files("omnidata.tasks.omnigui").joinpath("prompts")
    text = folder.joinpath("omnigui_v2.txt").read_text(encoding="utf-8")
    if voice_form == "release":
        text = text.replace(
            "You are given a task and your action history, with screenshots, audio and video. "
            "You need to perform the next action",
            "You are given a task via voice instruction, along with your action history, "
            "screenshots, audio and video. You need to listen to the voice instruction and perform "
            "the next action",
        ).replace(_FIRST_RULE, f"{_FIRST_RULE}- {_DIRECTIVE}\n")
    text = text.replace(_WITH["IAV"], _WITH[modalities], 1)
    return f"{_DIRECTIVE}\n{text}" if voice_form == "paper" else text


class Prompt:
    """Builds conversations in the paper's order: history shot, clip, audio, screenshot, text."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        self.voice = Path(options["voice"]) if options["voice"] else None
        self.voice_form = options["voice_form"] if self.voice else ""
        if self.voice and not self.voice.is_dir():
            raise UsageError(
                "the folder does not exist",
                where=f"-T voice={self.voice}",
                expected="a folder of WAV files named after the MD5 of each instruction",
            )
        self.hash = hash_of(
            [
                {k: v for k, v in options.items() if k in OPTIONS and k != "voice"},
                system_prompt(options["modalities"], self.voice_form),
                self.voice_form and _PLACEHOLDER[self.voice_form],
                _ASK,
                HISTORY_VERSION,
            ]
        )

    def conversation(
        self,
        step: Step,
        predicted: Sequence[Action | None] | None = None,
        *,
        forgotten: Callable[[int], int] = lambda count: 0,
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: the step.
            predicted: the model's own actions so far; used with `history=predicted` only.
            forgotten: of so many earlier actions, how many are told no more.

        Raises:
            DataError: the voice instruction has no WAV file (`voice_form=paper`).
        """
        instruction = step.instruction
        if self.options["prompt_form"] == "release" and _is_released(step.source):
            instruction = _release_instruction(step.source)
        voice = self._voice(step, instruction)
        goal = _PLACEHOLDER[self.voice_form] if voice else instruction
        blocks = [f"Goal: {goal}", f"Step: {step.step_index}"]
        if lines := self._history(step, predicted, forgotten):
            blocks.append("Action History:\n" + "\n".join(lines))
        parts = [*self._media(step, voice), Part("text", "\n\n".join([*blocks, _ASK]))]
        system = system_prompt(self.options["modalities"], self.voice_form)
        return (
            Message("system", (Part("text", system),)),
            Message("user", tuple(parts)),
        )

    def _media(self, step: Step, voice: MediaRef | None) -> list[Part]:
        modalities = self.options["modalities"]
        parts: list[Part] = []
        past = step.media.get("history_screenshot")
        if past and self.options["history_screenshot"] == "on":
            parts += [
                Part("text", "[History Screenshot]:", role="history_screenshot"),
                Part("image", media=past, role="history_screenshot"),
            ]
        if "V" in modalities and (clip := step.media.get("video")):
            parts.append(Part("video", media=clip, role="video"))
        if "A" in modalities and (audio := step.media.get("audio")):
            parts.append(Part("audio", media=audio, role="audio"))
        if screenshot := step.media.get("screenshot"):
            parts.append(Part("image", media=screenshot, role="screenshot"))
        if voice:
            spoken = Part("audio", media=voice, role="voice")
            at = len(parts) - (self.voice_form == "paper" and bool(step.media.get("screenshot")))
            parts.insert(at, spoken)
        return parts

    def _history(
        self,
        step: Step,
        predicted: Sequence[Action | None] | None,
        forgotten: Callable[[int], int],
    ) -> list[str]:
        if self.options["history"] == "none":
            return []
        own = step.source.get("action_history")
        if self.options["history"] == "gold" and is_history(own):
            told = own[forgotten(len(own)) :]
            return [f"Step {entry['step_index']}: {entry['action_text']}" for entry in told]
        past = step.history if self.options["history"] == "gold" else predicted or ()
        first = forgotten(len(past))
        return [
            f"Step {index}: {history_text(action, screen)}"
            for index, (action, screen) in enumerate(zip(past, step.history_screens, strict=False))
            if action is not None and index >= first
        ]

    def _voice(self, step: Step, instruction: str) -> MediaRef | None:
        if self.voice is None:
            return None
        if found := find_voice(self.voice, instruction):
            return found
        if self.voice_form == "release":
            return None  # the released code falls back to the written goal without a word
        raise DataError(
            "the instruction has no spoken form",
            where=f"{step.sample_id}: {self.voice / voice_file(instruction)}",
            expected=f"a WAV file of more than {MIN_BYTES} bytes, named after the MD5 of "
            "the instruction",
            remedy=f"run `omnidata voice omnigui DATA {self.voice}` first, or leave out -T voice",
        )


def _is_released(row: Mapping[str, Any]) -> bool:
    return "app" in row or "instruction" in row


def _release_instruction(row: Mapping[str, Any]) -> str:
    if row.get("app") in _RELEASE_ENGLISH:
        return str(row.get("instruction_en", row.get("instruction", "")))
    return str(row.get("instruction", ""))


# OmniGUI's two scoring profiles: the paper's rules and the released evaluator's.
#
# Both read answers with the release's tolerant parser; an output on which it raises is `unparsed`.

Values = tuple[bool | None, bool | None, bool, bool | None]
_WRONG: Values = (False, False, False, False)
SPACES: tuple[matching.PredictedSpace, ...] = ("norm1000", "px", "rel", "auto")


class OmniGuiProfile(EpisodeProfile):
    """Base class of the two profiles: the parser, the axes and the counts."""

    values = (*EpisodeProfile.values, "extension")
    by: Mapping[str, Sequence[str]] = {
        "dimension": DIMENSIONS,
        "dependency": DEPENDENCIES,
        "app": (),
        "language": (),
    }

    def __init__(self, space: matching.PredictedSpace = "norm1000") -> None:
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's target.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text)
        if isinstance(answer, ParseFailure):
            return Verdict("unparsed", self._values(step, None), None, answer.reason)
        meant = on_screen(answer, self.space, receipt, step.screen, where=step.sample_id)
        try:
            return Verdict("ok", self._values(step, meant), answer.as_dict())
        except matching.RaisesError as error:
            return Verdict("unparsed", _WRONG, None, str(error))

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        return Verdict(outcome, self._values(step, None))

    def _values(self, step: Step, answer: Answer | None) -> Values:
        """The `VALUES` of a step; None = nothing could be read."""
        raise AssertionError("a profile says how it judges")

    def _stated_length(self, step: Step) -> int | None:
        return whole_number(step.source.get("episode_length"))

    def _more_counts(self, rows: VerdictColumns, judged: Mask) -> dict[str, int]:
        return {"judged_by_extension": int(np.nansum(rows.values["extension"][judged]))}


class PaperProfile(OmniGuiProfile):
    """`omnigui-paper`: section 3.4, with the open points of `tasks/omnigui/rules.py`."""

    name = "omnigui-paper"
    source = "OmniGUI, section 3.4"

    def _values(self, step: Step, answer: Answer | None) -> Values:
        as_prompted = answer is not None and answer.as_prompted
        if step.action is None:
            return None, None, as_prompted, None
        match = matching.judge_paper(step.action, step.screen, answer, self.space)
        return match[0], match[1], as_prompted, match[2]


class ReleaseProfile(OmniGuiProfile):
    """`omnigui-release`: the published evaluator, verdict for verdict.

    It has no relative coordinates: the task offers this profile with the other units only.
    """

    name = "omnigui-release"
    source = "OmniGUI's released evaluator"
    goal_progress = "GP_prefix"
    of_nothing = 0.0

    def _values(self, step: Step, answer: Answer | None) -> Values:
        """Raises `RaisesError` where the release raises; a step without an answer is wrong."""
        try:
            match = matching.judge_release(step.source, answer, self.space)
        except matching.RaisesError:
            if answer is None:
                return _WRONG
            raise
        return match[0], match[1], answer is not None and answer.as_prompted, False

    def _episodes(self, steps: Sequence[Step], runs: Runs) -> Ints:
        return number_keys(_release_key(step) for step in steps)


def _release_key(step: Step) -> str:
    row = step.source
    default = "unknown" if "app" in row else step.tags["app"]
    return f"{row.get('subset', default)}-{row.get('episode_id', 'unknown')}"


# An action -> the object that the unified prompt asks of a model.


def answer(action: Action, screen: Screen, *, space: Space = "norm1000") -> dict[str, Any]:
    """The action in the form that the unified prompt asks of a model.

    A swipe whose source names no lift ends 30 % of the screen further along its direction.

    Args:
        action: an action with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        space: unit of the coordinates.

    Raises:
        KeyError: no primitive is such an action.

    Examples:
        >>> answer(Action("tap", (Box(210, 786, 351, 850, "px"),)), (720, 1600))
        {'action_type': 0, 'coordinate': [390, 511]}
    """
    body: dict[str, Any] = {"action_type": NUMBERS[action.label]}
    if action.kind == "type":
        body["text"] = action.text or ""
    elif action.kind in PLACED and action.start:
        body["coordinate"] = _inside(action.start[0], screen, space)
    elif action.kind == "swipe" and action.start:
        end = action.end or (_along(action, screen),)
        body["start_coordinate"] = _inside(action.start[0], screen, space)
        body["end_coordinate"] = _inside(end[0], screen, space)
    return body


def _body_of(action: Action) -> dict[str, Any]:
    """What any agent does on a phone, as the object that the unified prompt asks for.

    A wheel that turns, and a drag, are the swipe that shows the same; keys that have a primitive
    are it; an end of which nobody says more is a success.

    Raises:
        CannotSayError: no primitive is it.

    Examples:
        >>> _body_of(Action("scroll", (Point(500, 700, "norm1000"),), direction="down"))
        {'action_type': 3, 'start_coordinate': [500, 700]}
    """
    label = action.label
    if action.kind in ("scroll", "swipe", "drag"):
        way = finger_way(replace(action, kind="swipe") if action.kind == "drag" else action)
        label = f"SWIPE_{way.upper()}" if way else "SWIPE"
    elif action.kind in ("keys", "hotkey") and len(action.keys) == 1:
        key = action.keys[0].upper()
        label = key if key in _KEYED else label
    elif action.kind == "done":
        label = "TASK_IMPOSSIBLE" if action.status == "failure" else "TASK_COMPLETE"
    elif action.kind == "wait":
        label = "NONE"
    if label not in NUMBERS or action.held or action.button != "left":
        raise CannotSayError(f"no primitive of OmniGUI is {action.label}")
    body: dict[str, Any] = {"action_type": NUMBERS[label]}
    places = [[point.x, point.y] for point in map(centre, (*action.start[:1], *action.end[:1]))]
    if action.kind == "type":
        body["text"] = action.text or ""
    elif label.startswith("SWIPE"):
        body |= dict(zip(("start_coordinate", "end_coordinate"), places, strict=False))
    elif places and action.kind in PLACED:
        body["coordinate"] = places[0]
    return body


_KEYED: Final = ("BACK", "HOME")
"""The primitives that are keys; others are no names of keys, whatever a model presses."""


def _inside(region: Region, screen: Screen, space: Space) -> list[float]:
    """Whole numbers where possible; an edge only if nothing lies between it and the other edge."""
    middle = convert(centre(region), space, screen)
    low = high = middle
    if isinstance(region, Box):
        low = convert(Point(region.left, region.top, region.space), space, screen)
        high = convert(Point(region.right, region.bottom, region.space), space, screen)
    values: list[float] = []
    for value, least, most in ((middle.x, low.x, high.x), (middle.y, low.y, high.y)):
        whole = round_half_up(value)
        slack = 1e-9 * abs(whole)
        inside = least + slack < whole < most - slack or least == whole == most
        values.append(whole if inside else value)
    return values


_AHEAD: Final[Mapping[Direction | None, tuple[int, int]]] = {
    "up": (0, -300),
    "down": (0, 300),
    "left": (-300, 0),
    "right": (300, 0),
}


def _along(action: Action, screen: Screen) -> Point:
    begin = convert(centre(action.start[0]), "norm1000", screen)
    dx, dy = _AHEAD[action.direction]
    return Point(min(1000, max(0, begin.x + dx)), min(1000, max(0, begin.y + dy)), "norm1000")


# OmniGUI's right answer: compact JSON to the letter of the prompt.


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The expert's action, as `Task.target` gives it.

    A swipe whose source names no lift ends 30 % of the screen further along its direction. Of
    several alternatives it is the first.

    Args:
        step: of OmniGUI.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where there is no action, or it lacks its place or its text.
    """
    action = step.action
    if action is None or not _is_whole(action):
        return None
    body = answer(action, step.screen)
    marked = dict(body)
    places = []
    for key, region in _regions(action, body):
        found = place(region, step.screen, space=space, size=size)
        places.append(found)
        body[key], marked[key] = list(found), PLACE
    if not places:  # what stands for a place stands for nothing else
        text = compact(body)
        return Target(text, text.replace(PLACE, "bbox"))
    return Target(compact(body), compact(marked).replace(f'"{PLACE}"', PLACE), tuple(places))


def _is_whole(action: Action) -> bool:
    if action.kind in PLACED or action.kind == "swipe":
        return bool(action.start)
    return action.kind != "type" or bool(action.text)


def _regions(action: Action, body: dict[str, Any]) -> Iterator[tuple[str, Region]]:
    if action.kind in PLACED:
        yield "coordinate", action.start[0]
    elif action.kind == "swipe":
        yield "start_coordinate", action.start[0]
        yield "end_coordinate", action.end[0] if action.end else _lift(body)


def _lift(body: dict[str, Any]) -> Point:
    x, y = body["end_coordinate"]
    return Point(x, y, "norm1000")


# OmniGUI's baselines: what a score means without a model. They look at targets alone.

NAMES = ("oracle", "center", "random", "always-wait", "majority")
_CENTRE = Point(500, 500, "norm1000")


def policy(
    name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """One of five rules.

    * `oracle` answers with the target: the ceiling of a profile on this data.
    * `center` always taps the middle of the screen.
    * `random` draws a primitive and a place for each step from `-M seed=N` (0) and the step's id.
    * `always-wait` always answers NONE.
    * `majority` always answers the most frequent primitive of the data, at its mean place.

    Args:
        name: of the rule.
        steps: those it may look at.
        space: the unit in which it writes coordinates.
        options: as given with `-M key=value`.

    Returns:
        A step's answer, as the JSON that the prompt asks for.

    Raises:
        UsageError: there is no such rule or option.
    """
    if name not in NAMES:
        raise UsageError(
            f'there is no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(NAMES)}",
            remedy="choose one of these",
        )
    allowed = {"seed"} if name == "random" else set()
    for option in sorted(options.keys() - allowed):
        raise UsageError(
            f'baseline:{name} has no option "{option}"',
            where=f"-M {option}={options[option]}",
            expected="seed" if allowed else "no options",
        )
    seed = options.get("seed", "0")
    if not seed.lstrip("-").isdigit():
        raise UsageError("the seed is not a number", where=f"-M seed={seed}", expected="seed=0")
    usual = _majority(steps) if name == "majority" else Action("none")
    rules: Mapping[str, Callable[[Step], Action]] = {
        "oracle": lambda step: step.action or Action("done", status="failure"),
        "center": lambda step: Action("tap", (_CENTRE,)),
        "random": lambda step: _random(step, int(seed)),
        "always-wait": lambda step: Action("none"),
        "majority": lambda step: usual,
    }
    rule = rules[name]
    return lambda step: json.dumps(answer(rule(step), step.screen, space=space), ensure_ascii=False)


def _random(step: Step, seed: int) -> Action:
    # As bytes, since an id may hold a lone surrogate; the numbers are the same as from the text.
    draw = random.Random(f"{seed}/{step.sample_id}".encode("utf-8", "surrogatepass"))
    label = draw.choice(list(NUMBERS))
    points = [Point(draw.randint(0, 1000), draw.randint(0, 1000), "norm1000") for _ in "se"]
    return Action.of(label, (points[0],), (points[1],), text="")


def _majority(steps: Sequence[Step]) -> Action:
    targets = [(step.action, step.screen) for step in steps if step.action]
    if not targets:
        return Action("none")
    label = Counter(action.label for action, _ in targets).most_common(1)[0][0]
    same = [(action, screen) for action, screen in targets if action.label == label]
    if label == "INPUT":
        return Action("type", text=Counter(action.text for action, _ in same).most_common(1)[0][0])
    start = [convert(centre(a.start[0]), "norm1000", screen) for a, screen in same if a.start]
    end = [convert(centre(a.end[0]), "norm1000", screen) for a, screen in same if a.end]
    return Action.of(label, _mean(start), _mean(end))


def _mean(points: Sequence[Point]) -> tuple[Point, ...]:
    if not points:
        return ()
    x, y = fmean(point.x for point in points), fmean(point.y for point in points)
    return (Point(round(x), round(y), "norm1000"),)


_FARTHEST = 1e9

# How the sentences of pages tell of each profile's rules.
_PAPER: Final = RuleWords(unlike="", reach=POINT_RADIUS)
_RELEASE: Final = RuleWords(
    borderline="the released evaluator truncates both to whole thousandths of the screen first",
    same_text="one text holds the other",
    unlike="",
    reach=POINT_RADIUS,
)
_NEVER_EXACT: Final = frozenset({"NONE", "DOUBLE_TAP"})
"""What the released evaluator counts as an exact match in no answer."""


class OmniGui(Benchmark):
    """OmniGUI: what does the agent do next, given what it sees, hears and remembers?

    Args:
        options: `modalities`, `history`, `history_screenshot`, `prompt_form`, `voice` (a folder of
            WAV files), `voice_form`, `coordinates`; unknown ones are a `UsageError`.
    """

    title = "OmniGUI"
    asked = "action"
    detailed_actions = False
    holds = "predict the next action on a phone from screenshots, clips and sound"
    platform = "mobile"
    tags = loader.TAGS
    roles = ROLES
    subsets = (
        *DIMENSIONS,
        *DEPENDENCIES,
        *("en", "zh"),
        *sorted(row["app"] for row in table7()["apps"]),
    )
    overview = View
    sources = (
        Publication(
            "OmniGUI",
            "https://huggingface.co/datasets/OmniGUI/OmniGUI",
            paper="2605.18758",
            remote=Remote(
                "hf://datasets/OmniGUI/OmniGUI",
                note="the id that the release's README links to; its download command names "
                "XIAOCHENLIN00zz/OmniGUI. One README counts 708 episodes and 2,572 steps, others "
                "709 and 2,579: report the commit. Size, licence and gating are not verified",
            ),
        ),
    )
    tables = TABLES
    variations = VARIATIONS
    prompted_space: Space | None = "norm1000"
    history_lag = 2
    reads_episode_tree = True
    logs_by_number = True
    baselines = NAMES
    allowed: Mapping[str, Sequence[str]] = {**OPTIONS, "coordinates": SPACES}

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        profiles: list[Profile] = [PaperProfile(self.space)]
        if self.space != "rel":  # a unit that the released evaluator does not know
            profiles.append(ReleaseProfile(self.space))
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(data, check_media=check_media, strict=strict)

    def detect(self, data: Path) -> bool:
        return loader.recognises(data)

    def fingerprint(self, data: Path) -> str:
        return find(data).fingerprint()

    def named(self, step: Step) -> Step:
        """Group twins, or else the episode."""
        return loader.assign_group(step)

    def together(self, steps: Sequence[Step], note: Callable[[Finding], None]) -> Sequence[Step]:
        return loader.together(steps, note)

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """What the column `is_success` of the episode's row and of its steps' says.

        Rows that contradict each other tell of no success.
        """
        rows = (row, *(step.source for step in steps))
        return success_of(rows) is True if success_values(rows) else None

    def right_actions(self, step: Step) -> Sequence[Action]:
        return (step.action,) if step.action and _is_whole(step.action) else ()

    def express(self, actions: Sequence[Action], step: Step) -> str:
        return compact(_body_of(actions[0]))

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        return self._prompt.conversation(step, predicted, forgotten=self.forgotten)

    @property
    def space(self) -> PredictedSpace:
        """The unit of coordinates in answers (`-T coordinates`)."""
        return next(space for space in SPACES if space == self.options["coordinates"])

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return that rule; coordinates are in the unit of answers."""
        return policy(name, steps, space=self._written, options=options)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        return target(step, space=space or self._written, size=size or step.screen)

    @property
    def _written(self) -> Space:
        return "norm1000" if self.space == "auto" else self.space

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        found = parse(text)
        if isinstance(found, ParseFailure):
            return None
        return self._action(on_screen(found, self.space, receipt, (0, 0), where="the step before"))

    def _action(self, answer: Answer | None) -> Action | None:
        if answer is None:
            return None
        start, end = self._region(answer.start), self._region(answer.end)
        return Action.of(LABELS[answer.kind], start, end, text=answer.text)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        is_release = profile == ReleaseProfile.name

        def sentence(wanted: Action, said: Action, overlays: Overlays, right: bool) -> str:
            label = said.label
            if is_release and not right and label == wanted.label and label in _NEVER_EXACT:
                return f"the released evaluator counts no {label} as an exact match"
            rule = _RELEASE if is_release else _PAPER
            return explain_action(step, wanted, said, overlays, right=right, rule=rule)

        def read() -> Action | None:
            return self._action(_answer_of(verdict.parsed)) if verdict and verdict.parsed else None

        judge = self.profiles[profile]
        return by_action(step, verdict, judge, read, receipt=receipt, sentence=sentence)

    @property
    def published(self) -> Published:
        return read_published("omnidata.tasks.omnigui", self.name)

    def spelling(self, tag: str, value: str) -> str:
        return app_key(value) if tag == "app" else value

    def language_of(self, app: str) -> Language | None:
        return language_of(app)

    def spoken(self, step: Step) -> Sequence[str]:
        """Return the instruction, and the release's if it differs."""
        return _instructions_of(step)

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        columns = ("instruction", "instruction_en", "instruction_zh")
        told = (row.get(column) for row in (episode_row, step.source) for column in columns)
        return (step.instruction, *(text for text in told if isinstance(text, str)))

    def instruction_by_language(
        self, step: Step, episode_row: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """What the episode's row, or else the step's, has in each language.

        The release's own wordings are of the app's language alone.
        """
        if self.options["prompt_form"] == "release":
            return {}
        found = zip(("en", "zh"), instructions(episode_row, step.source), strict=True)
        return {language: text for language, text in found if text}

    def log_difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        """Whether a log's row is of another app, or has another right answer; the rest may differ.

        Versions of the harness rewrite other columns, and some call the app a subset.
        """
        named = next((each for each in (row, *records) if "episode_id" in each), {})
        said, own = _apps(named), _apps(step.source) | _apps(step.tags)
        if said and said.isdisjoint(own):
            return Difference("app", *("/".join(sorted(names)) for names in (said, own)))
        wanted = step.source.get("result_action_type")
        for each in (row, *records):
            for key in ("result_action_type", "gt_action_type"):
                if each.get(key, wanted) != wanted:
                    return Difference(key, each[key], wanted)
        return None

    def _region(self, pair: Pair | None) -> tuple[Region, ...]:
        if pair is None or max(abs(pair[0]), abs(pair[1])) > _FARTHEST:
            return ()
        space = self.space
        if space == "auto":
            space = "px" if max(pair) > 1000 else "norm1000"
        return (Point(pair[0], pair[1], space),)


def _answer_of(parsed: Mapping[str, Any]) -> Answer | None:
    try:
        kind, text = parsed["action_type"], parsed.get("text")
        start = _pair(parsed.get("start_coordinate" if 3 <= kind <= 6 else "coordinate"))
        end = _pair(parsed.get("end_coordinate"))
    except (LookupError, OverflowError, TypeError, ValueError):
        return None
    return (
        Answer(kind, start, end, text) if kind in LABELS and isinstance(text, str | None) else None
    )


def _pair(value: Any) -> Pair | None:
    if value is None:
        return None
    x, y = value
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ValueError("a coordinate is beyond all numbers")
    return x, y


def _apps(row: Mapping[str, Any]) -> set[str]:
    return {app_key(str(row[key])) for key in ("app", "subset") if row.get(key)}
