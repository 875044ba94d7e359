"""What is written for the Hub is what its own library reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import EvalResultEntry, ModelCard, ModelCardData

from omnidata.analysis.model_card import write_card
from omnidata.errors import UsageError
from omnidata.run.run_files import Run
from tests.report.made import METRICS, write_run


def read_entries(path: Path) -> list[EvalResultEntry]:
    from huggingface_hub._eval_results import parse_eval_result_entries

    return parse_eval_result_entries(yaml.safe_load(path.read_text()))


def results_of(card: ModelCard) -> list[Any]:
    assert isinstance(card.data, ModelCardData)
    assert card.data.eval_results is not None
    return card.data.eval_results


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path / "run", where={"language": "en"}, versions={"omnidata": "0.1.0"})


def test_the_hubs_library_reads_the_card(run: Run, tmp_path: Path) -> None:
    (path,) = write_card([run], tmp_path / "out" / "README.md")
    card = ModelCard.load(path)
    assert isinstance(card.data, ModelCardData)
    assert card.data.model_name == "openai:a"
    found = results_of(card)
    assert [each.metric_type for each in found] == [name.lower() for name in METRICS]
    assert [each.metric_value for each in found] == [0.5, 0.4, 0.3, 0.2]
    exact = found[1]
    assert (exact.dataset_type, exact.metric_name) == ("omnigui", "EM (omnigui-paper)")
    assert exact.metric_args == {"profile": "omnigui-paper", "ci95": [0.2, 0.4]}
    assert exact.dataset_args["where"] == {"language": "en"}
    assert exact.dataset_args["fingerprint"] == "f" * 64
    assert "| openai:a |" in card.text


def test_the_hubs_library_writes_the_same_card_again(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "1"),
        write_run(tmp_path / "2", options={"modalities": "I"}, overall=(9.0, 8.0, 7.0, None)),
    ]
    (path,) = write_card(runs, tmp_path / "README.md")
    card = ModelCard.load(path)
    again = ModelCard(str(card))
    assert len(results_of(again)) == 7
    assert results_of(again) == results_of(card)


def test_the_newer_format_is_read_too(run: Run, tmp_path: Path) -> None:
    card, results = write_card([run], tmp_path / "README.md", {"omnigui": "lab/OmniGUI"})
    assert results == tmp_path / ".eval_results" / "omnigui.yaml"
    (entry,) = read_entries(results)
    assert (entry.dataset_id, entry.task_id, entry.value) == ("lab/OmniGUI", "omnigui", 0.4)
    assert entry.notes
    for said in ("EM as a fraction", "omnigui-paper", "modalities=IAV", "language=en", "100 steps"):
        assert said in entry.notes
    assert results_of(ModelCard.load(card))[0].dataset_type == "lab/OmniGUI"


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ({"imported": True}, "theirs"),
        ({"model": "a: [b]\n---\n<script># {"}, "a: [b]\n---\n<script># {"),
    ],
)
def test_a_card_has_the_runs_name_though_it_is_full_of_yaml(
    tmp_path: Path, own: dict[str, Any], name: str
) -> None:
    (path,) = write_card([write_run(tmp_path / "theirs", **own)], tmp_path / "README.md")
    card = ModelCard.load(path)
    assert isinstance(card.data, ModelCardData)
    assert card.data.model_name == name
    assert "<script>" not in card.text


def test_what_no_card_can_say_is_refused(run: Run, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", model="openai:b")
    with pytest.raises(UsageError, match="2 models"):
        write_card([run, other], tmp_path / "README.md")
    same = write_run(tmp_path / "same")
    with pytest.raises(UsageError, match="2 runs are of omnigui"):
        write_card([run, same], tmp_path / "README.md", {"omnigui": "lab/OmniGUI"})
    for dataset in ("OmniGUI", "lab/../../x"):
        with pytest.raises(UsageError, match="no id of a dataset"):
            write_card([run], tmp_path / "README.md", {"omnigui": dataset})
    assert not (tmp_path / "README.md").exists()
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UsageError, match="a file already"):
        write_card([run], tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text() == "mine"
