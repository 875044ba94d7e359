"""What a checkpoint's chat template puts behind an answer, which training has to teach, too."""

from __future__ import annotations

import re
from typing import Any

from omnidata.errors import UsageError

_SAID = "omnidata-answer"
_ASKED: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "omnidata"}]}
_ANSWERED: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": _SAID}]}


def ending(processor: Any, path: str) -> str:
    """The text that ends an answer, special tokens included: `<|im_end|>` and a line break.

    A template that marks what the assistant says with `{% generation %}` says it itself. Otherwise
    it is what follows the answer where the prompt, as the model is given it in evaluation, is the
    beginning of the conversation with the answer.

    Args:
        processor: of the checkpoint.
        path: of the checkpoint, for the message.

    Raises:
        UsageError: the template takes no answers, or does neither of the two.
    """
    template = processor.chat_template
    tokens = processor.tokenizer.special_tokens_map
    try:
        asked, _ = _rendered(template, tokens, _ASKED, add_generation_prompt=True)
        whole, spans = _rendered(template, tokens, _ASKED, _ANSWERED)
    except Exception as error:  # whatever a template does wrong, Jinja has its own errors
        raise _lacking(path, f"fails on an answer ({type(error).__name__}: {error})") from None
    if spans:
        said = "".join(whole[begin:end] for begin, end in spans)
    elif whole.startswith(asked):
        said = whole[len(asked) :]
    else:
        raise _lacking(path, "writes a conversation with an answer unlike the prompt for it")
    if not said.startswith(_SAID) or said.count(_SAID) != 1:
        raise _lacking(path, "does not keep the answer as it is")
    closing = said.removeprefix(_SAID)
    if not closing.strip():
        raise _lacking(path, "puts no token behind the answer, so that no model learns to stop")
    return closing


def _rendered(
    template: str, tokens: dict[str, Any], *messages: dict[str, Any], **how: Any
) -> tuple[str, list[tuple[int, int]]]:
    """The text of a conversation, and which characters of it `{% generation %}` marks."""
    from transformers.utils import chat_template_utils

    render: Any = chat_template_utils.render_jinja_template  # its annotation is wrong
    marks = re.search(r"\{%-?\s*generation\s*-?%\}", template) is not None
    texts, spans = render(
        conversations=[list(messages)],
        chat_template=template,
        return_assistant_tokens_mask=marks,
        **tokens,
        **how,
    )
    return texts[0], spans[0] if marks else []


def _lacking(path: str, problem: str) -> UsageError:
    return UsageError(
        f"the chat template {problem}",
        where=f"hf:{path}",
        expected="{% generation %} around what the assistant says, or a conversation that begins "
        "with the prompt",
        remedy="give the processor a template with {% generation %}: processor.chat_template = ...",
    )
