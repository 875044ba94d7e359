"""How OSWorld's rollouts ended, and their turns, seconds and tokens.

The release does not note them. Its loop asks the agent until it says DONE or FAIL, or has had its
turns (`max_steps` of `args.json`). It writes a line for every action, and none for a turn without a
runnable one. Any exception is written as the line "Time limit exceeded".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnidata.dialects.pyautogui import Call
from omnidata.jsontext import is_integer
from omnidata.metrics.rollouts import Attempt, Ending, period
from omnidata.tasks.osworld.actions import calls_of
from omnidata.tasks.osworld.load import actions_text
from omnidata.tasks.osworld.turns import Run, Turn
from omnidata.types import is_token_count

_PARTS: Final = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


def attempt_of(
    run: Run | None,
    *,
    task: str,
    score: float | None,
    action_space: str,
    limit: int | None,
    feasible: bool | None,
) -> Attempt:
    """Return the facts of an attempt by its trajectory.

    Args:
        run: the last one of the file, if any.
        task: `<domain>/<id>`.
        score: of the evaluation, if any.
        action_space: the agent's.
        limit: the turns that it was given, if known.
        feasible: whether the task is feasible, if known.
    """
    if run is None or not (run.turns or run.crashed):
        return Attempt(task, score)
    turns = run.turns
    times = run.times
    tokens = [found for turn in turns if (found := _tokens(turn)) is not None]
    return Attempt(
        task,
        score,
        _ending(run, action_space, limit, feasible=feasible, scored=score is not None),
        _number(run, turns[-1]) if turns else None,
        (times[-1] - times[0]).total_seconds() if times else None,
        sum(tokens) if tokens and len(tokens) == len(turns) else None,
    )


def _number(run: Run, turn: Turn) -> int:
    """Counts from 1, over the turns with code."""
    return turn.number - run.first_number + 1


def _ending(
    run: Run, space: str, limit: int | None, *, feasible: bool | None, scored: bool
) -> Ending:
    if run.crashed:
        return "time_limit" if "time limit" in run.crashed.lower() else "crash"
    last = run.turns[-1]
    calls = calls_of({"action_space": space, "rows": last.rows}).calls
    end = calls[-1] if calls else None
    if isinstance(end, Call) and end.kind == "terminate":
        if not end.status.lower().startswith("fail"):
            return "finished"
        return "fail" if feasible is None else "fail_wrong" if feasible else "fail_right"
    if last.rows[-1].get("done") is True:
        return "finished"
    if not scored:
        return "unknown"  # the loop did not come to its end, where the score is written
    if limit is not None and _number(run, last) < limit:
        return "parse_error"  # the loop went on, and nothing could be run
    if period([actions_text(turn.rows) for turn in run.turns]):
        return "repetition"
    return "unknown" if limit is None else "step_limit"


def _tokens(turn: Turn) -> int | None:
    """All lines of a turn repeat the same usage."""
    for row in turn.rows:
        response = row.get("response")
        for held in (row.get("usage"), response.get("usage") if isinstance(response, dict) else 0):
            if not isinstance(held, Mapping):
                continue
            for names in (("total_tokens",), *_PARTS):
                said = map(held.get, names)
                if parts := [each for each in said if is_token_count(each) and is_integer(each)]:
                    return sum(parts)
    return None
