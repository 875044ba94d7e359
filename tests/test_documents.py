"""The README's and the notebook's code runs as it stands."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from omnidata.cli import main
from tests.conftest import Once
from tests.export.small import tree

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="needs a checkout: the sdist has no docs and notebooks"
)


def test_the_readmes_python_runs(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "DATA").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2
    assert len(names["steps"]) > 0
    assert names["results"]["overall"]["TM"] > 0.2
    assert (tmp_path / "runs" / "majority" / "results.json").is_file()
    assert "0." in capsys.readouterr().out


def test_the_readmes_runs_are_made_before_they_are_looked_at(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "DATA").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    lines = (ROOT / "README.md").read_text("utf-8").partition("## Use")[2].splitlines()
    lines = lines[: lines.index("## Documentation")]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if "runs/" in line]
    for words in commands:
        found = [sorted(Path().glob(word)) if "*" in word else [word] for word in words]
        with pytest.raises(SystemExit) as ended:
            main([str(word) for each in found for word in each])
        assert ended.value.code == 0, words
    assert {words[0] for words in commands} == {
        "evaluate", "export", "score", "report", "compare", "items",
    }  # fmt: skip


def test_the_torch_pages_python_runs(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.adapters.local_models import checkpoint

    tree(tmp_path / "DATA")
    (tmp_path / "MODEL").symlink_to(checkpoint(once, "qwen2.5-omni"))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "torch.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    printed = capsys.readouterr().out
    assert printed.count("torch.Size([4, 3, 1008, 448])") == 2
    assert printed.count("torch.Size([2, 3, 1008, 448])") == 2
    seconds = len(names["item"].audio) / 16_000
    assert names["mel"].shape == (64, int(seconds * 80) + 1)  # a column of features every 12.5 ms
    assert names["mel"].isfinite().all() and names["mel"].std() > 0
    inputs = names["inputs"]
    assert inputs["pixel_values"].dim() == 2 and len(inputs["image_grid_thw"]) == 1
    heard = int(inputs["feature_attention_mask"].sum())
    assert heard == round(seconds * 100)  # Whisper's columns are 10 ms


def test_the_libraries_page_runs_and_names_what_is_declared_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path / "DATA", app="App")
    text = (ROOT / "docs" / "libraries.md").read_text("utf-8")
    table = re.findall(r"^\| \[([\w-]+)\]\(.*?\) \| .* \| (.*) \|$", text, re.M)
    assert {name for name, _ in table} == {
        "datasets", "torch", "torchaudio", "av", "transformers", "pillow", "jsonlines",
        "scikit-learn",
    }  # fmt: skip
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["local"]]
    imported = {"pillow": "PIL", "scikit-learn": "sklearn"}
    for name, places in table:
        assert any(re.match(rf"{name}\b", line) for line in declared), name
        for place in re.findall(r"`([\w.]+)`", places):
            spec = find_spec(place)
            assert spec, place
            source = Path(str(spec.origin))
            files = source.parent.rglob("*.py") if source.name == "__init__.py" else [source]
            use = re.compile(rf"^\s*(import|from) {imported.get(name, name)}\b", re.M)
            assert any(use.search(path.read_text("utf-8")) for path in files), (name, place)
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, {})
    assert "torch.Size([2, 3, 400, 180]) torch.Size([2, 4, 3, 400, 180])" in capsys.readouterr().out


def test_the_reinforcement_pages_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path / "DATA")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "reinforce.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(block, {})
    said = " ".join(line.lstrip("# ") for line in block.splitlines() if line.startswith("#"))
    assert " ".join(capsys.readouterr().out.split()) == said


@pytest.mark.full("another sample dataset is made")
def test_the_notebook_runs_where_a_loop_runs_already(capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}

    async def run_cells() -> None:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)

    asyncio.run(run_cells())
    assert names["results"]["oracle"]["overall"]["EM"] == 1.0
    assert "[video] video" in capsys.readouterr().out


def test_every_option_of_the_task_is_documented() -> None:
    from omnidata.tasks import get_task

    text = (ROOT / "docs" / "omnigui.md").read_text("utf-8")
    for name, values in get_task("omnigui").allowed.items():
        assert f"`{name}=" in text
        for value in values:
            assert value in text
