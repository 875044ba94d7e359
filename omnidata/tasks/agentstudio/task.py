"""The tasks `idm-single`, `idm-multiple` and `criticbench`, and the entry to `groundui`.

Their prompts, baselines, right answers and explanations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

import msgspec

from omnidata.actions import Action, Screen, Space
from omnidata.jsontext import hash_of
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio import load as loader
from omnidata.tasks.agentstudio.criticbench import CriticBench
from omnidata.tasks.agentstudio.derived import DERIVATIONS
from omnidata.tasks.agentstudio.files import TASKS, TaskName, find, recognises
from omnidata.tasks.agentstudio.groundui import GroundUi
from omnidata.tasks.agentstudio.messages import image_messages, prompt_text, template, text_message
from omnidata.tasks.agentstudio.paper import TABLES, publications, published_results
from omnidata.tasks.agentstudio.rows import (
    PLATFORMS,
    action_box,
    actions_in_window,
    window,
)
from omnidata.tasks.agentstudio.rules import (
    LetterProfile,
    LettersProfile,
    Reading,
    letters_of,
)
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import in_pixels
from omnidata.tasks.explaining import explain
from omnidata.tasks.published import Published
from omnidata.types import (
    Conversation,
    Diagnosis,
    Explanation,
    LoadedDataset,
    Overlays,
    Profile,
    Step,
    Target,
    Verdict,
)

# The prompts of IDM-Single, IDM-Multiple and CriticBench, the last in both settings.

OPTIONS: Mapping[TaskName, Mapping[str, Sequence[str]]] = {
    "idm-single": {},
    "idm-multiple": {"gemini_limit": ("off", "on")},
}
"""The options of each task."""


def _idm_single(step: Step) -> Conversation:
    """Appendix D.2."""
    choices = _choices(step.source["action_space"])
    return (
        *image_messages(step, "before", "after"),
        text_message(prompt_text("idm_single", choices=choices)),
    )


def _idm_multiple(step: Step, *, gemini_limit: bool = False) -> Conversation:
    """Appendix D.3; the release adds a sentence that keeps Gemini models from endless answers."""
    kept = window("idm-multiple", step.source["actions"])
    images = image_messages(step, *(f"observation_{n}" for n in range(kept.start, kept.stop + 1)))
    question = text_message(
        prompt_text("idm_multiple", choices=_choices(step.source["action_space"]))
    )
    limit = (text_message(prompt_text("gemini_limit")),) if gemini_limit else ()
    return (*images, question, *limit)


_TEMPLATES: Mapping[TaskName, Sequence[str]] = {
    "idm-single": ("idm_single",),
    "idm-multiple": ("idm_multiple", "gemini_limit"),
}


def _choices(space: Sequence[str]) -> str:
    return "\n".join(f"{chr(ord('A') + number)}. {name}" for number, name in enumerate(space))


# AgentStudio's baselines: what a score means without a model.

NAMES: Mapping[TaskName, Sequence[str]] = {
    "idm-single": ("oracle", "majority"),
    "idm-multiple": ("oracle", "majority"),
}
"""`oracle` answers with the target; `majority` always
gives the most frequent target of the row's action space (CriticBench: of the data)."""


READINGS: tuple[Reading, ...] = ("paper", "release")
_TITLES: Mapping[TaskName, tuple[str, str]] = {
    "idm-single": ("IDM-Single", "name the action between two screenshots"),
    "idm-multiple": ("IDM-Multiple", "name the actions between the screenshots of a sequence"),
}
"""By benchmark: its title, and what its data hold."""


class _Letters(TypedDict):
    letters: Annotated[list[str], msgspec.Meta(min_length=1)]


_PARSED: Final[Mapping[TaskName, type]] = {
    "idm-single": _Letters,
    "idm-multiple": _Letters,
}


class AgentStudio(Benchmark):
    """One of the three benchmarks of AgentStudio about trajectories.

    Args:
        name: which one.
        options: of its prompt; unknown ones are a `UsageError`.
    """

    detailed_actions = False
    tags = loader.TAGS

    def __new__(cls, name: str, options: Mapping[str, str]) -> Any:
        """Return GroundUI by its name: it is a class of its own."""
        moved = {"groundui": GroundUi, "criticbench": CriticBench}
        return moved[name](name, options) if name in moved else super().__new__(cls)

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._task: TaskName = next(known for known in TASKS if known == name)
        self.title, self.holds = _TITLES[self._task]
        self.sources = publications(self._task)
        self.roles = loader.ROLES.get(self._task)
        self.subsets = (*PLATFORMS, *loader.FAMILIES[self._task])
        self.baselines = NAMES[self._task]
        self.tables = (TABLES[self._task],)
        self.parsed_type = _PARSED[self._task]
        self.derivation = DERIVATIONS[self._task]
        self.allowed = OPTIONS[self._task]
        super().__init__(name, options)
        asked = {name: self.options[name] for name in OPTIONS[self._task]}
        self.prompt_hash = hash_of([self._task, asked, [*map(template, _TEMPLATES[self._task])]])
        profiles = [self._profile(reading) for reading in READINGS]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def _profile(self, reading: Reading) -> Profile:
        kinds: Mapping[str, Callable[[Reading], Profile]] = {
            "idm-single": LetterProfile,
            "idm-multiple": LettersProfile,
        }
        return kinds[self._task](reading)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(data, self._task, check_media=check_media, strict=strict)

    def detect(self, data: Path) -> bool:
        return recognises(data, self._task)

    def fingerprint(self, data: Path) -> str:
        return find(data, self._task).fingerprint()

    def named(self, step: Step) -> Step:
        return loader.assign_group(step)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        if self._task == "idm-single":
            return _idm_single(step)
        if self._task == "idm-multiple":
            return _idm_multiple(step, gemini_limit=self.options["gemini_limit"] == "on")
        raise AssertionError

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        row = step.source
        letters = _letters(self._task, row)
        if not letters:
            return None
        text = " ".join(("Answer:", *letters)) if self._task == "idm-single" else ""
        text = text or "\n".join(("Answer:", *letters))
        return Target(text, text)

    @property
    def published(self) -> Published:
        return published_results(self._task)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        task = self._task
        if name == "oracle":
            return lambda step: _target(task, step)
        counts: dict[str, Counter[str]] = {}
        for step in steps:
            counts.setdefault(_kind(task, step), Counter())[_target(task, step)] += 1
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
        if self.name == "idm-single":
            return _explain_single(step, verdict, judge)
        return _explain_multiple(step, verdict, judge)


def _kind(task: TaskName, step: Step) -> str:
    """The same letter means different actions in other kinds of rows."""
    return " ".join(map(str, step.source["action_space"]))


def _target(task: TaskName, step: Step) -> str:
    row = step.source
    return "Answer: " + "\n".join(_letters(task, row) or ())


def _letters(task: TaskName, row: Mapping[str, Any]) -> Sequence[str] | None:
    actions = [row] if task == "idm-single" else actions_in_window("idm-multiple", row)
    return letters_of([action["operation"] for action in actions], row["action_space"])


# Why an answer is right or wrong.

_FRAMES: Final = "recorded action"
"""What is framed where the question is what was done: the place of an action is no target."""


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
