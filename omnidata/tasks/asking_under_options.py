"""Asking under common options: what prompts show, and whether an option has an effect."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from omnidata.actions import Action
from omnidata.adapters.media_budget import HISTORY
from omnidata.errors import DataError, Finding, OmnidataError, UsageError, plural
from omnidata.jsontext import hash_of
from omnidata.loaders.load import refuse_findings
from omnidata.tasks.asking import Asking
from omnidata.types import (
    Conversation,
    LoadedDataset,
    MediaRef,
    Message,
    Modality,
    Part,
    Step,
)

_LACKING: Final = {
    "media_until": "no step has a clip or a sound",
    "history_window": "no prompt has earlier actions",
    "history_screenshots": "no step has the screenshot of the previous step",
    "language": "no row has an instruction in that language",
}
_SHOWN: Final = {
    "media_until": "prompts that show clips or sounds",
    "history_window": "prompts with earlier actions, as many as the option sets",
    "history_screenshots": "prompts with the screenshot after the earlier ones",
    "language": "prompts with the instruction of the step",
}
_SAMPLED: Final = 200
"""Steps whose prompts are compared, until one differs."""


class AskingUnderOptions(Asking):
    """A benchmark that is asked under common options.

    Args:
        task: the benchmark as it is asked without them. It gets only `history_window`, as an
            attribute, because benchmarks write their histories themselves.
        given: common options that differ from their defaults.
    """

    def __init__(self, task: Asking, given: Mapping[str, str]) -> None:
        super().__init__(task.benchmark)
        self.history_window = task.history_window
        self.task, self.given = task, given

    @property
    def options(self) -> Mapping[str, str]:
        """All options with their values."""
        return {**self.task.options, **self.given}

    @property
    def prompt_hash(self) -> str:
        """The SHA-256 of the task's prompt and the options."""
        return hash_of([self.task.prompt_hash, dict(sorted(self.given.items()))])

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Load the dataset; steps have the screenshots that the options ask for.

        Raises:
            UsageError: the data have nothing that an option asks for.
        """
        source = self.task.load(data, check_media=check_media, strict=strict)
        steps = source.steps
        self._check("media_until", any(_timed_roles(step.media) for step in steps))
        self._check("history_window", any(step.history for step in steps))
        if "language" in self.given:
            rows = source.episode_rows
            steps = [self._translate(step, rows.get(step.episode, {})) for step in steps]
            self._check("language", any(step.instruction for step in steps))
        source = replace(source, steps=steps)
        if "history_screenshots" in self.given:
            shown = {(step.episode, step.step_index) for step in steps if step.media.get(_SHOT)}
            has_earlier = any((step.episode, step.step_index - 1) in shown for step in steps)
            self._check("history_screenshots", has_earlier)
            source = earlier_screenshots(source, int(self.given["history_screenshots"]))
        return source

    def _check(self, name: str, has: bool) -> None:
        if name in self.given and not has:
            raise UsageError(
                f"the option changes nothing: {_LACKING[name]}",
                where=f"-T {name}={self.given[name]}",
                expected="data that it applies to",
                remedy=f"leave {name} out",
            )

    def _translate(self, step: Step, episode_row: Mapping[str, Any]) -> Step:
        found = self.benchmark.wordings.instruction_by_language(step, episode_row)
        wanted = self.given["language"]
        texts = [found.get(name, "") for name in (("en", "zh") if wanted == "both" else (wanted,))]
        return replace(step, instruction=" / ".join(texts) if all(texts) else "")

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """Return the conversation for one step, changed by the options.

        Raises:
            DataError: the row has no instruction in the requested language.
        """
        if "language" in self.given and not step.instruction:
            raise DataError(
                "the row has no instruction in the requested language",
                where=step.sample_id,
                expected=f"one for -T language={self.given['language']}",
                remedy="leave the step out with --exclude, or leave the option out",
            )
        most = min(int(self.given.get("history_screenshots", 0)), step.step_index)
        own = without_history_shots(step) if "history_screenshots" in self.given else step
        found = self.task.conversation(own, self.own_actions(step, predicted))
        if past := [*_label_shots(step, most)]:
            found = _insert(found, past)
        if share := float(self.given.get("media_until", 0)):
            found = tuple(_until(message, _timed_roles(step.media), share) for message in found)
        return found


def load_to_ask(task: Asking, data: Path, **options: Any) -> LoadedDataset:
    """Load data for prompts and check that each common option has an effect.

    `Asking.load` does not check, so that old runs can be read and scored with any options.

    Args:
        task: the benchmark with its options.
        data: a path or URL.
        options: of `Asking.load`.

    Returns:
        The dataset, with the findings of `check_effects`.

    Raises:
        UsageError: an option changes no prompt, whatever its value.
        DataError: with `strict`, there is a finding.
    """
    source = task.load(data, **options)
    found = check_effects(task, source)
    if found and options.get("strict"):
        refuse_findings(found, data)
    return replace(source, findings=[*source.findings, *found]) if found else source


def check_effects(
    task: Asking, source: LoadedDataset, names: Collection[str] | None = None
) -> list[Finding]:
    """Compare the prompts of some steps with and without each common option.

    Args:
        task: the benchmark with its options.
        source: what it loaded.
        names: the options to check; None for all given ones.

    Returns:
        A warning for each option that has no effect on these data, where a lower value would
        change prompts.

    Raises:
        UsageError: an option changes no prompt, whatever its value.
    """
    if not isinstance(task, AskingUnderOptions):
        return []
    wanted = [name for name in task.given if name in _LACKING and (names is None or name in names)]
    return [found for name in wanted if (found := _effect(task, task, name, source.steps))]


def _effect(
    task: Asking, under: AskingUnderOptions, name: str, steps: Sequence[Step]
) -> Finding | None:
    able = [step for step in steps if _can_show(name, step)]
    asked = able
    if name == "history_window":  # a window longer than all histories may still show more
        asked = [step for step in able if len(step.history) > int(under.given[name])]
        asked = asked or sorted(able, key=lambda step: len(step.history))[-_SAMPLED:]
    if not able or _changes(task, name, task.options, asked):
        return None
    if name == "history_window" and _changes(task, name, {**task.options, name: "0"}, able):
        return Finding(
            "option-idle",
            "warning",
            f"-T {name}={under.given[name]}",
            "the option changes no prompt of these data: the prompts have no more actions, or no "
            "history is longer",
            "data with longer histories",
            f"leave {name} out, or choose a lower value",
        )
    tried = plural(min(len(able), _SAMPLED), "step")
    hiding = _hiding_options(task, under, name, able)
    instead = f", or leave out {' or '.join(hiding)}, which disables it" if hiding else ""
    raise UsageError(
        f"the option changes no prompt: the prompts of {tried} are the same with and without it",
        where=f"-T {name}={under.given[name]}",
        expected=_SHOWN[name],
        remedy=f"leave {name} out{instead}",
    )


def _can_show(name: str, step: Step) -> bool:
    if name == "media_until":
        return bool(_timed_roles(step.media))
    if name == "history_screenshots":
        return step.media.get(earlier_roles(1)[0]) is not None
    return bool(step.history if name == "history_window" else step.instruction)


def _hiding_options(
    task: Asking, under: AskingUnderOptions, name: str, steps: Sequence[Step]
) -> list[str]:
    """Return the task's own options without which the common option would change prompts."""
    own = under.task.options.items()
    chosen = {other: value for other, value in own if value != task.allowed[other][0]}
    found = []
    for other, value in chosen.items():
        left = {**chosen, **under.given}
        del left[other]
        if name == "history_window":
            left[name] = "0"
        with suppress(UsageError):  # what is left depends on it
            if _changes(task, name, left, steps):
                found.append(f"{other}={value}")
    return found


def _changes(task: Asking, name: str, options: Mapping[str, str], steps: Sequence[Step]) -> bool:
    from omnidata.tasks import get_task

    given = get_task(task.name, options)
    plain = get_task(task.name, {one: value for one, value in options.items() if one != name})
    asked = False
    for step in Random(0).sample(steps, min(_SAMPLED, len(steps))):
        past = list(step.history)
        try:
            if given.conversation(step, past) != plain.conversation(_without(name, step), past):
                return True
        except OmnidataError:  # a run reports it and goes on
            continue
        asked = True
    return bool(steps) and not asked


def _without(name: str, step: Step) -> Step:
    if name == "history_screenshots":
        return without_history_shots(step)
    # The step's own instruction is replaced: another one shows whether the prompt has it.
    return replace(step, instruction=f"not {step.instruction}") if name == "language" else step


_SHOT: Final = "screenshot"


def earlier_screenshots(source: LoadedDataset, most: int) -> LoadedDataset:
    """Return the dataset with screenshots of earlier steps instead of history screenshots.

    Args:
        source: the loaded dataset.
        most: the largest number per step.
    """
    shots = {(step.episode, step.step_index): step.media.get(_SHOT) for step in source.steps}
    steps = [
        replace(step, media=_with_shots(step, shots, min(most, step.step_index)))
        for step in source.steps
    ]
    deepest = min(most, max((step.step_index for step in steps), default=0))
    roles = {role: kind for role, kind in source.roles.items() if role != HISTORY}
    more: dict[str, Modality] = dict.fromkeys(earlier_roles(deepest), "image")
    return replace(source, steps=steps, roles=roles | more)


def without_history_shots(step: Step) -> Step:
    """Return a step without its history screenshot and those of earlier steps."""
    media = {role: ref for role, ref in step.media.items() if not role.startswith(HISTORY)}
    return replace(step, media=media)


def earlier_roles(most: int) -> list[str]:
    """Return the roles of earlier screenshots, the latest first ("history_screenshot_1")."""
    return [f"{HISTORY}_{back}" for back in range(1, most + 1)]


def _with_shots(
    step: Step, shots: Mapping[tuple[str, int], MediaRef | None], most: int
) -> dict[str, MediaRef | None]:
    found = {role: ref for role, ref in step.media.items() if role != HISTORY}
    for back, role in enumerate(earlier_roles(most), 1):
        if shot := shots.get((step.episode, step.step_index - back)):
            found[role] = shot
    return found


def _label_shots(step: Step, most: int) -> Iterator[Part]:
    for back, role in [*enumerate(earlier_roles(most), 1)][::-1]:
        if ref := step.media.get(role):
            yield Part("text", f"[Screenshot of step {step.step_index - back}]:", role=role)
            yield Part("image", media=ref, role=role)


def _insert(conversation: Conversation, past: Sequence[Part]) -> Conversation:
    """Return a conversation with parts before the first one of the message with the screenshot."""
    for number, message in enumerate(conversation):
        if any(part.role == "screenshot" and part.media for part in message.parts):
            at = next(at for at, part in enumerate(message.parts) if part.media or part.role)
            parts = (*message.parts[:at], *past, *message.parts[at:])
            changed = Message(message.role, parts)
            return (*conversation[:number], changed, *conversation[number + 1 :])
    return conversation


def _timed_roles(media: Mapping[str, MediaRef | None]) -> set[str]:
    return {role for role, ref in media.items() if ref and ref.kind != "image"}


def _until(message: Message, roles: set[str], share: float) -> Message:
    parts = tuple(
        replace(part, media=replace(part.media, until=share))
        if part.media and part.role in roles
        else part
        for part in message.parts
    )
    return Message(message.role, parts)
