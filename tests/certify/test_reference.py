"""A model agrees with itself: in this process, and behind `transformers serve`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from omnidata.adapters.tiny import make_tiny
from omnidata.certify import certify
from omnidata.run.cluster import Recipe
from omnidata.run.cost import Limits
from tests.adapters.servers import running
from tests.certify.servers import Heard, Watching
from tests.full import FULL

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"needs the extra `local`: no {', '.join(MISSING)}")
def test_a_local_model_agrees_with_itself(tmp_path: Path) -> None:
    model = f"hf:{make_tiny('qwen2.5-omni', tmp_path / 'tiny')}"
    # Random weights hardly ever end an answer: each has hundreds of tokens.
    limits = Limits() if FULL else Limits(max_tokens=600)
    found = certify(model, tmp_path, against=model, modalities="", limits=limits)
    assert set(found.agreement.values()) == {1.0}
    assert found.differs == {}


def test_a_server_that_sends_pictures_twice_costs_other_tokens_than_its_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(heard: Heard) -> Heard:
        return Heard(heard.turns, [*heard.pictures] * 2)

    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    with running(Watching(twice)) as one, running(Watching()) as other:
        models = [Recipe("openai:m", base_url=f"{each.url}/v1") for each in (one, other)]
        found = certify(models[0], tmp_path, against=models[1], modalities="I")
    assert "tokens_differ" in [finding.cause for finding in found.faults]
    assert found.differs["question"] == "text/0"
