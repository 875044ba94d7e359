"""Run folders written by hand, so that every number in them is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import Run, read_run
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset
from tests.trees import write_lines

OPTIONS = {
    "modalities": "IAV",
    "history": "gold",
    "history_screenshot": "on",
    "prompt_form": "paper",
    "voice": "",
    "voice_form": "paper",
    "coordinates": "norm1000",
}
METRICS = ("TM", "EM", "SR", "GP")
Numbers = Sequence[float | None]


def totals(values: Numbers, *, steps: int = 100, episodes: int = 20) -> dict[str, Any]:
    shares = [None if value is None else value / 100 for value in values]
    return {
        **dict(zip(METRICS, shares, strict=True)),
        "ci95": {
            name: None if share is None else [share / 2, share]
            for name, share in zip(METRICS, shares, strict=True)
        },
        "steps": steps,
        "episodes": episodes,
        "whole_episodes": episodes,
    }


def replay(
    out: Path,
    asking: Asking,
    source: LoadedDataset,
    texts: Sequence[str | None],
    receipt: Mapping[str, Any] = {},
    **settings: Any,
) -> Path:
    """A run in which the steps are answered so, in order; None is no answer."""
    lines = [
        {"sample_id": step.sample_id, "output": text, "receipt": receipt}
        for step, text in zip(source.steps, texts, strict=True)
        if text is not None
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    answers = write_lines(out.with_name(f"{out.name}.jsonl"), lines)
    evaluate(asking, source, f"replay:{answers}", out, **settings)
    return out


def write_scores(
    folder: Path,
    task: str,
    profile: str,
    overall: Mapping[str, float | None],
    by: Mapping[str, Any] = {},
    **counts: int,
) -> Run:
    """A folder of totals alone, of another benchmark."""
    folder.mkdir()
    held = {"task": task, "profile": profile, "overall": overall, "ci95": {}, "by": by}
    counted = counts or {"steps": 10, "episodes": 2}
    (folder / "results.json").write_text(
        json.dumps({**held, "counts": counted, "outcomes": {"ok": next(iter(counted.values()))}})
    )
    return read_run(folder)


def write_run(
    folder: Path,
    *,
    model: str = "openai:a",
    options: Mapping[str, str] = {},
    overall: Numbers = (50.0, 40.0, 30.0, 20.0),
    by: Mapping[str, Mapping[str, dict[str, Any]]] = {},
    scores: Mapping[str, bool | None] = {},
    answers: Mapping[str, str] = {},
    profile: str = "omnigui-paper",
    imported: bool = False,
    episodes: int = 20,
    **settings: Any,
) -> Run:
    """A folder as `evaluate` leaves it, or `score --out` if `imported`."""
    folder.mkdir(parents=True)
    if not imported:
        info = {
            "task": "omnigui",
            "options": {**OPTIONS, **options},
            "model": model,
            "model_options": {},
            "model_settings": {},
            "generation": {"temperature": 0.0, "max_new_tokens": 4096},
            "seed": None,
            "dataset_fingerprint": "f" * 64,
            "prompt_hash": json.dumps(options),
            "where": {},
            "exclude": [],
            "limit": None,
            "shard": None,
            "data": "/nowhere",
            **settings,
        }
        (folder / "run.json").write_text(json.dumps(info))
        write_lines(
            folder / "predictions.jsonl",
            [{"sample_id": name, "output": text} for name, text in answers.items()],
        )
    whole = totals(overall)
    results = {
        "task": "omnigui",
        "profile": profile,
        "overall": {name: whole[name] for name in METRICS},
        "ci95": whole["ci95"],
        "by": by,
        "counts": {"steps": 100, "episodes": episodes},
        "outcomes": {"ok": 100},
    }
    (folder / "results.json").write_text(json.dumps(results))
    write_lines(
        folder / "scores.jsonl",
        [
            {
                "sample_id": name,
                "outcome": "ok",
                "profile": profile,
                "type_match": exact,
                "exact_match": exact,
                "parsed": {"action_type": -1},
            }
            for name, exact in scores.items()
        ],
    )
    return read_run(folder)
