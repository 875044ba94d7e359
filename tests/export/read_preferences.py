"""Reads preferences as ms-swift does, and gives them to TRL's own trainers for a few steps."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def by_swift(folder: Path) -> list[dict[str, Any]]:
    """Both conversations of every row, as the template gets them."""
    os.environ["MODELSCOPE_CACHE"] = str(folder.parent / "cache")
    from swift.dataset import load_dataset
    from swift.template.template_inputs import TemplateInputs

    rows, _ = load_dataset([str(folder / "train.jsonl")], strict=True, load_from_cache_file=False)
    found = []
    for row in rows:
        inputs = TemplateInputs.from_dict({key: row[key] for key in row if row[key] is not None})
        sides = {"chosen": inputs.chosen, "rejected": inputs.rejected}
        found.append(
            {
                name: {
                    "system": side.system,
                    "asked": side.messages[0]["content"],
                    "answer": side.messages[-1]["content"],
                    "images": len(side.images),
                    "videos": side.videos,
                    "audios": side.audios,
                }
                for name, side in sides.items()
            }
        )
    return found


def by_trl(folder: Path, checkpoint: Path, form: str) -> dict[str, Any]:
    """What the trainer's own collator makes of the rows, and how the loss goes."""
    import datasets
    from transformers import AutoModelForMultimodalLM, AutoProcessor

    rows = datasets.load_dataset("json", data_files=str(folder / "train.jsonl"), split="train")
    rows = rows.map(lambda row: {"images": [str(folder / name) for name in row["images"]]})
    rows = rows.cast_column("images", datasets.List(datasets.Image()))
    processor: Any = AutoProcessor.from_pretrained(checkpoint)
    own: dict[str, Any] = {
        "output_dir": str(folder.parent / "trained"), "max_length": None, "max_steps": 4,
        "report_to": [], "bf16": False, "use_cpu": True, "save_strategy": "no",
        "gradient_checkpointing": False, "dataloader_pin_memory": False, "logging_steps": 1,
        "learning_rate": 1e-2, "lr_scheduler_type": "constant",
        "per_device_train_batch_size": 2,
    }  # fmt: skip
    if form == "trl-dpo":
        from trl.trainer.dpo_config import DPOConfig
        from trl.trainer.dpo_trainer import DPOTrainer

        made: Any = (DPOTrainer, DPOConfig(**own))
    else:
        from trl.trainer.kto_config import KTOConfig
        from trl.trainer.kto_trainer import KTOTrainer

        made = (KTOTrainer, KTOConfig(**own))
    trainer = made[0](
        model=AutoModelForMultimodalLM.from_pretrained(checkpoint),
        args=made[1],
        train_dataset=rows,
        processing_class=processor,
    )
    batch = trainer.data_collator([rows[0], rows[1]])
    texts = processor.tokenizer.batch_decode(batch["input_ids"])
    pictures = len(batch["image_grid_thw"])
    trainer.train()
    logs = trainer.state.log_history
    return {
        "texts": texts,
        "pictures": pictures,
        "losses": [line["loss"] for line in logs if "loss" in line],
        "margins": [line["rewards/margins"] for line in logs if "rewards/margins" in line],
    }


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        where = Path(sys.argv[1])
        result: Any = (
            by_swift(where) if len(sys.argv) == 2 else by_trl(where, Path(sys.argv[2]), sys.argv[3])
        )
    json.dump(result, sys.stdout)
