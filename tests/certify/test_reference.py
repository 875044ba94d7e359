"""A model agrees with itself: in this process, and behind `transformers serve`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from omnidata.adapters.tiny import make_tiny
from omnidata.certify import certify
from omnidata.run.asker import Recipe
from tests.adapters.servers import running
from tests.adapters.serving import serving
from tests.certify.servers import Heard, Watching
from tests.trees import read_lines

LOCAL = [name for name in ("torch", "transformers") if find_spec(name) is None]
SERVING = [
    name
    for name in ("torchvision", "fastapi", "uvicorn", "openai", "multipart")
    if find_spec(name) is None
]


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))


def make_brief(folder: Path) -> Path:
    """A tiny model that ends its answers soon: its own settings favour the token of the end."""
    make_tiny("qwen2.5-omni", folder, seed=2)
    settings = folder / "generation_config.json"
    known = json.loads(settings.read_text("utf-8")) if settings.exists() else {}
    settings.write_text(json.dumps({**known, "sequence_bias": [[[1], 3.0]]}), "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(bool(LOCAL), reason=f"needs the extra `local`: no {', '.join(LOCAL)}")
def test_a_local_model_agrees_with_itself(tmp_path: Path) -> None:
    folder = make_brief(tmp_path / "tiny")
    found = certify(f"hf:{folder}", tmp_path, against=f"hf:{folder}", modalities="")
    assert set(found.agreement.values()) == {1.0}
    assert found.differs == {}


@pytest.mark.slow
@pytest.mark.skipif(
    bool(LOCAL or SERVING),
    reason=f"needs the extras `dev`, `local` and `openai`: no {', '.join(LOCAL + SERVING)}",
)
def test_a_served_model_agrees_with_itself(tmp_path: Path) -> None:
    """Texts and pictures: the server takes no clips, and no sound beside other parts."""
    folder, options = make_brief(tmp_path / "tiny"), {"image_size": "100"}
    with serving(folder) as url:
        served = Recipe(f"openai:{folder}", options, base_url=f"{url}/v1")
        found = certify(served, tmp_path, against=Recipe(f"hf:{folder}", options), modalities="I")
    assert len(found.agreement) > 15
    assert set(found.agreement.values()) == {1.0}
    states = {finding.probe: finding.state for finding in found.findings}
    assert states["tokens-of-reference"] == states["tokens"] == "pass"
    # It refuses settings that it does not know, and cannot end at texts.
    refused = {name for name, state in states.items() if state == "left out"}
    assert refused == {"prefix", "special-tokens", "stop"}
    assert found.faults == []
    ours, theirs = (
        {line["sample_id"]: line["usage"] for line in read_lines(path)}
        for path in sorted(tmp_path.glob("*/greedy/predictions.jsonl"), reverse=True)
    )
    answered = {name: usage for name, usage in ours.items() if usage}
    assert len(answered) > 60
    for counts in ("prompt_tokens", "completion_tokens"):
        assert {name: ours[name][counts] for name in answered} == {
            name: theirs[name][counts] for name in answered
        }


def test_a_server_that_sends_pictures_twice_costs_other_tokens_than_its_reference(
    tmp_path: Path,
) -> None:
    def twice(heard: Heard) -> Heard:
        return Heard(heard.turns, [*heard.pictures] * 2)

    with running(Watching(twice)) as one, running(Watching()) as other:
        models = [Recipe("openai:m", base_url=f"{each.url}/v1") for each in (one, other)]
        found = certify(models[0], tmp_path, against=models[1], modalities="I")
    assert "tokens_differ" in [finding.cause for finding in found.faults]
    assert found.differs["question"] == "text/0"
