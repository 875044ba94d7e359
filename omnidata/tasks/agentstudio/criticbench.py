"""CriticBench: did a trajectory fulfil its instruction? (AgentStudio, section 5.3, appendix E)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from omnidata.actions import Screen, Space
from omnidata.dialects import UnreadError
from omnidata.tasks.agentstudio.base import (
    FRAMES,
    AgentStudio,
    AgentStudioRule,
    action_frames,
    make_card,
)
from omnidata.tasks.agentstudio.messages import fill_prompt, image_messages, text_message
from omnidata.tasks.agentstudio.rows import AXES, window
from omnidata.tasks.agentstudio.rules import read_success, released_score
from omnidata.tasks.benchmark import History, ParsedAnswer, Receipt, Values
from omnidata.tasks.explaining import explain
from omnidata.tasks.profile import Profile
from omnidata.tasks.totals import YesNoTotals
from omnidata.types import Conversation, Explanation, Message, Step, Target, Verdict

# Reading and judging an answer.


def parse_released(text: str, step: Step, receipt: Receipt) -> ParsedAnswer[bool]:
    """Read an answer as the released evaluator stores it: only whether it is right.

    A wrong answer counts as the opposite of the truth, also if it cannot be read.
    """
    success: bool = step.source["is_success"]
    said = success == bool(released_score(success, text))
    return ParsedAnswer(said, {"success": said})


class SameOutcome(AgentStudioRule[bool]):
    """Compares the answer with `is_success` of the row; an unread one counts as neither."""

    totals = YesNoTotals(lambda step: bool(step.source["is_success"]), by=AXES)

    def judge(self, step: Step, parsed: ParsedAnswer[bool] | None) -> Values:
        """Compare the answer with the row."""
        if parsed is None:
            return (False, None)
        return (parsed.value == step.source["is_success"], parsed.value)


# The prompt and the target.


class _Record(TypedDict):
    success: bool


class CriticBench(AgentStudio):
    """CriticBench: up to five actions with the observations before them, then the question.

    The option `observations_only` leaves out the actions and the action space (Appendix E.2).
    `symmetric` leaves out the observation after the last action: as published, no success of
    Mind2Web and Android in the Wild has one, and every failure has.

    Args:
        name: "criticbench".
        options: as in `allowed`; unknown ones are a `UsageError`.
    """

    task = "criticbench"
    templates = ("critic", "critic_observations")
    card = make_card(
        task,
        "CriticBench",
        "judge from its screenshots whether a trajectory succeeded",
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "observations_only": ("false", "true"),
        "symmetric": ("false", "true"),
    }
    baselines: Sequence[str] = ("oracle", "always-true", "always-false", "majority")
    constants: Mapping[str, str] = {
        "always-true": "Answer: True",
        "always-false": "Answer: False",
    }

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        release = SameOutcome("release")
        release.parse = parse_released
        self.rules = (SameOutcome("paper"), release)

    def prompt(self, step: Step, history: History) -> Conversation:
        row, observations_only = step.source, self.options["observations_only"] == "true"
        kept = window("criticbench", row["actions"])
        messages: list[Message] = []
        for position in kept:
            messages += image_messages(step, f"observation_{position}")
            if not observations_only:
                messages.append(text_message(row["actions"][position]["metadata"]["repr"]))
        if self.options["symmetric"] == "false":
            messages += image_messages(step, f"observation_{kept.stop}")
        if observations_only:
            question = fill_prompt("critic_observations", instruction=step.instruction)
        else:
            space = ", ".join(row["action_space"])
            question = fill_prompt("critic", instruction=step.instruction, action_space=space)
        return (*messages, text_message(question))

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[bool]:
        said = read_success(text)
        if said is None:
            raise UnreadError("no truth value after an Answer:")
        return ParsedAnswer(said, {"success": said})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        text = f"Answer: {step.source['is_success']}"
        return Target(text, text)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[bool] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        said = _word(parsed is not None and parsed.value)

        def sentence(record: Mapping[str, Any], right: bool) -> str:
            true = "succeeded" if step.source["is_success"] else "failed"
            return f"the answer is {said}, and the trajectory {true}"

        return explain(
            verdict,
            profile,
            sentence,
            target_label=_word(step.source["is_success"]),
            answer_label=lambda record: said,
            overlays=lambda: action_frames(step),
            noun="judgement",
            frames=FRAMES,
        )


def _word(success: object) -> str:
    return "success" if success else "failure"
