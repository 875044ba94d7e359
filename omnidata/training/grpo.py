"""Group-relative policy optimisation of omni models: TRL's trainer with sound and clips.

TRL's own `GRPOTrainer` gives all media to the model while it samples, and only pictures when it
scores what was sampled: the gradient is that of prompts without sound and clips, and no metric
shows it. Here each row keeps the tensors of its media, and every scoring pass gets them: of the
policy, of its older self and of the reference model.

Source: TRL 1.16.0, `trl/trainer/grpo_trainer.py`. It has no public hook for this, so other versions
are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch
from torch import Tensor
from torch.nn.functional import pad
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from omnidata.adapters.hf.model import InputPipeline
from omnidata.adapters.hf.options import parse
from omnidata.errors import DataError, PlatformError, UsageError
from omnidata.jsontext import json_lines
from omnidata.run.selection import Split
from omnidata.storage import read_json
from omnidata.tasks.asking import Asking
from omnidata.training.export_files import REPORT, REWARD
from omnidata.training.formats.base import screenshot_size
from omnidata.training.reward_files import TrlReward, load_reward
from omnidata.training.rewards import Reward
from omnidata.types import LoadedDataset, Step

if TYPE_CHECKING:
    import datasets

TRL: Final = "1.16."
"""The versions whose internals are known."""
_KEPT: Final = 64
"""Prompts whose tensors stay in memory between batches."""


def prompt_table(task: Asking, steps: LoadedDataset | Sequence[Step]) -> datasets.Dataset:
    """Return steps as the rows to which `OmniGRPOTrainer` samples answers.

    A row has `sample_id`, the `step`, and as `prompt` the texts of the prompt, for logs. No medium
    is opened, and the right answer is not among them.

    Args:
        task: the benchmark of the steps.
        steps: the result of a loader, or some of its steps.

    Raises:
        DataError: there is no step, or a step has no target.
    """
    from omnidata.training.tables import training_table

    rows = training_table(task, steps)
    found = steps.steps if isinstance(steps, LoadedDataset) else steps
    return rows.with_transform(partial(_prompts_at, task, found))


def exported_prompts(out: Path, split: Split = "train") -> tuple[Asking, datasets.Dataset]:
    """Return the steps of an export as a `prompt_table`, and their task.

    The prompts are made again from the data, with unchanged media. So a split of
    `omnidata export --format trl-grpo` and its checks for leaks cover sound and clips too.

    Args:
        out: the export; `load_reward(out / "reward.json")` is its reward.
        split: which rows.

    Raises:
        DataError: it is no such export, or the data have changed since.
        UsageError: its prompts show something else than those of the data.
    """
    reward = load_reward(out / REWARD)
    report = read_json(out / REPORT)
    options = report.get("options", {})
    altered = {
        "--video frames": options.get("video", "file") != "file",
        "--drop-audio": options.get("drop_audio", False),
        "--image-size, --smart-resize": any((options.get("sizing") or {}).values()),
        "--histories": "histories" in report,
    }
    for flag, is_given in altered.items():
        if is_given:
            raise UsageError(
                "the prompts in the rows differ from those of the data",
                where=f"{out}, {flag}",
                expected="an export without it",
                remedy="prompt_table(run_histories(task, source, RUN).task, steps)"
                if flag == "--histories"
                else "export again without it; OmniPrompts(options=...) sets sizes",
            )
    path = out / f"{split}.jsonl"
    if not path.is_file():
        raise DataError(
            "the export has no such rows",
            where=str(path),
            expected="an export with --format trl-grpo or swift-grpo, and that split",
            remedy="export again",
        )
    steps = [
        reward.step(row["sample_id"] if isinstance(row, dict) and "sample_id" in row else where)
        for where, row in json_lines(path)
    ]
    return reward.task, prompt_table(reward.task, steps)


def _prompts_at(
    task: Asking, steps: Sequence[Step], rows: Mapping[str, Sequence[int]]
) -> dict[str, list[Any]]:
    found = [steps[number] for number in rows["number"]]
    return {
        "prompt": [
            [
                {
                    "role": turn.role,
                    "content": "".join(part.text or f"<{part.kind}>" for part in turn.parts),
                }
                for turn in task.conversation(step)
            ]
            for step in found
        ],
        "sample_id": [step.sample_id for step in found],
        "step": found,
    }


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt as the model takes it; tensors are named as the model takes them."""

    ids: Tensor  # int64 (tokens,)
    per_token: Mapping[str, Tensor]  # (tokens,) each
    media: Mapping[str, Tensor]
    receipt: str  # the size of the screenshot, as JSON


class OmniPrompts:
    """Make prompts for one checkpoint, with the code of the evaluation.

    Args:
        path: the checkpoint: a folder, or the name of a model that transformers finds.
        task: writes the prompts.
        options: as given with `-M key=value` in evaluation.

    Attributes:
        processor: of the checkpoint.
        media_tokens: ids of tokens for media and around media, which no answer may contain.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint or option, sound is interleaved with clips, or
            prompts show a model's own answers.
    """

    def __init__(
        self, path: str | Path, task: Asking, *, options: Mapping[str, str] | None = None
    ) -> None:
        if task.needs_predictions:
            raise UsageError(
                "rows are asked one at a time, so no prompt can show the model's own answers",
                where="-T history=predicted",
                expected="history=gold or history=none",
            )
        self._pipeline = InputPipeline(str(path), parse(options or {}))
        self._task = task
        self.processor = self._pipeline.processor
        known = self.processor.tokenizer.get_vocab()
        names = {*self._pipeline.family.tokens, *self._pipeline.inputs.placeholders.values()}
        self.media_tokens = sorted(known[name] for name in names if name in known)
        self._made: dict[str, _Prompt] = {}

    def of(self, step: Step) -> _Prompt:
        """Return the prompt of a step; the latest ones are kept.

        Raises:
            MediaError: a medium cannot be read, or a text holds a placeholder; names the step.
            UsageError: the model cannot take the step whole.
        """
        made = self._made.pop(step.sample_id, None) or self._make(step)
        self._made[step.sample_id] = made
        if len(self._made) > _KEPT:
            del self._made[next(iter(self._made))]
        return made

    def _make(self, step: Step) -> _Prompt:
        turns, receipt = self._pipeline.decode(self._task.conversation(step), step.sample_id)
        batch = self._pipeline.inputs.batch([turns], special_tokens=self._task.special_tokens)
        if batch.how:
            raise UsageError(
                "sound is interleaved with clips, which is not supported in reinforcement learning",
                where=step.sample_id,
                expected="-M audio_in_video=false",
            )
        ids = batch.tensors["input_ids"]
        rest = {
            name: torch.as_tensor(value)
            for name, value in batch.tensors.items()
            if name not in ("input_ids", "attention_mask")
        }
        tokens = {name: value[0] for name, value in rest.items() if value.shape == ids.shape}
        media = {name: value for name, value in rest.items() if name not in tokens}
        return _Prompt(ids[0], tokens, media, screenshot_size(receipt))


class OmniGRPOTrainer(GRPOTrainer):
    """TRL's `GRPOTrainer` for prompts with pictures, clips and sound.

    Prompts are the evaluation's, tensor for tensor. Tokens that stand for media are never sampled:
    an answer that held one could not be scored. Rewards are those of `omnidata score` on the same
    texts; an answer that was cut off is wrong, as there.

    Args:
        model: a model of transformers, with its weights.
        reward_funcs: `Reward`s, or any that TRL accepts.
        args: as TRL takes them.
        train_dataset: from `prompt_table`.
        prompts: of the same checkpoint.
        eval_dataset: likewise.
        options: further options of `GRPOTrainer`: `callbacks`, `peft_config`, `optimizers`.

    Raises:
        PlatformError: TRL has another version.
        UsageError: an option is not covered: vLLM, continuous batching, Liger's kernel, tools,
            environments, own rollouts, several processes.
    """

    def __init__(
        self,
        model: Any,
        reward_funcs: Any,
        *,
        args: GRPOConfig,
        train_dataset: Any,
        prompts: OmniPrompts,
        eval_dataset: Any = None,
        **options: Any,
    ) -> None:
        _check(args, options)
        given: dict[str, Any] = dict(cast("Any", args.generation_kwargs) or {})
        taken = given.get("suppress_tokens") or []
        args.generation_kwargs = {
            **given,
            "suppress_tokens": sorted({*taken, *prompts.media_tokens}),
        }
        self._prompts = prompts
        self._prepared: list[_Prompt] = []
        self._kept: dict[bool, list[_Prompt]] = {}
        self._scored: list[_Prompt] = []
        functions = reward_funcs if isinstance(reward_funcs, list) else [reward_funcs]
        super().__init__(
            model=model,
            reward_funcs=[
                TrlReward(each) if isinstance(each, Reward) else each for each in functions
            ],
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=prompts.processor,
            **options,
        )
        if self.accelerator.num_processes > 1:
            raise _unsupported_error("several processes", "one")
        ends = frozenset([*self.eos_token_ids, self._tokenizer.pad_token_id])
        self.reward_funcs = [
            replace(each, ends=ends, hears=True) if isinstance(each, TrlReward) else each
            for each in self.reward_funcs
        ]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._prepared = [self._prompts.of(_step(row)) for row in inputs]
        self._kept[self.model.training] = self._scored = self._prepared
        rows = [
            {**row, "receipt": prompt.receipt}
            for row, prompt in zip(inputs, self._prepared, strict=True)
        ]
        found: dict[str, Any] = super()._generate_and_score_completions(rows)
        found["media_row"] = torch.arange(len(rows), device=found["prompt_ids"].device)
        return found

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[list[list[int]], None, dict[str, Any]]:
        made = self._prepared
        fields: dict[str, Any] = _join_media([each.media for each in made], self.model.dtype)
        for name in made[0].per_token:
            fields[name] = [each.per_token[name].tolist() for each in made]
        return [each.ids.tolist() for each in made], None, fields

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        kept = self._kept[self.model.training]
        self._scored = [kept[number] for number in inputs["media_row"].tolist()]
        return super()._compute_loss(model, inputs)  # type: ignore[no-untyped-call]  # TRL's

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        **options: Any,
    ) -> Any:
        """Score with the media: TRL takes the rows in order, some at a time."""
        whole = _ModelWithMedia(model, self._scored, logits_to_keep, self.model.dtype)
        return super()._get_per_token_logps_and_entropies(
            whole, input_ids, attention_mask, logits_to_keep, **options
        )


class _ModelWithMedia:
    """A model that gets the media of the rows that it scores, in their order."""

    def __init__(
        self, model: Any, prompts: Sequence[_Prompt], answer: int, dtype: torch.dtype
    ) -> None:
        self._model, self._answer, self._dtype = model, answer, dtype
        self._prompts = iter(prompts)

    def __call__(self, *, input_ids: Tensor, **inputs: Any) -> Any:
        rows = [*islice(self._prompts, len(input_ids))]
        if len(rows) != len(input_ids):
            raise RuntimeError(f"{len(input_ids)} rows are scored, {len(rows)} are known")
        given = _join_media([row.media for row in rows], self._dtype)
        before = input_ids.shape[1] - self._answer
        for name in rows[0].per_token:
            values = [row.per_token[name] for row in rows]
            given[name] = torch.stack(
                [pad(value, (before - len(value), self._answer)) for value in values]
            )
        there = {name: value.to(input_ids.device) for name, value in given.items()}
        return self._model(input_ids=input_ids, **inputs, **there)


def _step(row: Mapping[str, Any]) -> Step:
    found = row.get("step")
    if not isinstance(found, Step):
        raise UsageError(
            "a row has no step, and so no media",
            where="OmniGRPOTrainer(train_dataset=...)",
            expected="rows of omnidata.training.prompt_table",
        )
    return found


def _join_media(media: Iterable[Mapping[str, Tensor]], dtype: torch.dtype) -> dict[str, Tensor]:
    found: dict[str, list[Tensor]] = {}
    for each in media:
        for name, value in each.items():
            found.setdefault(name, []).append(
                value.to(dtype) if value.is_floating_point() else value
            )
    return {name: _pad_and_concatenate(values) for name, values in found.items()}


def _pad_and_concatenate(values: Sequence[Tensor]) -> Tensor:
    sizes = torch.tensor([value.shape[1:] for value in values]).amax(dim=0).tolist()
    filled = []
    for value in values:
        lacking = [most - own for most, own in zip(sizes, value.shape[1:], strict=True)]
        filled.append(pad(value, [side for most in reversed(lacking) for side in (0, int(most))]))
    return torch.cat(filled)


def _check(args: GRPOConfig, options: Mapping[str, Any]) -> None:
    if not version("trl").startswith(TRL):
        raise PlatformError(
            f"TRL {version('trl')} is installed",
            where="OmniGRPOTrainer",
            expected=f"TRL {TRL}x, whose internals it overrides",
            remedy=f"pip install 'trl=={TRL}*'",
        )
    for name in ("use_vllm", "use_transformers_continuous_batching", "use_liger_kernel"):
        if getattr(args, name, False):
            raise _unsupported_error(f"{name}=True", "False")
    for name in ("tools", "environment_factory", "rollout_func"):
        if options.get(name):
            raise _unsupported_error(f"{name}=...", "None")
    if args.remove_unused_columns:
        raise _unsupported_error(
            "remove_unused_columns=True", "False, as the step is one of the columns"
        )


def _unsupported_error(what: str, expected: str) -> UsageError:
    return UsageError(
        "this is not supported with sound and clips",
        where=f"OmniGRPOTrainer, {what}",
        expected=expected,
        remedy="leave it out; for large models take ms-swift or verl (docs/reinforce.md)",
    )
