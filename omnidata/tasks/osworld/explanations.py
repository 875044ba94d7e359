"""Why an answer to a turn of OSWorld is right or wrong: how it differs from what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.actions import Action, Screen, centre
from omnidata.errors import OmnidataError
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Turn,
    explained,
    fenced,
    gap,
    of_turns,
    quoted,
    shown,
)
from omnidata.tasks.osworld.actions import (
    actions_of,
    calls_of,
    details_of,
    judge,
    moved,
    parse,
    type_of,
)
from omnidata.types import Explanation, Profile, Step, Verdict


def explain(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    *,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a turn, and of a verdict on an answer to it.

    Args:
        step: of OSWorld.
        verdict: on an answer; None tells of the turn alone.
        profile: whose verdict it is.
        receipt: of the answer.
    """
    done = actions_of(calls_of(step.source).calls)
    parsed = verdict.parsed if verdict else None
    read = _read(parsed["code"]) if parsed and "code" in parsed else None
    said = _placed(read, step, receipt)
    target = _turn(done)
    return explained(
        verdict,
        profile,
        lambda parsed, right: _cause(done or [], said, step.screen, right=right),
        target_label=target.label if target else "",
        answer_label=lambda parsed: turn.label if (turn := _turn(read)) else "",
        places={SCREENSHOT: of_turns(target, _turn(said))},
        noun="action",
    )


def _read(code: str) -> Sequence[Action] | None:
    """What an answer does; None where it is not understood."""
    said = parse(fenced(code))
    return None if isinstance(said, str) else actions_of(said.statements)


def _placed(
    said: Sequence[Action] | None, step: Step, receipt: Mapping[str, Any] | None
) -> Sequence[Action] | None:
    """The same with places in pixels of the screen; None where the receipt cannot be read."""
    try:
        resized = resizing(receipt, where=step.sample_id)
    except OmnidataError:
        return None
    return moved(said, resized.to_screen) if said is not None and resized else said


def _turn(found: Sequence[Action] | None) -> Turn | None:
    if found is None:
        return None
    starts = tuple(region for one in found for region in one.start)
    ends = tuple(region for one in found for region in one.end)
    return Turn(tuple(map(type_of, found)), starts, ends)


def _cause(
    done: Sequence[Action], said: Sequence[Action] | None, screen: Screen, *, right: bool
) -> str:
    """How an answer differs from what the recorded agent did."""
    if said is None:
        return "a line of the answer is not understood"
    if right:
        return f"the answer does what the recorded agent did: {_listed(done)}"
    if list(map(type_of, said)) != list(map(type_of, done)):
        return (
            f"the answer is {_listed(said) or 'nothing'}, the recorded agent's is {_listed(done)}"
        )
    pairs = zip(done, said, strict=True)
    unlike = ((one, other) for one, other in pairs if not judge([one], [other], screen)[1])
    return next((_unlike(one, other, screen) for one, other in unlike), "what is done differs")


def _listed(found: Sequence[Action]) -> str:
    return ", ".join(map(type_of, found))


def _unlike(done: Action, said: Action, screen: Screen) -> str:
    if details_of(done) != details_of(said):
        return f"{type_of(done)}: {quoted(_detail(said))} in place of {quoted(_detail(done))}"
    found = []
    for name, wanted_at, given_at in (
        ("point", done.start, said.start),
        ("end", done.end, said.end),
    ):
        if wanted_at and given_at and wanted_at != given_at:
            point = centre(given_at[0])
            where = gap(point, wanted_at, screen, noun="recorded")
            found.append(f"the {name} {shown(point)} is {where}")
        elif wanted_at and not given_at:
            found.append(f"{type_of(done)} is at no place")
    return "; ".join(found)


def _detail(action: Action) -> str:
    """Keys that are typed one after the other as a text; other things with spaces between."""
    if action.kind != "keys":
        return " ".join(map(str, details_of(action)))
    keys = (" " if key == "space" else key for key in action.keys)
    return "".join(key if len(key) == 1 else f"[{key}]" for key in keys)
