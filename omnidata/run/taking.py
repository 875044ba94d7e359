"""Whether a model is shown what it says that it takes, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from omnidata.adapters.base import untaken
from omnidata.errors import OmnidataError, UsageError
from omnidata.run.slips import slip
from omnidata.types import Adapter, Conversation, Prepared, Request, Step, Task


def check_taken(task: Task, adapter: Adapter, steps: Sequence[Step]) -> None:
    """Refuse, before the first request, media that the model cannot take.

    Every adapter is held to its `accepts`, whatever its own `refuses` says: media of other kinds
    must be dropped by it, and be in the receipt as "dropped".

    Raises:
        UsageError: the prompts have media that the model does not take.
    """
    seen = set()
    for step in steps:
        kinds = frozenset((role, ref.kind) for role, ref in step.media.items() if ref)
        if kinds in seen:
            continue
        seen.add(kinds)
        conversation = task.prompt(step, [])
        if reason := _refuses(adapter, conversation):
            raise UsageError(
                f"{adapter.name} cannot take the step as it is: {reason}",
                where=step.sample_id,
                expected="a model that takes all media of the prompt",
                remedy="choose fewer modalities with -T, or let the model do without them: "
                "-M degrade=true (each such step is counted next to the score)",
            )
        if untaken(conversation, adapter.accepts):
            try:
                made = adapter.prepare(Request(step.sample_id, conversation))
            except Exception:  # the run tries again, and says what is wrong with which step
                continue
            check_dropped(task, adapter, made)


def check_dropped(task: Task, adapter: Adapter, made: Prepared) -> None:
    """Refuse a request with media that the model does not take, unless its receipt drops them.

    Raises:
        UsageError: it has such media.
    """
    reason = untaken(made.request.conversation, adapter.accepts)
    if not reason:
        return
    accepts = adapter.accepts or frozenset()
    shown = Counter(
        (part.role, part.media.kind)
        for message in made.request.conversation
        for part in message.parts
        if part.media and part.media.kind not in accepts
    )
    dropped = Counter(
        (line.get("role"), line.get("kind"))
        for line in made.receipt.get("parts", ())
        if "dropped" in line
    )
    if not shown - dropped:
        return
    letters = "".join(k[0].upper() for k in ("image", "audio", "video") if k in accepts)
    fewer = [
        value for value in task.allowed.get("modalities", ()) if sorted(value) == sorted(letters)
    ]
    remedy = (
        f"choose fewer with -T modalities={fewer[0]}; or let the adapter"
        if fewer
        else "let the adapter"
    )
    raise UsageError(
        f"{adapter.name} cannot take the step as it is: {reason}",
        where=made.request.sample_id,
        expected="a prompt with no other media than those in the adapter's `accepts`",
        remedy=f"{remedy} say in `accepts` what it takes (None: it looks at no prompt), or "
        "drop them in `prepare` and say so in the receipt",
    )


def _refuses(adapter: Adapter, conversation: Conversation) -> str:
    try:
        return adapter.refuses(conversation)
    except OmnidataError:
        raise
    except Exception as error:
        failed = slip(adapter, error, "refuses")
        raise UsageError(
            failed.what,
            where=f"{adapter.name}, refuses, {failed.where}",
            expected="why it cannot take the conversation; empty if it can",
        ) from error
