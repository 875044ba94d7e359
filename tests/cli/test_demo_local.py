"""`omnidata demo --local`: a real model in the loop, made on the spot."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.running import as_json, omnidata
from tests.trees import read_lines

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "transformers"))), reason="needs the extra `local`"
)


@pytest.mark.full("half a minute with a model")
def test_a_local_demo_asks_a_model_of_transformers_and_a_second_one_uses_the_first(
    tmp_path: Path,
) -> None:
    first = omnidata("demo", "--local", "--out", tmp_path, "--json")
    model = f"hf:{tmp_path / 'tiny-qwen2.5-omni'}"
    results = as_json(first)
    assert list(results) == ["baseline:oracle", "baseline:center", model]
    assert results[model]["counts"]["steps"] == 4
    predictions = tmp_path / "runs" / "tiny-qwen2.5-omni-seed0" / "predictions.jsonl"
    lines = read_lines(predictions)
    assert all(line["usage"]["completion_tokens"] <= 16 for line in lines)
    assert all(line["receipt"]["tokens"][kind] for line in lines for kind in ("video", "audio"))

    second = omnidata("demo", "--local", "--out", tmp_path)
    assert read_lines(predictions) == lines  # with the latencies of the first
    assert "the weights are random" in second.stderr
