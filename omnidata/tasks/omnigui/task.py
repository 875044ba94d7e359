"""The task `omnigui`: its declaration and its reading of answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from omnidata.actions import NUMBERS, Action, Screen, Space, centre, finger_way
from omnidata.dialects import CannotSayError
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS, TARGET_COLUMNS, instructions
from omnidata.loaders.instructions import Language
from omnidata.loaders.tree_writer import target_columns
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Episodes,
    History,
    LogRows,
    Note,
    Paper,
    ParsedAnswer,
    Receipt,
    Rule,
    Speech,
    UnreadError,
    Wordings,
)
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.explaining import explain_by_action
from omnidata.tasks.json_answers import Answer, Pair, ParseFailure, read_object
from omnidata.tasks.log_rows import Difference
from omnidata.tasks.omnigui import load as loader
from omnidata.tasks.omnigui.answers import (
    PLACED,
    PredictedSpace,
    action_of,
    parse,
    read_prompted,
)
from omnidata.tasks.omnigui.files import app_key, language_of, table7
from omnidata.tasks.omnigui.overview import TABLES, VARIATIONS, View
from omnidata.tasks.omnigui.prompt import OPTIONS, Prompt, instructions_of
from omnidata.tasks.omnigui.rows import ROLES, success_of, success_values
from omnidata.tasks.omnigui.rules import POINT_RADIUS, PaperRule, ReleaseRule
from omnidata.tasks.omnigui.targets import (
    BASELINES,
    CENTRE,
    answer,
    is_whole,
    random_action,
    target,
    usual_action,
)
from omnidata.tasks.profile import Profile
from omnidata.tasks.published import read_published
from omnidata.tasks.sentences import RuleWords, explain_action
from omnidata.types import (
    Conversation,
    Explanation,
    LoadedDataset,
    Overlays,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
)

SPACES: Final[tuple[PredictedSpace, ...]] = ("norm1000", "px", "rel", "auto")


# From an answer to an action on the screen.


def parse_answer(
    text: str, step: Step, receipt: Receipt, *, space: PredictedSpace, released: bool = False
) -> ParsedAnswer[Action]:
    """Read an answer with the release's tolerant parser.

    Args:
        text: the answer.
        step: of the question.
        receipt: has the size of the sent picture, whose pixels are those of the answer.
        space: unit of coordinates in answers.
        released: as in `action_of`.

    Raises:
        UnreadError: the released parser finds no action, or raises an error.
    """
    found = parse(text)
    if isinstance(found, ParseFailure):
        raise UnreadError(found.reason)
    return _on_screen(found, step, receipt, space, released=released)


def _on_screen(
    found: Answer, step: Step, receipt: Receipt, space: PredictedSpace, *, released: bool = False
) -> ParsedAnswer[Action]:
    written = value = action_of(found, space)
    shown = found
    if receipt and space in ("px", "auto"):
        sent = resizing(receipt, step.screen, where=step.sample_id)

        def to_screen(pair: Pair | None) -> Pair | None:
            in_pixels = pair is not None and (space == "px" or max(pair) > 1000)
            return sent.to_screen(pair) if sent and pair is not None and in_pixels else pair

        shown = replace(found, start=to_screen(found.start), end=to_screen(found.end))
    is_short = (found.start and not written.start) or (found.end and not written.end)
    if shown is not found or (released and (is_short or space == "auto")):
        value = action_of(shown, space, released=released)
    return ParsedAnswer(value, found.as_dict(), (written,), found.as_prompted)


class _Speech(Speech):
    asked = "action"

    def __init__(self, space: PredictedSpace) -> None:
        self._space = space

    def right_actions(self, step: Step) -> Sequence[Action]:
        return (step.action,) if step.action and is_whole(step.action) else ()

    def adopt(
        self, actions: Sequence[Action], step: Step, receipt: Receipt
    ) -> ParsedAnswer[Action]:
        body = _body_of(actions[0])
        found = read_prompted(body) or read_object(body)
        assert isinstance(found, Answer)
        return _on_screen(found, step, receipt, self._space)


def _body_of(action: Action) -> dict[str, Any]:
    """Return an action as a primitive; the wheel and a drag become the swipe of the same effect."""
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
"""The primitives that are keys, too."""


# OmniGUI's names of apps, episodes and logs.


class AppSpellings(Wordings):
    """Names of apps in any spelling."""

    def spelling(self, tag: str, value: str) -> str:
        """Return the normal form of an app's name."""
        return app_key(value) if tag == "app" else value


class _Wordings(AppSpellings):
    def __init__(self, prompt_form: str) -> None:
        self._prompt_form = prompt_form

    def language_of(self, app: str) -> Language | None:
        return language_of(app)

    def spoken_texts(self, step: Step) -> Sequence[str]:
        """Return the instruction, and the release's if it differs."""
        return instructions_of(step)

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        columns = ("instruction", "instruction_en", "instruction_zh")
        found = (row.get(column) for row in (episode_row, step.source) for column in columns)
        return (step.instruction, *(text for text in found if isinstance(text, str)))

    def instruction_by_language(
        self, step: Step, episode_row: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """Return the texts of the episode's row, or else of the step's.

        The release's own wordings are in the app's language alone.
        """
        if self._prompt_form == "release":
            return {}
        found = zip(("en", "zh"), instructions(episode_row, step.source), strict=True)
        return {language: text for language, text in found if text}


class _Episodes(Episodes):
    history_lag = 2
    has_tree = True

    def success(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return the column `is_success`; rows that contradict each other mean no success."""
        rows = (row, *(step.source for step in steps))
        return success_of(rows) is True if success_values(rows) else None

    def merge_groups(self, steps: Sequence[Step], note: Note) -> Sequence[Step]:
        return loader.merge_groups(steps, note)


class _LogRows(LogRows):
    by_number = True

    def difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        """Compare the app and the type of the right action.

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


def _apps(row: Mapping[str, Any]) -> set[str]:
    return {app_key(str(row[key])) for key in ("app", "subset") if row.get(key)}


_PAPER: Final = RuleWords(unlike="", reach=POINT_RADIUS)
_RELEASE: Final = RuleWords(
    borderline="the released evaluator truncates both to whole thousandths of the screen first",
    same_text="one text holds the other",
    unlike="",
    reach=POINT_RADIUS,
)
_NEVER_EXACT: Final = frozenset({"NONE", "DOUBLE_TAP"})
"""Primitives that the released evaluator never counts as an exact match."""


class PrimitiveBenchmark(Benchmark):
    """Base class for benchmarks that are answered with OmniGUI's primitives.

    Args:
        name: of the benchmark.
        options: with `coordinates`, the unit of places in answers.
    """

    baselines = BASELINES
    files = loader.OmniGuiFiles()
    wordings: Wordings = AppSpellings()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self._written: Space = "norm1000" if self._space == "auto" else self._space
        self.rules: Sequence[Rule[Action]] = (PaperRule(),)

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return self.load(data, check_media=False).steps

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
        return parse_answer(text, step, receipt, space=self._space)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        return target(step, space=space or self._written, size=size or step.screen)

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another target; a DataError if no primitive is it."""
        kept = {name: held for name, held in step.source.items() if name not in TARGET_COLUMNS}
        columns = target_columns(action, step.screen, step.sample_id)
        return dataclasses.replace(step, action=action, source=kept | columns)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return a baseline.

        * `oracle` answers with the target: the ceiling of a profile on these data.
        * `center` always taps the middle of the screen.
        * `always-wait` always answers NONE.
        * `majority` always answers the most frequent primitive of the data, at its mean place.
        """
        if name == "oracle":
            return lambda step: self._text(step.action or Action("done", status="failure"), step)
        constant: Mapping[str, Callable[[], Action]] = {
            "center": lambda: Action("tap", (CENTRE,)),
            "always-wait": lambda: Action("none"),
            "majority": lambda: usual_action(steps),
        }
        action = constant[name]()
        return lambda step: self._text(action, step)

    def random(self, step: Step, seed: int) -> str:
        return self._text(random_action(step, seed), step)

    def _text(self, action: Action, step: Step) -> str:
        return json.dumps(answer(action, step.screen, space=self._written), ensure_ascii=False)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Action] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        is_release = profile.name == ReleaseRule.name

        def sentence(wanted: Action, said: Action, overlays: Overlays, right: bool) -> str:
            label = said.label
            if is_release and not right and label == wanted.label and label in _NEVER_EXACT:
                return f"the released evaluator counts no {label} as an exact match"
            rule = _RELEASE if is_release else _PAPER
            return explain_action(step, wanted, said, overlays, right=right, rule=rule)

        written = parsed.written[0] if parsed else None
        return explain_by_action(
            step, verdict, profile, written, receipt=receipt, sentence=sentence
        )


_SOURCE: Final = Publication(
    "OmniGUI",
    "https://huggingface.co/datasets/OmniGUI/OmniGUI",
    paper="2605.18758",
    remote=Remote(
        "hf://datasets/OmniGUI/OmniGUI",
        note="the id that the release's README links to; its download command names "
        "XIAOCHENLIN00zz/OmniGUI. One README counts 708 episodes and 2,572 steps, others "
        "709 and 2,579: report the commit. Size, licence and gating are not verified",
    ),
)


class OmniGui(PrimitiveBenchmark):
    """OmniGUI: what does the agent do next, given what it sees, hears and remembers?

    Args:
        name: "omnigui".
        options: as in `allowed`; `voice` is a folder of WAV files. Unknown ones are a `UsageError`.
    """

    card = Card(
        title="OmniGUI",
        holds="predict the next action on a phone from screenshots, clips and sound",
        sources=(_SOURCE,),
        platform="mobile",
        tags=loader.TAGS,
        roles=ROLES,
        subsets=(
            *DIMENSIONS,
            *DEPENDENCIES,
            *("en", "zh"),
            *sorted(row["app"] for row in table7()["apps"]),
        ),
        detailed_actions=False,
        prompted_space="norm1000",
    )
    allowed: Mapping[str, Sequence[str]] = {**OPTIONS, "coordinates": SPACES}
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.omnigui", "omnigui"),
        tables=TABLES,
        variations=VARIATIONS,
        overview=View,
    )
    episodes = _Episodes()
    log_rows = _LogRows()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        self.speech = _Speech(self._space)
        self.wordings = _Wordings(self.options["prompt_form"])
        if self._space != "rel":  # a unit that the released evaluator does not know
            release = ReleaseRule()
            release.parse = partial(parse_answer, space=self._space, released=True)
            self.rules = (*self.rules, release)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(data, check_media=check_media, strict=strict)

    def group(self, step: Step) -> Step:
        return loader.assign_group(step)

    def prompt(self, step: Step, history: History) -> Conversation:
        return self._prompt.conversation(step, history)
