"""AgentStudio's prompts: GroundUI, IDM-Single, IDM-Multiple and CriticBench in both settings.

Every image and every text is a user message of its own, and there is no system message. The texts
are the paper's (Appendices C.3, D.2, D.3, E.1, E.2), kept in `prompts/` in the byte form of the
released evaluator, which has no blank lines; `prompts/SOURCES.md` has their hashes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from omnidata.tasks.agentstudio.files import TaskName
from omnidata.tasks.agentstudio.rows import window
from omnidata.types import Conversation, Message, Part, Step

OPTIONS: Mapping[TaskName, Mapping[str, Sequence[str]]] = {
    "groundui": {"instructions": ("recaptioned", "raw")},
    "idm-single": {},
    "idm-multiple": {"gemini_limit": ("off", "on")},
    "criticbench": {"observations_only": ("false", "true"), "symmetric": ("false", "true")},
}
"""The options of each task; `instructions` is for the loader, which chooses the step's."""

_PLACEHOLDER = re.compile(r"\{(instruction|choices|action_space)\}")


def groundui(step: Step) -> Conversation:
    """The screenshot, then the instruction (Appendix C.3)."""
    return (*_shown(step, "screenshot"), _said(_text("groundui", instruction=step.instruction)))


def idm_single(step: Step) -> Conversation:
    """The observations before and after an action, then its choices (Appendix D.2)."""
    choices = _choices(step.source["action_space"])
    return (*_shown(step, "before", "after"), _said(_text("idm_single", choices=choices)))


def idm_multiple(step: Step, *, gemini_limit: bool = False) -> Conversation:
    """Up to six observations, then the choices (Appendix D.3).

    Args:
        step: of IDM-Multiple.
        gemini_limit: add the sentence that keeps Gemini models from endless answers (section 5.2);
            the released evaluator does so for every model with "gemini" in its name.
    """
    kept = window("idm-multiple", step.source["actions"])
    images = _shown(step, *(f"observation_{n}" for n in range(kept.start, kept.stop + 1)))
    question = _said(_text("idm_multiple", choices=_choices(step.source["action_space"])))
    limit = (_said(_text("gemini_limit")),) if gemini_limit else ()
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
        messages += _shown(step, f"observation_{position}")
        if not observations_only:
            messages.append(_said(row["actions"][position]["metadata"]["repr"]))
    if not symmetric:
        messages += _shown(step, f"observation_{kept.stop}")
    if observations_only:
        question = _text("critic_observations", instruction=step.instruction)
    else:
        space = ", ".join(row["action_space"])
        question = _text("critic", instruction=step.instruction, action_space=space)
    return (*messages, _said(question))


_TEMPLATES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("groundui",),
    "idm-single": ("idm_single",),
    "idm-multiple": ("idm_multiple", "gemini_limit"),
    "criticbench": ("critic", "critic_observations"),
}


def templates(task: TaskName) -> list[str]:
    """The texts that a prompt may have."""
    return [_template(name) for name in _TEMPLATES[task]]


def _shown(step: Step, *roles: str) -> tuple[Message, ...]:
    """A message for each image that the step has."""
    refs = {role: step.media.get(role) for role in roles}
    return tuple(
        Message("user", (Part("image", media=ref, role=role),)) for role, ref in refs.items() if ref
    )


def _said(text: str) -> Message:
    return Message("user", (Part("text", text),))


def _choices(space: Sequence[str]) -> str:
    return "\n".join(f"{chr(ord('A') + number)}. {name}" for number, name in enumerate(space))


def _text(name: str, **values: str) -> str:
    """A text with its places filled at once: braces in the data stay what they are."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _template(name))


@cache
def _template(name: str) -> str:
    folder = resources.files("omnidata.tasks.agentstudio").joinpath("prompts")
    return folder.joinpath(f"agentstudio_{name}.txt").read_text(encoding="utf-8")
