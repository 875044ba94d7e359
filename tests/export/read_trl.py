"""Reads an export as docs/export.md says and gives it to TRL's own trainer for a step."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def read(folder: Path, checkpoint: Path) -> dict[str, Any]:
    """The labels of every row as text, the grids of its pictures, and the loss of a step."""
    import datasets
    from transformers import AutoModelForMultimodalLM, AutoProcessor
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    rows = datasets.load_dataset("json", data_files=str(folder / "train.jsonl"), split="train")
    rows = rows.map(lambda row: {"images": [str(folder / name) for name in row["images"]]})
    rows = rows.cast_column("images", datasets.List(datasets.Image()))
    processor: Any = AutoProcessor.from_pretrained(checkpoint)
    trainer = SFTTrainer(
        model=AutoModelForMultimodalLM.from_pretrained(checkpoint),
        args=SFTConfig(
            output_dir=str(folder.parent / "trained"), max_length=None, max_steps=1, report_to=[],
            per_device_train_batch_size=1, bf16=False, use_cpu=True, save_strategy="no",
            gradient_checkpointing=False, dataloader_pin_memory=False,
        ),
        train_dataset=rows,
        processing_class=processor,
    )  # fmt: skip
    learned = []
    for row in rows:
        batch = trainer.data_collator([row])
        labels = batch["labels"][0]
        text = processor.tokenizer.decode(labels[labels != -100])
        learned.append({"labels": text, "pictures": len(batch["image_grid_thw"])})
    return {"rows": learned, "loss": trainer.train().training_loss}


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        result = read(Path(sys.argv[1]), Path(sys.argv[2]))
    json.dump(result, sys.stdout)
