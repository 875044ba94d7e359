"""Rewards as trainers call them, and the plan from which a trainer's process makes its reward.

Sources: the modules of `omnidata.training.formats`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omnidata.errors import DataError, PredictionError, UsageError
from omnidata.files import read_file
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training.reward_recipes import RecipeName, Term
from omnidata.training.rewards import TERMS, Reward, Score
from omnidata.types import LoadedDataset

# What `reward.json` says: enough to make the reward again, in any process.


class RewardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a reward.

    Attributes:
        task, task_options: of the evaluation.
        data: its files; a relative path is from the folder of the plan.
        dataset_fingerprint: of the annotations when the prompts were written.
        profile: judges the answers.
        terms: as `Reward` takes them.
    """

    task: str
    task_options: dict[str, str]
    data: str
    dataset_fingerprint: str
    profile: str
    terms: dict[Term, float] | RecipeName = msgspec.field(default_factory=lambda: {**TERMS})


def reward_plan(task: Asking, source: LoadedDataset, recipe: RecipeName | None) -> dict[str, Any]:
    """Return the plan of an export's reward, as in `reward.json`.

    Args:
        task: the benchmark with its options.
        source: its data.
        recipe: of the reward; None for the terms of `Reward`.
    """
    plan = RewardPlan(
        task=task.name,
        task_options=dict(task.options),
        data=str(source.root.absolute()),
        dataset_fingerprint=source.fingerprint,
        profile=task.default_profile,
        terms=recipe or {**TERMS},
    )
    found: dict[str, Any] = msgspec.to_builtins(plan)
    return found


def load_reward(path: Path) -> Reward:
    """Load the reward that a plan describes.

    Args:
        path: `reward.json` of an export.

    Raises:
        DataError: it cannot be read, or the data have changed since.
        UsageError: there is no such task, profile or term.
    """
    try:
        plan = msgspec.json.decode(read_file(path), type=RewardPlan)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DataError(
            f"the plan of the reward cannot be read ({error})",
            where=str(path),
            expected="reward.json as `omnidata export` writes it",
            remedy="export again",
        ) from None
    task = get_task(plan.task, plan.task_options)
    data = plan.data if "://" in plan.data else str(path.parent / plan.data)
    reward = Reward(task, data, profile=plan.profile, terms=plan.terms)
    if reward.fingerprint != plan.dataset_fingerprint:
        raise DataError(
            "the data have changed since the prompts were exported",
            where=data,
            expected=f"the fingerprint {plan.dataset_fingerprint}",
            remedy="export again, or correct `data` in reward.json",
        )
    return reward


def _receipt(text: str | None) -> Mapping[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _numbers(reward: Reward, sample_id: str, text: str, receipt: str | None) -> dict[str, float]:
    found = reward.score(sample_id, text, receipt=_receipt(receipt))
    worth = found["reward"]
    if worth is None:
        raise PredictionError(
            "the step cannot be judged",
            where=sample_id,
            expected="a step of the export",
            remedy="train on the rows that `omnidata export` wrote",
        )
    named = {"exact_match": found["exact_match"], "format_ok": found["format_ok"]}
    if found["type_match"] is not None:
        named["type_match"] = found["type_match"]
    return {"score": worth, **{name: float(value or 0.0) for name, value in named.items()}}


def verl_score(
    reward: Reward, solution: str, ground_truth: str, extra_info: Mapping[str, Any] | None
) -> dict[str, float]:
    """Return the result of verl's `compute_score`: `score`, and values to log.

    Args:
        reward: of the export.
        solution: the model's text.
        ground_truth: of the row: the id of the step.
        extra_info: of the row.
    """
    return _numbers(reward, ground_truth, solution, (extra_info or {}).get("receipt"))


def easyr1_score(reward: Reward, inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return the result of EasyR1's reward function for a batch: `overall`, and values to log.

    Args:
        reward: of the export.
        inputs: each with the `response` and the `ground_truth`, which is the row's `answer`.
    """
    found = []
    for each in inputs:
        row = json.loads(each["ground_truth"])
        numbers = _numbers(reward, row["sample_id"], each["response"], row["receipt"])
        found.append({"overall": numbers.pop("score"), **numbers})
    return found


def swift_scores(
    reward: Reward,
    completions: Sequence[str],
    *,
    sample_id: Sequence[str],
    receipt: Sequence[str] | None = None,
    is_truncated: Sequence[bool] | None = None,
    **columns: object,
) -> list[float | None]:
    """Return the result of an ORM of ms-swift for a batch.

    Args:
        reward: of the export.
        completions: the model's texts.
        sample_id: of each.
        receipt: of each.
        is_truncated: whether each was cut off; None if unknown.
        columns: further columns of ms-swift, ignored.
    """
    cut = is_truncated or [False] * len(completions)
    return [each["reward"] for each in _scores(reward, completions, sample_id, receipt, cut)]


def _scores(
    reward: Reward,
    texts: Sequence[str],
    sample_ids: Sequence[str],
    receipts: Sequence[str | None] | None,
    cut: Sequence[bool],
) -> list[Score]:
    return [
        reward.score(name, text, receipt=_receipt(shown), delivery="truncated" if ended else "ok")
        for name, text, shown, ended in zip(
            sample_ids, texts, receipts or [None] * len(texts), cut, strict=True
        )
    ]


# TRL takes a callable.


@dataclass(frozen=True, slots=True)
class TrlReward:
    """A reward function for `GRPOTrainer`; it logs TM and EM.

    Args:
        reward: scores the answers.
        ends: ids of the tokens that end an answer; an answer without one was cut off, and is wrong.
            Empty if unknown: answers are judged as they are.
        hears: whether the trainer passes sound and clips to the model. TRL's own trains on prompts
            without them, silently.
    """

    reward: Reward
    ends: Collection[int] = ()
    hears: bool = False

    def __post_init__(self) -> None:
        """Refuse a task whose answers TRL takes apart.

        Raises:
            UsageError: they are made of special tokens, which TRL leaves out of the text.
        """
        if self.reward.task.special_tokens:
            raise UsageError(
                "answers consist of special tokens, which TRL removes from the text",
                where=f"-T dialect={self.reward.task.options.get('dialect')}",
                expected="a dialect whose answers are plain text",
                remedy="use another dialect or another trainer",
            )

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        *,
        sample_id: Sequence[str],
        receipt: Sequence[str] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[str]], None] | None = None,
        **columns: object,
    ) -> list[float | None]:
        """The rewards, one for each completion; None where a step cannot be judged.

        The table of completions, where the trainer writes one, gets the column `sample_id`.

        Raises:
            UsageError: the prompts have sound or clips, and the trainer leaves them out.
        """
        if not self.hears:
            _refuse_unseen_media(prompts, "step" in columns)
        texts = [text if isinstance(text, str) else text[0]["content"] for text in completions]
        cut = [
            bool(self.ends and tokens) and tokens[-1] not in self.ends
            for tokens in completion_ids or [()] * len(texts)
        ]
        found = _scores(self.reward, texts, sample_id, receipt, cut)
        if log_extra:
            log_extra("sample_id", list(sample_id))
        if log_metric:
            for column, value in (("TM", "type_match"), ("EM", "exact_match")):
                known = [float(each[value]) for each in found if each[value] is not None]  # type: ignore[literal-required]  # keys of `Score`
                if known:
                    log_metric(column, sum(known) / len(known))
        return [each["reward"] for each in found]


def _refuse_unseen_media(prompts: Sequence[Any], of_steps: bool) -> None:
    if of_steps:
        raise UsageError(
            "the rows are steps, whose media TRL's GRPOTrainer never opens: it would train on the "
            "texts of the prompts alone",
            where="GRPOTrainer",
            expected="rows of `omnidata export --format trl-grpo`",
            remedy="train with omnidata.training.OmniGRPOTrainer",
        )
    turns = (turn for prompt in prompts if isinstance(prompt, list) for turn in prompt)
    contents = (turn["content"] for turn in turns if isinstance(turn["content"], list))
    kinds = (part["type"] for content in contents for part in content)
    if kind := next((kind for kind in kinds if kind in ("audio", "video")), ""):
        raise UsageError(
            f"the prompts hold {kind}, which TRL's GRPOTrainer leaves out when it scores what was "
            "sampled: it would silently train on other prompts than the model answered",
            where="GRPOTrainer",
            expected="prompts of text and pictures",
            remedy="train with omnidata.training.OmniGRPOTrainer, or export with "
            "--video frames --drop-audio",
        )
