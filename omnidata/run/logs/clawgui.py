"""Logs of clawgui-eval: its `predictions.jsonl`, the sample with the answer under `<model>_infer`.

Its published files are raw answers of agents, which `--dialect` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.loaders.row_files import Line
from omnidata.run.logs.log import LineLog, Sample, as_text

_INFERRED: Final = "_infer"


class ClawLog(LineLog):
    """A log of clawgui-eval: one JSON object per sample."""

    harness = "clawgui-eval"
    expected = "an object with question, image and <model>_infer"

    def sample(self, row: Mapping[str, Any], line: Line) -> Sample:
        answers = [value for key, value in row.items() if key.endswith(_INFERRED)]
        if len(answers) != 1:
            raise PredictionError(
                f"the line has {len(answers)} keys that end in {_INFERRED}",
                where=line.where,
                expected=self.expected,
                remedy="score the predictions of one model, as clawgui-eval writes them",
            )
        error = row.get("error")
        return Sample(
            row={"instruction": row.get("question"), "image": row.get("image")},
            target=json.dumps(row.get("answer")),
            answer=as_text(answers[0]),
            error=str(error) if error else "",
            where=line.where,
        )
