"""The notebooks run as they stand, on the sample data, and hold no output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs a checkout: the sdist has no notebooks"
)
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
RUN_ELSEWHERE = "quickstart"
"""`test_documents` runs it, in a loop that runs already."""

MOST_LINES = 60
"""Of a benchmark, or a model, of one's own."""


def read(name: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != RUN_ELSEWHERE])
def test_the_notebook_runs(
    name: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "finetune" in name:
        pytest.importorskip("transformers", reason="needs the extra `local`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `dev`")
    monkeypatch.setenv("DATA", str(sample))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = pytest.importorskip("traitlets.config").Config(KernelManager={"transport": "ipc"})
    notebook = read(name)
    nbclient.NotebookClient(notebook, config=config, kernel_name="python3", timeout=300).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_holds_no_output_and_explains_itself(name: str) -> None:
    cells = read(name).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    for cell in cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert cell.source.strip()


@pytest.mark.parametrize("name", ["add_a_dataset", "add_a_model"])
def test_what_one_adds_is_short(name: str) -> None:
    written = [cell.source for cell in read(name).cells if ".py" in cell.source[:30]]
    [module] = [source for source in written if source.startswith("%%writefile toy_")]
    assert len(module.splitlines()) - 1 < MOST_LINES
