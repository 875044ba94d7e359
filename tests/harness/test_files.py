"""What needs no harness: the files of a task of lmms-eval, and what its functions give."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from omnidata.predictions import Prediction
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import whole_episodes
from omnidata.tasks import get_task
from tests.cli.running import as_json, omnidata
from tests.plugin import data as plugin
from tests.trees import write_lines


def functions(folder: Path, name: str) -> dict[str, Any]:
    """The YAML with the functions that it names, as lmms-eval reads it."""

    class Reader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def found(loader: Reader, node: yaml.ScalarNode) -> Any:
        module, _, function = str(loader.construct_scalar(node)).rpartition(".")
        spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
        assert spec
        assert spec.loader
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return getattr(made, function)

    Reader.add_constructor("!function", found)
    read: dict[str, Any] = yaml.load((folder / f"{name}.yaml").read_text(), Reader)
    return read


def test_a_plug_ins_totals_are_those_of_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.install(tmp_path / "plug", monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plug"))
    data = plugin.write(tmp_path / "data", episodes=3)
    omnidata("harness", "lmms", "odyssey", data, tmp_path / "tasks", anew=True)
    task = functions(tmp_path / "tasks", "omnidata_odyssey")
    docs = [
        json.loads(line)
        for line in Path(task["dataset_kwargs"]["data_files"]["test"]).read_text().splitlines()
    ]
    asking = get_task("odyssey")
    source = asking.load(data)
    assert [doc["sample_id"] for doc in docs] == [step.sample_id for step in source.steps]
    answers = [
        task["doc_to_target"](doc) if number % 3 else "no answer" for number, doc in enumerate(docs)
    ]
    records = [
        task["process_results"](doc, [text]) for doc, text in zip(docs, answers, strict=True)
    ]
    said = [
        Prediction(sample_id=doc["sample_id"], output=text)
        for doc, text in zip(docs, answers, strict=True)
    ]
    whole = whole_episodes(source.steps, source.steps)
    results = score(asking, get_profile(asking, None), source.steps, said, whole=whole)
    for metric in task["metric_list"]:
        name = metric["metric"]
        total = metric["aggregation"]([record[name] for record in records])
        assert total == results["overall"][name]
    first = task["doc_to_messages"](docs[0])
    assert [part["type"] for message in first for part in message["content"]].count("image") == 1
    assert len(task["doc_to_visual"](docs[0])) == 1
    assert source.steps[0].instruction in task["doc_to_text"](docs[0])

    lines = [
        {"doc_id": 0, "filtered_resps": [text], **record}
        for text, record in zip(answers, records, strict=True)
    ]
    from omnidata.run.logs import read_log

    log = write_lines(tmp_path / "log.jsonl", lines[::-1])
    found = {one.sample_id: one.output for one in read_log("lmms-eval", log, source, asking)}
    assert found == {one.sample_id: one.output for one in said}


def test_the_verb_writes_files_beside_those_of_other_tasks(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks"
    arguments = ("harness", "lmms", "omnigui", few, out)
    done = as_json(omnidata(*arguments, "-T", "modalities=I", "--json"))
    assert done["task"] == "omnidata_omnigui"
    assert done["metrics"] == ["TM", "EM", "SR", "GP"]
    setup = json.loads((out / "omnidata_omnigui.json").read_text())
    assert setup["options"] == {"modalities": "I"}
    assert "--include_path" in omnidata(*arguments).stdout  # the second writes them anew
    assert len([*out.iterdir()]) == 4


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("-T", "history=predicted"), "earlier answers"),
        (("-T", "modalities=X"), "IAV"),
        (("--profile", "nobody"), "omnigui-paper"),
    ],
)
def test_what_no_harness_can_ask_is_refused(
    few: Path, tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    done = omnidata("harness", "lmms", "omnigui", few, tmp_path / "tasks", *more, code=2)
    assert says in done.stderr
    assert not (tmp_path / "tasks").exists()


def test_a_failed_request_counts_as_wrong_and_is_no_answer(few: Path, tmp_path: Path) -> None:
    omnidata("harness", "lmms", "omnigui", few, tmp_path)
    task = functions(tmp_path, "omnidata_omnigui")
    (step, *_) = get_task("omnigui").load(few).steps
    failed = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 503"
    record = task["process_results"]({"sample_id": step.sample_id}, [[failed]])["EM"]
    assert (record["outcome"], record["exact_match"]) == ("api_error", 0)


@pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is not None, reason="inspect_ai is installed"
)
def test_a_log_of_inspect_ai_needs_inspect_ai(few: Path, tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK")
    done = omnidata("score", "omnigui", few, tmp_path / "a.eval", "--from", "inspect", code=2)
    assert "omnidata[inspect]" in done.stderr
