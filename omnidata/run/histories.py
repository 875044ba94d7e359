"""Histories of predictions: the actions of a model at earlier steps, for the prompt of a step.

With `-T patches=N` a history is semi-online (Lu et al., UI-S1: Advancing GUI Automation via
Semi-online Reinforcement Learning, 2025): the model's own actions as long as they are right; in the
place of one that is not stands the expert's, a patch. After more than N misses the rollout of the
episode ends, and its other steps are not asked about. Right is what the task's default profile
says, whatever profile the run is scored by, so that a history is a matter of the answers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from omnidata.actions import Action
from omnidata.predictions import Prediction
from omnidata.run.journal import TRANSIENT
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import of_screen
from omnidata.tasks.marks import find_standing
from omnidata.types import Completion, Step

PATCHES = "patches"


def patches_of(task: Asking) -> int | None:
    """Return how many misses of an episode are patched; None if histories are the model's own."""
    given = task.options.get(PATCHES)
    return None if given is None else int(given)


class Histories:
    """The histories of episodes, answer by answer; each episode's must come in order.

    Args:
        task: reads the answers, and judges them where misses are patched.
    """

    def __init__(self, task: Asking) -> None:
        self._task = task
        self._most = patches_of(task)
        self._past: dict[str, list[Action | None]] = {}
        self._misses: dict[str, int] = {}

    def before(self, step: Step) -> Sequence[Action | None]:
        """Return the actions before a step; None for an unknown one."""
        return self._past.get(step.episode, ())

    def has_ended(self, step: Step) -> bool:
        """Return whether the rollout of the step's episode had more misses than are patched."""
        return self._most is not None and self._misses.get(step.episode, 0) > self._most

    def remember(self, step: Step, answer: Completion | None) -> None:
        """Add the action of an answer, or None without an answer, to the history of its episode."""
        past = self._past.setdefault(step.episode, [])
        past.extend([None] * (step.step_index - len(past)))  # steps that the data lacks
        if self._most is not None:
            missed = is_miss(self._task, step, answer)
            if missed:
                self._misses[step.episode] = self._misses.get(step.episode, 0) + 1
            if missed is not False:
                past.append(step.action)
                return
        said = answer is not None and answer.delivery == "ok"
        past.append(
            self._task.history_action(step, answer.text, of_screen(answer.receipt, step.screen))
            if answer and said
            else None
        )


def is_miss(task: Asking, step: Step, answer: Completion | None) -> bool | None:
    """Return whether an answer is not right, by the task's default profile.

    Returns:
        None without an answer that could be a miss, because the step is asked again. False also
        if the step cannot be judged.
    """
    if answer is None or answer.delivery in TRANSIENT:
        return None
    if answer.delivery != "ok":
        return True
    profile = task.profiles[task.default_profile]
    verdict = profile.judge(step, answer.text, answer.receipt)
    return find_standing(profile, verdict) not in ("right", "unjudged")


def not_asked(
    task: Asking, steps: Iterable[Step], done: Mapping[str, Completion]
) -> frozenset[str]:
    """Return the ids of the steps after the end of a rollout; `steps` are whole episodes."""
    if patches_of(task) is None:
        return frozenset()
    histories, found = Histories(task), set[str]()
    for step in steps:
        if histories.has_ended(step):
            found.add(step.sample_id)
        elif step.sample_id in done:
            histories.remember(step, done[step.sample_id])
    return frozenset(found)


class PatchedRollouts:
    """Counts, while answers are scored, what was patched and how far the rollouts got."""

    def __init__(self, task: Asking, steps: Sequence[Step]) -> None:
        self._task, self._steps = task, steps
        self._missed: dict[str, bool | None] = {}

    def watch(self, answers: Iterable[Prediction]) -> Iterator[Prediction]:
        """Yield the answers unchanged, and judge each."""
        steps = {step.sample_id: step for step in self._steps}
        for answer in answers:
            if step := steps.get(answer.sample_id):
                self._missed[answer.sample_id] = is_miss(self._task, step, answer.completion())
            yield answer

    def table(self) -> dict[str, Any]:
        """Return the counts.

        Returns:
            `patches`, the most in an episode; `episodes`; `patched_steps`, misses after which the
            expert's action stands in the history; `patched_episodes`, that have any; `ended`,
            episodes with more misses; `not_asked`, steps after these without an answer; `reached`,
            the mean share of an episode's steps up to the last one asked about in its rollout.
        """
        most = patches_of(self._task) or 0
        found = dict.fromkeys(
            ("episodes", "patched_steps", "patched_episodes", "ended", "not_asked"), 0
        )
        shares = 0.0
        for _, same in groupby(self._steps, key=attrgetter("episode")):
            steps = list(same)
            misses = reached = 0
            for number, step in enumerate(steps, 1):
                if misses > most:
                    found["not_asked"] += step.sample_id not in self._missed
                elif step.sample_id in self._missed:
                    misses += self._missed[step.sample_id] is True
                    reached = number
            found["episodes"] += 1
            found["patched_steps"] += min(misses, most)
            found["patched_episodes"] += min(misses, most) > 0
            found["ended"] += misses > most
            shares += reached / len(steps)
        return {"patches": most, **found, "reached": shares / max(found["episodes"], 1)}
