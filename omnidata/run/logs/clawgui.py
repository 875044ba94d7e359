"""Logs of clawgui-eval: its `predictions.jsonl`, the sample with the answer under `<model>_infer`.

Its published files are raw answers of agents, which `--dialect` reads.
"""

from __future__ import annotations

import json
from typing import Final

from omnidata.errors import PredictionError
from omnidata.loaders.row_files import Line
from omnidata.run.bad_lines import row_of
from omnidata.run.logs.log import LineLog, Sample, as_text

_INFERRED: Final = "_infer"
_EXPECTED: Final = "an object with question, image and <model>_infer"


class ClawLog(LineLog):
    """A log of clawgui-eval: one JSON object per sample."""

    harness = "clawgui-eval"

    def sample(self, line: Line) -> Sample:
        found = row_of(line, _EXPECTED)
        answers = [value for key, value in found.items() if key.endswith(_INFERRED)]
        if len(answers) != 1:
            raise PredictionError(
                f"the line has {len(answers)} keys that end in {_INFERRED}",
                where=line.where,
                expected=_EXPECTED,
                remedy="score the predictions of one model, as clawgui-eval writes them",
            )
        error = found.get("error")
        return Sample(
            row={"instruction": found.get("question"), "image": found.get("image")},
            target=json.dumps(found.get("answer")),
            answer=as_text(answers[0]),
            error=str(error) if error else "",
            where=line.where,
        )
