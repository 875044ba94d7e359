"""AgentStudio's prompts: every image and every text is a user message of its own.

The texts are the paper's (Appendices C.3, D.2, D.3, E.1, E.2), kept in `prompts/` in the byte form
of the released evaluator, which has no blank lines; `prompts/SOURCES.md` has their hashes.
"""

from __future__ import annotations

import re
from functools import cache

from omnidata.tasks.loading import prompt_text
from omnidata.types import Message, Part, Step

_PLACEHOLDER = re.compile(r"\{(instruction|choices|action_space)\}")


def image_messages(step: Step, *roles: str) -> tuple[Message, ...]:
    """Return a message for each medium of these roles that the step has."""
    refs = {role: step.media.get(role) for role in roles}
    return tuple(
        Message("user", (Part("image", media=ref, role=role),)) for role, ref in refs.items() if ref
    )


def text_message(text: str) -> Message:
    """Return a text as a message of its own."""
    return Message("user", (Part("text", text),))


def fill_prompt(name: str, **values: str) -> str:
    """Return a prompt text, filled at once, so that braces in the data stay as they are."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template(name))


@cache
def template(name: str) -> str:
    """Return a prompt text with its placeholders."""
    return prompt_text("agentstudio", f"agentstudio_{name}")
