"""Judge the replies to a probe: it passes, fails with a cause, or is unclear."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, Literal

from omnidata.actions import Pair, Screen, Space
from omnidata.certify.causes import CAUSES
from omnidata.certify.places import count_right, fit_places
from omnidata.certify.probes import Judgement, Probe, Question
from omnidata.metrics.intervals import wilson
from omnidata.types import Delivery

State = Literal["pass", "fail", "unclear", "left out"]
MOST: Final = 0.75
"""The share of replies that a finding needs; its Wilson interval must also lie above chance."""
_TOKENS: Final = 1.1
"""The ratio of counts of tokens that templates explain."""
_ANSWERED: Final[Collection[Delivery]] = ("ok", "truncated")
_PAIR_COSTS: Final = (1, 2, 3)
"""The tokens of two special tokens; the words beside them may cost one more or less."""
_SPEED: Final = 1.25
"""How much another speed of clips differs, at least."""
_CONTROLS: Final[Mapping[str, str]] = {
    "sound_cut": "beeps",
    "sound_cut_30": "beeps",
    "frame_times": "frames",
    "frames_lost": "several-pictures",
    "clip_cut": "several-pictures",
    "frame_order": "several-pictures",
}
"""Cause -> a simpler probe. A model that is too weak for it shows no such fault."""
_OUTAGE: Final = re.compile(
    r"HTTP (?:408|425|429|502|503|504)\b|connection|[Dd]isconnected|Timeout|server is up"
)
"""The errors of a busy server or of one that has ended: it refuses nothing."""
_GUESS: Final = 1 / 3
"""The chance of an answer that is one of a fault's, at least: weak models often err alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to one question.

    Attributes:
        id: of the question: its probe and number.
        question: what was asked.
        delivery: how it came.
        text: what the model wrote.
        said: what it says, as `Probe.read` returns it; empty for places and for nothing.
        point: the place that it says, as the model wrote it; None without one.
        size: width and height in pixels of the picture as sent.
        error: why there is no reply.
        tokens: of the prompt, as the server counts them; 0 if it does not.
        answer_tokens: of the answer, thoughts included; 0 if the server does not count them.
    """

    id: str
    question: Question
    delivery: Delivery
    text: str = ""
    said: str = ""
    point: Pair | None = None
    size: Screen = (0, 0)
    error: str = ""
    tokens: int = 0
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a probe.

    Attributes:
        probe: its name.
        claim: the statement that holds if it passes.
        state: "unclear" if the answers are neither right nor those of one fault, e.g. because the
            model is too weak; "left out" if the probe was not asked, or its setting is refused.
        cause: a key of `causes.CAUSES`; empty unless it fails.
        why: the cause in words, or the reason why it is unclear.
        fix: the remedy; empty unless it fails.
        right: how many replies are right.
        asked: how many questions there were.
        interval: Wilson's 95 % interval of the share of right replies.
    """

    probe: str
    claim: str
    state: State
    cause: str = ""
    why: str = ""
    fix: str = ""
    right: int = 0
    asked: int = 0
    interval: tuple[float, float] | None = None


def judge_probe(probe: Probe, replies: Sequence[Reply], space: Space) -> Finding:
    """Judge the replies to a probe.

    Args:
        probe: the probe.
        replies: to its questions, in order.
        space: the unit of places that was asked for.
    """
    refused = [reply for reply in replies if reply.delivery not in _ANSWERED]
    if not replies:
        return _unclear(probe, "no question was asked", 0, 0)
    if len(replies) < MOST * len(probe.questions):
        why = f"only {len(replies)} of {len(probe.questions)} questions were asked"
        return _unclear(probe, why, 0, len(replies))
    if len(refused) > (1 - MOST) * len(replies):
        said = refused[0].error or refused[0].delivery
        failed = sum(
            reply.delivery == "api_error" and not _OUTAGE.search(reply.error) for reply in refused
        )
        if failed >= MOST * len(replies) and probe.controls:
            return leave_out(probe, f"the server refuses this setting: {said}")
        if failed >= MOST * len(replies):
            return _fail(probe, "refused", said, 0, len(replies))
        why = f"{len(refused)} of {len(replies)} have no reply: {said}"
        return _unclear(probe, why, 0, len(replies))
    if probe.judged == "places":
        found = _judge_places(probe, replies, space)
    else:
        found = _JUDGES[probe.judged](probe, replies)
    cut = sum(
        reply.delivery == "truncated" and not reply.said and not reply.point for reply in replies
    )
    if found.state == "unclear" and cut > (1 - MOST) * len(replies):
        return replace(found, why=f"{cut} of {len(replies)} answers are cut: turn thoughts off")
    return found


def _judge_places(probe: Probe, replies: Sequence[Reply], space: Space) -> Finding:
    placed = [(reply.question.at, reply.point) for reply in replies]
    targets = [at for at, point in placed if at and point]
    points = [point for at, point in placed if at and point]
    size = replies[0].size
    right = count_right(targets, points, size, space)
    if len(points) < MOST * len(replies):
        return _unclear(probe, "most answers are not places", right, len(replies))
    found = fit_places(targets, points, size, space)
    if found is None:
        why = "no picture size, unit or order of axes explains the places"
        return _unclear(probe, why, right, len(replies))
    if found.cause:
        return _fail(probe, found.cause, found.detail, right, len(replies))
    return _pass(probe, right, len(replies))


def _judge_signs(probe: Probe, replies: Sequence[Reply]) -> Finding:
    right = sum(reply.said == reply.question.right for reply in replies)
    if _is_more(right, len(replies), probe.chance):
        return _pass(probe, right, len(replies))
    signs = Counter(reply.question.signs.get(reply.said, "") for reply in replies)
    signs.pop("", None)
    for cause, count in signs.most_common(1):
        # Some questions cannot show a fault: a cut after the last beep leaves their answer right.
        able = sum(cause in reply.question.signs.values() for reply in replies)
        if _is_more(count, able, max(probe.chance, _GUESS)):
            return _fail(probe, cause, f"{count} of {able} replies show it", right, len(replies))
    return _unclear(
        probe, "the answers are neither right nor explained by one fault", right, len(replies)
    )


def _is_more(count: int, total: int, chance: float) -> bool:
    interval = wilson(count, total)
    return interval is not None and count >= MOST * total and interval[0] > chance


def _judge_same(probe: Probe, replies: Sequence[Reply]) -> Finding:
    answered = [reply for reply in replies if reply.delivery in _ANSWERED]
    texts = {reply.text for reply in answered}
    if texts == {""}:
        return _unclear(probe, "all replies are empty", 0, len(answered))
    if len(texts) == 1:
        return _pass(probe, len(answered), len(answered))
    (cause,) = replies[0].question.signs.values()
    detail = f"{len(texts)} different texts in {len(answered)} replies"
    return _fail(probe, cause, detail, 0, len(answered))


def _judge_times(probe: Probe, replies: Sequence[Reply]) -> Finding:
    wanted = [float(reply.question.right) for reply in replies if reply.said]
    said = [float(reply.said) for reply in replies if reply.said]
    reach = [reply.question.reach for reply in replies if reply.said]
    differ = len(set(said)) > 2
    right = sum(abs(a - b) <= r for a, b, r in zip(said, wanted, reach, strict=True))
    if _is_more(right, len(replies), probe.chance) and differ:
        return _pass(probe, right, len(replies))
    if len(said) == len(replies) and differ:
        speed = median(a / b for a, b in zip(said, wanted, strict=True))
        near = sum(
            abs(a - speed * b) <= speed * r for a, b, r in zip(said, wanted, reach, strict=True)
        )
        # Some of random seconds lie near their median speed as well.
        if near == len(replies) and right <= len(replies) / 2 and _is_other_speed(speed):
            detail = f"seconds are {speed:.2g} times the right ones"
            return _fail(probe, "frame_times", detail, right, len(replies))
    return _unclear(
        probe, "the seconds are neither right nor all off by one factor", right, len(replies)
    )


def _is_other_speed(speed: float) -> bool:
    return max(speed, 1 / speed) > _SPEED if speed else False


def _judge_cut(probe: Probe, replies: Sequence[Reply]) -> Finding:
    found = _judge_signs(probe, replies)
    ends = [end for reply in replies if (end := _end_of_sound(reply))]
    if found.state != "unclear" or not ends:
        return found
    start = max((start for start, _ in ends), key=lambda at: sum(a <= at < b for a, b in ends))
    fits = [(a, b) for a, b in ends if a <= start < b]
    until = min(end for _, end in fits)
    # A model that hears one beep less now and then shows no cut.
    short = sum(float(reply.said or 0) < len(reply.question.beeps) - 1 for reply in replies)
    enough = MOST if short > 1 else 1
    if until == math.inf or len(fits) < enough * len(replies):
        return found
    cause = "sound_cut_30" if start < 30 <= until else "sound_cut"
    detail = f"{len(fits)} of {len(replies)} replies have the beeps before second {until:g} alone"
    return _fail(probe, cause, detail, found.right, len(replies))


def _end_of_sound(reply: Reply) -> Pair | None:
    """Return the seconds between which sound ends where only as many beeps are heard."""
    times, said = reply.question.beeps, float(reply.said or 0)
    if not 1 <= said <= len(times):
        return None
    count = int(said)
    return times[count - 1], times[count] if count < len(times) else math.inf


def _judge_tokens(probe: Probe, replies: Sequence[Reply]) -> Finding:
    shown, *plain = (reply.tokens for reply in replies)
    if not plain or not all((shown, *plain)):
        return _unclear(probe, "the server does not count tokens", 0, len(replies))
    if shown > max(plain):
        return _pass(probe, len(replies), len(replies))
    detail = f"{shown} tokens with a picture, {max(plain)} without"
    return _fail(probe, "picture_costs_nothing", detail, 0, len(replies))


def _judge_special_tokens(probe: Probe, replies: Sequence[Reply]) -> Finding:
    """Compare texts with two special tokens to the same without, by what prompt and answer cost.

    A pair that costs more tokens is plain text to the model. A lost token is counted still, and one
    that the model does not write is not.
    """
    bare = {reply.question.right: reply for reply in replies if not reply.question.signs}
    pairs = [
        (reply, bare[text]) for reply in replies for text in reply.question.signs if text in bare
    ]
    known = [(a, b) for a, b in pairs if b.tokens and a.tokens - b.tokens in _PAIR_COSTS]
    kept = sum(a.question.right in a.said for a, _ in known)
    lost = sum(
        b.question.right in a.said
        and b.question.right in b.said
        and a.answer_tokens - b.answer_tokens in _PAIR_COSTS
        for a, b in known
    )
    if len(known) < 2:
        why = "these are no special tokens of the model, or the server does not count tokens"
        return _unclear(probe, why, kept, len(known))
    if kept == len(known):
        return _pass(probe, kept, len(known))
    if lost == len(known):
        detail = f"{lost} of {len(known)} answers lack them, but cost as much as with them"
        return _fail(probe, "special_tokens_lost", detail, kept, len(known))
    return _unclear(probe, "the model does not repeat the text", kept, len(known))


_JUDGES: Final[Mapping[Judgement, Callable[[Probe, Sequence[Reply]], Finding]]] = {
    "signs": _judge_signs,
    "same": _judge_same,
    "times": _judge_times,
    "cut": _judge_cut,
    "tokens": _judge_tokens,
    "special": _judge_special_tokens,
}


def compare_tokens(ours: Sequence[Reply], theirs: Sequence[Reply]) -> Finding:
    """Compare the tokens of prompts with pictures with those of the reference.

    Args:
        ours: replies to questions with pictures.
        theirs: the reference's, to the same questions.
    """
    probe = Probe(
        name="tokens-of-reference",
        claim="pictures cost the same tokens as in the reference",
        questions=(),
    )
    counts = [(a.tokens, b.tokens) for a, b in pair_replies(ours, theirs)]
    if not counts or not all(map(all, counts)):
        return leave_out(probe, "no picture was sent, or one of the two does not count tokens")
    worst = max(counts, key=lambda pair: max(pair) / min(pair))
    detail = f"{worst[0]} tokens, {worst[1]} in the reference"
    if max(worst) <= _TOKENS * min(worst):
        return _pass(probe, len(counts), len(counts))
    return _fail(probe, "tokens_differ", detail, 0, len(counts))


def doubt_faults(
    findings: Sequence[Finding], probes: Mapping[str, Probe], replies: Mapping[str, Sequence[Reply]]
) -> list[Finding]:
    """Return findings, with faults that a weak model explains as unclear.

    A model that answers the same to almost everything shows no fault of its server, nor does one
    that is too weak for a simpler probe.

    Args:
        findings: of the probes.
        probes: by their names.
        replies: by the name of their probe.
    """
    states = {finding.probe: finding.state for finding in findings}
    places = Counter(states[name] for name, probe in probes.items() if probe.judged == "places")
    asked = [name for name, probe in probes.items() if probe.judged not in ("same", "tokens")]
    texts = Counter(reply.text for name in asked for reply in replies[name])
    is_constant = max(texts.values(), default=0) >= MOST * texts.total() > 0
    found = []
    for finding in findings:
        why = ""
        if is_constant and finding.probe in asked and finding.cause != "refused":
            why = "the model answers the same to almost everything"
        elif states.get(_CONTROLS.get(finding.cause, "")) == "unclear":
            why = f"the model is unsure of {_CONTROLS[finding.cause]} too"
        elif finding.cause in ("resized", "padded") and places["unclear"] > places["fail"]:
            why = "the places on most other pictures are unclear"
        elif finding.cause == "picture_costs_nothing" and states.get("text") == "pass":
            why = "pictures arrive, but the server does not count their tokens"
        elif finding.cause == "output_capped" and not _is_cap(replies[finding.probe]):
            why = "the model ends its answers early"
        elif finding.cause == "mono":
            why = "one channel reaches the model; most audio models mix the channels themselves"
        doubted = finding.state == "fail" and why
        found.append(
            replace(finding, state="unclear", cause="", why=why, fix="") if doubted else finding
        )
    return found


def _is_cap(replies: Sequence[Reply]) -> bool:
    """Return whether answers end at one limit, and not where a model likes to end: at a ten."""
    if all(reply.delivery == "truncated" for reply in replies):
        return True
    texts = {reply.text.strip() for reply in replies}
    return len(texts) == 1 and not min(texts).endswith("0")


def pair_replies(ours: Sequence[Reply], theirs: Sequence[Reply]) -> list[tuple[Reply, Reply]]:
    """Return the replies to the questions that both models answer, in order."""
    answered = {reply.id: reply for reply in theirs if reply.delivery in _ANSWERED}
    return [
        (reply, answered[reply.id])
        for reply in ours
        if reply.delivery in _ANSWERED and reply.id in answered
    ]


def leave_out(probe: Probe, why: str) -> Finding:
    """Return the finding of a probe that is not asked."""
    return Finding(probe=probe.name, claim=probe.claim, state="left out", why=why)


def _pass(probe: Probe, right: int, asked: int) -> Finding:
    return Finding(
        probe=probe.name,
        claim=probe.claim,
        state="pass",
        right=right,
        asked=asked,
        interval=wilson(right, asked),
    )


def _fail(probe: Probe, cause: str, detail: str, right: int, asked: int) -> Finding:
    what, fix = CAUSES[cause]
    return Finding(
        probe=probe.name,
        claim=probe.claim,
        state="fail",
        cause=cause,
        why=f"{what}: {detail}" if detail else what,
        fix=fix,
        right=right,
        asked=asked,
        interval=wilson(right, asked),
    )


def _unclear(probe: Probe, why: str, right: int, asked: int) -> Finding:
    return Finding(
        probe=probe.name,
        claim=probe.claim,
        state="unclear",
        why=why,
        right=right,
        asked=asked,
        interval=wilson(right, asked),
    )
