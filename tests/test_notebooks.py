"""The notebooks run as they are and give the outputs that are stored."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs a checkout: the sdist has no notebooks"
)
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
CLAIMS = {
    "quickstart": r"'oracle': {'TM': 100\.0, 'EM': 100\.0",
    "datasets_to_tensors": r"streamed (\d+) of \1 steps, each once: True",
    "load_and_look": r"0 errors, 0 warnings, 0 unusable steps; checked 144 steps",
    "evaluate_and_report": r"baseline:majority",
    "add_a_dataset": r"tasks of plugins: +colours(?s:.*)overall +16\.7",
    "add_a_model": r"plugins: +eye(?s:.*)overall +[1-9]",
    "compare_and_ablate": r"text-IAV-silence +25\.0(?s:.*)text-IAV-frozen-clip +100\.0",
    "reward_and_export": r"equal: True(?s:.*)True",
    "synthesise_and_finetune": r"'TM': 0\.0(?s:.*)'TM': (?!0\.0)\d",
}
"""What the texts of the notebooks say of their outputs."""

PICTURES = {"load_and_look": 2, "quickstart": 1}
MOST_BYTES = 2_500_000
MOST_LINES = 60
"""Of a benchmark, or a model, of one's own."""


def read(name: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def runner() -> Any:
    pytest.importorskip("nbclient", reason="needs the extra `dev`")
    spec = importlib.util.spec_from_file_location("notebooks_run", FOLDER / "run.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def codes(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.full("seconds of a kernel")
@pytest.mark.parametrize("name", NAMES)
def test_a_run_gives_the_stored_outputs(name: str, tmp_path: Path, runner: Any) -> None:
    if "`local`" in read(name).cells[0].source:
        pytest.importorskip("transformers", reason="needs the extra `local`")
    ran = codes(runner.execute(FOLDER / f"{name}.ipynb", tmp_path))
    for stored, cell in zip(codes(read(name)), ran, strict=True):
        assert len(cell.outputs) == len(stored.outputs), cell.source
        if "varies" not in cell.metadata.get("tags", ()):
            assert runner.text_of(cell) == runner.text_of(stored), cell.source
    assert re.search(CLAIMS[name], "\n".join(map(runner.text_of, ran)))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_explains_itself_and_shows_its_outputs(name: str, runner: Any) -> None:
    notebook = read(name)
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert re.search(r"Needs\s+the\s+(base install|extras? `)", first.source)
    assert all(cell.source.strip() and cell.execution_count for cell in codes(notebook))
    text = "\n".join(map(runner.text_of, codes(notebook)))
    assert re.search(CLAIMS[name], text)
    assert not re.search(r"Warning|Traceback|\r|/tmp/|/home/|/root/|\.venv|site-packages", text)
    pictures = [
        output
        for cell in codes(notebook)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == PICTURES.get(name, 0)


def test_the_notebooks_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("name", ["add_a_dataset", "add_a_model"])
def test_what_one_adds_is_short(name: str) -> None:
    written = [cell.source for cell in read(name).cells if ".py" in cell.source[:30]]
    [module] = [source for source in written if source.startswith("%%writefile toy_")]
    assert len(module.splitlines()) - 1 < MOST_LINES
