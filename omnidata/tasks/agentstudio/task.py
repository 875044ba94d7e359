"""The tasks `groundui`, `idm-single`, `idm-multiple` and `criticbench`.

Their prompts, the tables of the paper, baselines, right answers and explanations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

import msgspec

from omnidata.actions import Action, Box, Point, Screen, Space, convert
from omnidata.jsontext import hash_of
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio import load as loader
from omnidata.tasks.agentstudio.derived import DERIVATIONS
from omnidata.tasks.agentstudio.files import TASKS, TaskName, find, recognises
from omnidata.tasks.agentstudio.rows import (
    PLATFORMS,
    Instructions,
    action_box,
    actions_in_window,
    target_box,
    window,
)
from omnidata.tasks.agentstudio.rules import (
    CriticProfile,
    LetterProfile,
    LettersProfile,
    PointProfile,
    Reading,
    letters_of,
)
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import (
    Side,
    answer_space,
    format_place,
    in_pixels,
    pair_on_screen,
    place,
)
from omnidata.tasks.diagnosis import place_cause
from omnidata.tasks.explaining import SCREENSHOT, Rule, explain, explain_place
from omnidata.tasks.published import (
    Published,
    PublishedRow,
    TableSpec,
    Variation,
    decimals,
    read_published,
)
from omnidata.types import (
    PLACE,
    Conversation,
    Diagnosis,
    Explanation,
    LoadedDataset,
    Message,
    Overlays,
    Part,
    Profile,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
)

# AgentStudio's prompts: GroundUI, IDM-Single, IDM-Multiple and CriticBench in both settings.
#
# Every image and every text is a user message of its own, and there is no system message. The texts
# are the paper's (Appendices C.3, D.2, D.3, E.1, E.2), kept in `prompts/` in the byte form of the
# released evaluator, which has no blank lines; `prompts/SOURCES.md` has their hashes.

OPTIONS: Mapping[TaskName, Mapping[str, Sequence[str]]] = {
    "groundui": {"instructions": ("recaptioned", "raw")},
    "idm-single": {},
    "idm-multiple": {"gemini_limit": ("off", "on")},
    "criticbench": {"observations_only": ("false", "true"), "symmetric": ("false", "true")},
}
"""The options of each task; `instructions` is for the loader, which chooses the step's."""

_PLACEHOLDER = re.compile(r"\{(instruction|choices|action_space)\}")


def groundui(step: Step) -> Conversation:
    """Return the screenshot, then the instruction (Appendix C.3)."""
    return (
        *_image_messages(step, "screenshot"),
        _text_message(_text("groundui", instruction=step.instruction)),
    )


def _idm_single(step: Step) -> Conversation:
    """Appendix D.2."""
    choices = _choices(step.source["action_space"])
    return (
        *_image_messages(step, "before", "after"),
        _text_message(_text("idm_single", choices=choices)),
    )


def _idm_multiple(step: Step, *, gemini_limit: bool = False) -> Conversation:
    """Appendix D.3; the release adds a sentence that keeps Gemini models from endless answers."""
    kept = window("idm-multiple", step.source["actions"])
    images = _image_messages(step, *(f"observation_{n}" for n in range(kept.start, kept.stop + 1)))
    question = _text_message(_text("idm_multiple", choices=_choices(step.source["action_space"])))
    limit = (_text_message(_text("gemini_limit")),) if gemini_limit else ()
    return (*images, question, *limit)


def criticbench(
    step: Step, *, observations_only: bool = False, symmetric: bool = False
) -> Conversation:
    """Up to five actions with the observations before them, then the question (Appendix E).

    Args:
        step: of CriticBench.
        observations_only: leave out the actions and the action space (Appendix E.2).
        symmetric: leave out the observation after the last action. As published, no success of
            Mind2Web and Android in the Wild has one, and every failure has.
    """
    row = step.source
    kept = window("criticbench", row["actions"])
    messages: list[Message] = []
    for position in kept:
        messages += _image_messages(step, f"observation_{position}")
        if not observations_only:
            messages.append(_text_message(row["actions"][position]["metadata"]["repr"]))
    if not symmetric:
        messages += _image_messages(step, f"observation_{kept.stop}")
    if observations_only:
        question = _text("critic_observations", instruction=step.instruction)
    else:
        space = ", ".join(row["action_space"])
        question = _text("critic", instruction=step.instruction, action_space=space)
    return (*messages, _text_message(question))


_TEMPLATES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("groundui",),
    "idm-single": ("idm_single",),
    "idm-multiple": ("idm_multiple", "gemini_limit"),
    "criticbench": ("critic", "critic_observations"),
}


def _image_messages(step: Step, *roles: str) -> tuple[Message, ...]:
    refs = {role: step.media.get(role) for role in roles}
    return tuple(
        Message("user", (Part("image", media=ref, role=role),)) for role, ref in refs.items() if ref
    )


def _text_message(text: str) -> Message:
    return Message("user", (Part("text", text),))


def _choices(space: Sequence[str]) -> str:
    return "\n".join(f"{chr(ord('A') + number)}. {name}" for number, name in enumerate(space))


def _text(name: str, **values: str) -> str:
    """Fills all placeholders at once, so braces in the data stay as they are."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _template(name))


@cache
def _template(name: str) -> str:
    folder = resources.files("omnidata.tasks.agentstudio").joinpath("prompts")
    return folder.joinpath(f"agentstudio_{name}.txt").read_text(encoding="utf-8")


# The tables of AgentStudio's paper, and the rows that it prints of each of its benchmarks.

_PLATFORMS = {"web": "Web", "desktop": "Desktop", "mobile": "Mobile"}
_SOURCES = {"mind2web": "M2W", "aitw": "AITW", "vwa": "VWA", "agent_studio": "AS"}


def _main(axis: str, groups: Mapping[str, str], like: str) -> TableSpec:
    return TableSpec("main", f"Results by {axis}", axis, groups, "Total", True, "metric", like=like)


TABLES: Mapping[TaskName, TableSpec] = {
    "groundui": _main("platform", _PLATFORMS, "AgentStudio, Table 4"),
    "idm-single": _main("source", _SOURCES, "AgentStudio, Tables 5 and 9"),
    "idm-multiple": _main("source", _SOURCES, "AgentStudio, Tables 5 and 9"),
    "criticbench": _main("platform", _PLATFORMS, "AgentStudio, Tables 6 and 10"),
}

_PRINTED: Mapping[TaskName, tuple[tuple[str, str, str, Mapping[str, str]], ...]] = {
    "groundui": (
        ("table4_groundui_accuracy", "accuracy", "Table 4", {}),
        ("table8_groundui_accuracy", "accuracy", "Table 8", {}),
    ),
    "idm-single": (("table5_idm_single_accuracy", "accuracy", "Table 5", {}),),
    "idm-multiple": (
        ("table5_idm_multiple_accuracy", "accuracy", "Table 5", {}),
        ("table9_idm_multiple_edit_distance", "edit_distance", "Table 9", {}),
    ),
    "criticbench": (
        (
            "table10_criticbench_observation_action", "", "Table 10",
            {"observations_only": "false"},
        ),
        (
            "table10_criticbench_observations_only", "", "Table 10",
            {"observations_only": "true"},
        ),
    ),
}  # fmt: skip
"""Task -> table of the file, its metric (empty: each model has several), its number, options."""


_WORDINGS = Variation(
    "instructions",
    "recaptioned",
    {"recaptioned": "Recaptioned", "raw": "Raw"},
    "Recaptioned and raw instructions",
    "Instructions",
    wordings=True,
)


@cache
def _published_results(task: TaskName) -> Published:
    """What is published of a benchmark.

    Examples:
        >>> _published_results("idm-single").settings[0].metrics["accuracy"].model
        'Claude 3.5 Sonnet'
    """
    found = read_published("omnidata.tasks.agentstudio", task)
    return replace(found, rows=[*_rows(task), *found.rows])


def _rows(task: TaskName) -> list[PublishedRow]:
    text = (
        resources.files("omnidata.tasks.agentstudio").joinpath("published_tables.json").read_bytes()
    )
    tables = msgspec.json.decode(text)
    found: dict[tuple[str, str], PublishedRow] = {}
    for name, metric, number, options in _PRINTED[task]:
        table = tables[name]
        sizes = table.get("rows") or table["success"]
        steps = sum(sizes.values()) + sum(table.get("failure", {}).values())
        for model, numbers in table["models"].items():
            printed = {
                ("" if group == "total" else group, each): value
                for each, by in ({metric: numbers} if metric else numbers).items()
                if each not in ("tp", "fp")
                for group, value in by.items()
            }
            values = {key: _fraction(key[1], value) for key, value in printed.items()}
            digits = {key: decimals(value) for key, value in printed.items()}
            # Only some tables print the model's date.
            key = model.partition(" (")[0], str(options)
            before = found.get(key)
            sources = [before.source] if before else []
            source = " and ".join([*sources, number if before else f"AgentStudio, {number}"])
            found[key] = PublishedRow(
                "main",
                before.model if before else model,
                options,
                source,
                steps,
                {**(before.values if before else {}), **values},
                {**(before.digits if before else {}), **digits},
                ("agentstudio-paper",),
            )
    return list(found.values())


def _fraction(metric: str, value: float) -> float:
    return value if metric == "edit_distance" else round(value / 100, 6)


# AgentStudio's baselines: what a score means without a model.

NAMES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("oracle", "center"),
    "idm-single": ("oracle", "majority"),
    "idm-multiple": ("oracle", "majority"),
    "criticbench": ("oracle", "always-true", "always-false", "majority"),
}
"""`oracle` answers with the target; `center` points at the middle of the screen; `majority` always
gives the most frequent target of the row's action space (CriticBench: of the data)."""

_CONSTANT = {"always-true": "Answer: True", "always-false": "Answer: False"}


_RECORDED: Final = re.compile(r"(linux|macos|windows)_([a-z]+)_[0-9a-f]{8}-")
"""How AgentStudio's tools call a picture: system, application, a UUID."""

READINGS: tuple[Reading, ...] = ("paper", "release")
_TITLES: Mapping[TaskName, tuple[str, str]] = {
    "groundui": (
        "GroundUI",
        "point at the element of an instruction on web, desktop and mobile screenshots",
    ),
    "idm-single": ("IDM-Single", "name the action between two screenshots"),
    "idm-multiple": ("IDM-Multiple", "name the actions between the screenshots of a sequence"),
    "criticbench": ("CriticBench", "judge from its screenshots whether a trajectory succeeded"),
}
"""By benchmark: its title, and what its data hold."""


class _Point(TypedDict, total=False):
    point: tuple[Side, Side] | None


class _Letters(TypedDict):
    letters: Annotated[list[str], msgspec.Meta(min_length=1)]


class _Truth(TypedDict):
    success: bool


_PUBLISHED: Final[Mapping[TaskName, Mapping[str, int]]] = {
    "groundui": {"GroundUI-1K": 1000, "GroundUI-18K": 0},
    "idm-single": {"IDM-Single": 350},
    "idm-multiple": {"IDM-Multiple": 345},
    "criticbench": {"CriticBench": 350},
}
"""The names of the datasets on the Hub, the benchmark's own first, and their rows; 0 where the card
says them roughly."""

_PARSED: Final[Mapping[TaskName, type]] = {
    "groundui": _Point,
    "idm-single": _Letters,
    "idm-multiple": _Letters,
    "criticbench": _Truth,
}


class AgentStudio(Benchmark):
    """One of the four benchmarks of AgentStudio.

    Args:
        name: which one.
        options: of its prompt, and `coordinates` of GroundUI; unknown ones are a `UsageError`.
    """

    detailed_actions = False
    tags = loader.TAGS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._task: TaskName = next(known for known in TASKS if known == name)
        self.title, self.holds = _TITLES[self._task]
        self.sources = tuple(
            Publication(
                name,
                f"https://huggingface.co/datasets/agent-studio/{name}",
                paper="2403.17918",
                remote=Remote(
                    f"hf://datasets/agent-studio/{name}",
                    files=("*.parquet",),
                    steps=steps,
                    note="the Hub's form, Parquet; the authors' tars are on Google Drive. The card "
                    "shows no licence, the code is AGPL-3.0",
                ),
            )
            for name, steps in _PUBLISHED[self._task].items()
        )
        self.roles = loader.ROLES.get(self._task)
        self.subsets = (*PLATFORMS, *loader.FAMILIES[self._task])
        self.baselines = NAMES[self._task]
        self.tables = (TABLES[self._task],)
        self.parsed_type = _PARSED[self._task]
        if "instructions" in OPTIONS[self._task]:
            self.variations = (_WORDINGS,)
        self.derivation = DERIVATIONS[self._task]
        points: Mapping[str, Sequence[str]] = (
            {"coordinates": ("rel", "px", "norm1000")} if name == "groundui" else {}
        )
        self.allowed = {**OPTIONS[self._task], **points}
        self.prompted_space = "rel" if points else None
        self.asked = "point" if points else None
        super().__init__(name, options)
        self._space = answer_space(self.options) or "rel"
        asked = {name: self.options[name] for name in OPTIONS[self._task]}
        self.prompt_hash = hash_of([self._task, asked, [*map(_template, _TEMPLATES[self._task])]])
        # The released evaluator knows [0, 1] and, for one model, pixels.
        readings = READINGS[:1] if self._space == "norm1000" else READINGS
        profiles = [self._profile(reading) for reading in readings]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def _profile(self, reading: Reading) -> Profile:
        if self._task == "groundui":
            return PointProfile(reading, self._space)
        kinds: Mapping[str, Callable[[Reading], Profile]] = {
            "idm-single": LetterProfile,
            "idm-multiple": LettersProfile,
            "criticbench": CriticProfile,
        }
        return kinds[self._task](reading)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        wanted = self.options.get("instructions")
        instructions: Instructions = "raw" if wanted == "raw" else "recaptioned"
        return loader.load(
            data, self._task, instructions=instructions, check_media=check_media, strict=strict
        )

    def detect(self, data: Path) -> bool:
        return recognises(data, self._task)

    def fingerprint(self, data: Path) -> str:
        return find(data, self._task).fingerprint()

    def named(self, step: Step) -> Step:
        return loader.assign_group(step)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        if self._task == "groundui":
            return groundui(step)
        if self._task == "idm-single":
            return _idm_single(step)
        if self._task == "idm-multiple":
            return _idm_multiple(step, gemini_limit=self.options["gemini_limit"] == "on")
        return criticbench(
            step,
            observations_only=self.options["observations_only"] == "true",
            symmetric=self.options["symmetric"] == "true",
        )

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        row = step.source
        if self._task == "groundui":
            box = target_box(row)
            if box is None or min(step.screen) < 1:
                return None
            unit, size = space or self._space, size or step.screen
            x, y = place(box, step.screen, space=unit, size=size)
            return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))
        if self._task == "criticbench":
            text = f"Answer: {row['is_success']}"
            return Target(text, text)
        letters = _letters(self._task, row)
        if not letters:
            return None
        text = " ".join(("Answer:", *letters)) if self._task == "idm-single" else ""
        text = text or "\n".join(("Answer:", *letters))
        return Target(text, text)

    def right_actions(self, step: Step) -> Sequence[Action]:
        box = target_box(step.source)
        return (Action("tap", (box,)),) if box else ()

    def express(self, actions: Sequence[Action], step: Step) -> str:
        return format_place(actions[0])

    @property
    def published(self) -> Published:
        return _published_results(self.name)

    def application(self, step: Step) -> str:
        """Return the app in the names of AgentStudio's own screens (Table 11)."""
        said = _RECORDED.match(str(step.source.get("image", "")))
        return f"{said[1]} {said[2]}" if said else ""

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        task, space = self._task, self._space
        if name in _CONSTANT:
            return lambda step: _CONSTANT[name]
        if name == "center":
            return lambda step: _point(Point(0.5, 0.5, "rel"), step, space)
        if name == "oracle":
            return lambda step: _target(task, step, space)
        counts: dict[str, Counter[str]] = {}
        for step in steps:
            counts.setdefault(_kind(task, step), Counter())[_target(task, step, space)] += 1
        usual = {kind: answers.most_common(1)[0][0] for kind, answers in counts.items()}
        return lambda step: usual[_kind(task, step)]

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        judge = self.profiles[profile]
        if self.name == "groundui":
            release = profile == "agentstudio-release"
            return _explain_ground(step, verdict, judge, is_release=release, space=self._space)
        if self.name == "idm-single":
            return _explain_single(step, verdict, judge)
        return (_explain_multiple if self.name == "idm-multiple" else _explain_critic)(
            step, verdict, judge
        )


def _kind(task: TaskName, step: Step) -> str:
    """The same letter means different actions in other kinds of rows."""
    return "" if task == "criticbench" else " ".join(map(str, step.source["action_space"]))


def _target(task: TaskName, step: Step, space: Space) -> str:
    row = step.source
    if task == "criticbench":
        return f"Answer: {row['is_success']}"
    if task == "groundui":
        box = target_box(row)
        return _point(box.centre, step, space) if box else "Answer:"
    return "Answer: " + "\n".join(_letters(task, row) or ())


def _letters(task: TaskName, row: Mapping[str, Any]) -> Sequence[str] | None:
    actions = [row] if task == "idm-single" else actions_in_window("idm-multiple", row)
    return letters_of([action["operation"] for action in actions], row["action_space"])


def _point(point: Point, step: Step, space: Space) -> str:
    """All digits are needed: only the exact coordinate hits a box without height."""
    found = convert(point, space, step.screen)
    return f"Answer: ({found.x!r}, {found.y!r})"


# Why an answer is right or wrong: points and letters.

_FRAMES: Final = "recorded action"
"""What is framed where the question is what was done: the place of an action is no target."""
_RELEASE: Final = Rule(borderline="the released evaluator excludes the edges")


def _explain_ground(
    step: Step, verdict: Verdict | None, profile: Profile, *, is_release: bool, space: Space
) -> Explanation:
    box = target_box(step.source)
    # The profile has brought the point to the screen.
    said = pair_on_screen(step, ((verdict and verdict.parsed) or {}).get("point"), "px", {})
    regions: tuple[Box, ...] = (box,) if box else ()
    rule = _RELEASE if is_release else Rule()
    return explain(
        verdict,
        profile,
        lambda parsed, right: explain_place(
            step, "the point", said, regions, right=right, rule=rule
        ),
        overlays=lambda: {SCREENSHOT: Overlays(regions, (), said)},
        diagnosis=lambda parsed: (
            (
                place_cause(step, regions, (convert(said, space, step.screen),), receipt={})
                if said
                else None
            )
            or Diagnosis("rule")
        ),
    )


def _explain_single(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:

    def sentence(parsed: Mapping[str, Any], right: bool) -> str:
        given: Sequence[str] = parsed.get("letters", ())
        return _compare_letters(step, given, _right_letters(step, [step.source]))

    return explain(
        verdict,
        profile,
        sentence,
        target_label=str(step.source["operation"]),
        answer_label=lambda parsed: _operation(step, parsed["letters"][0]),
        overlays=lambda: _recorded_places(step, {"before": step.source}),
        noun="operation",
        diagnosis=lambda parsed: Diagnosis("wrong_type"),
        frames=_FRAMES,
    )


def _explain_multiple(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:
    asked = actions_in_window("idm-multiple", step.source)

    def sentence(parsed: Mapping[str, Any], right: bool) -> str:
        given: Sequence[str] = parsed.get("letters", ())
        wanted = _right_letters(step, asked)
        said = _compare_letters(step, given, wanted)
        if tuple(given) == wanted:
            return said
        distance = edit_distance(given, wanted)
        return f"{said}: {distance} edit{'s' * (distance != 1)} apart"

    return explain(
        verdict,
        profile,
        sentence,
        overlays=lambda: _trajectory(step),
        target_labels=tuple(str(action["operation"]) for action in asked),
        noun="operation",
        frames=_FRAMES,
        diagnosis=lambda parsed: Diagnosis("wrong_type"),
    )


def _explain_critic(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:

    def sentence(parsed: Mapping[str, Any], right: bool) -> str:
        true = "succeeded" if step.source["is_success"] else "failed"
        return f"the answer is {_truth(parsed.get('success'))}, and the trajectory {true}"

    return explain(
        verdict,
        profile,
        sentence,
        target_label=_truth(step.source["is_success"]),
        answer_label=lambda parsed: _truth(parsed["success"]),
        overlays=lambda: _trajectory(step),
        noun="judgement",
        frames=_FRAMES,
    )


def _right_letters(step: Step, actions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    operations = [str(action["operation"]) for action in actions]
    return tuple(letters_of(operations, step.source["action_space"]) or ())


def _compare_letters(step: Step, given: Sequence[str], wanted: tuple[str, ...]) -> str:
    said = f"the answer is {_format_letters(step, given)}"
    if tuple(given) == wanted:
        return f"{said}, as recorded"
    return f"{said}, the recorded action is {_format_letters(step, wanted)}"


def _format_letters(step: Step, given: Sequence[str]) -> str:
    return ", ".join(f"{letter} ({_operation(step, letter)})" for letter in given) or "nothing"


def _operation(step: Step, letter: str) -> str:
    space = step.source["action_space"]
    place = ord(letter) - ord("A") if len(letter) == 1 else -1
    return str(space[place]) if 0 <= place < len(space) else letter


def _truth(success: object) -> str:
    return "success" if success else "failure"


def _trajectory(step: Step) -> Mapping[str, Overlays]:
    actions = step.source["actions"]
    return _recorded_places(step, {f"observation_{n}": action for n, action in enumerate(actions)})


def _recorded_places(
    step: Step, actions: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Overlays]:
    found = ((role, action_box(step.source, action)) for role, action in actions.items())
    return {
        role: Overlays((in_pixels(region, step.screen),))
        for role, region in found
        if region is not None
    }
