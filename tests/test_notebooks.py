"""The notebooks run as they stand, on the sample data, and hold no output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hub_server import Hub
from tests.loaders.agentstudio import columnwise, ground, pictures

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs a checkout: the sdist has no notebooks"
)
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
RUN_ELSEWHERE = "quickstart"
"""`test_documents` runs it, in a loop that runs already."""

CLAIMS = {
    "datasets_to_tensors": r"streamed (\d+) of \1 steps, each once: True(?s:.*)"
    r"hf://agent-studio/GroundUI-1K(?s:.*)of the Hub's 8 rows: \(2, 120, 200, 3\)(?s:.*)"
    r"streamed 8 of 8 steps from the Hub",
    "load_and_look": r"0 errors, 0 warnings, 0 unusable steps; looked at 149 steps",
    "evaluate_and_report": r"baseline:majority",
    "add_a_dataset": r"tasks of plugins: +colours(?s:.*)overall +16\.7",
    "add_a_model": r"plugins: +eye(?s:.*)overall +[1-9]",
    "compare_and_ablate": r"text-IAV-silence +25\.0(?s:.*)text-IAV-frozen-clip +100\.0",
    "reward_and_export": r"equal: True(?s:.*)True",
    "synthesise_and_finetune": r"'TM': 0\.0(?s:.*)'TM': (?!0\.0)\d",
}
"""What must be among the outputs for the texts beside them to be true."""

MOST_LINES = 60
"""Of a benchmark, or a model, of one's own."""


def read(name: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def publish(hub: Hub, folder: Path) -> None:
    """Rows of GroundUI, in the form and under the name that they have on the Hub."""
    names = [f"{number}.png" for number in range(8)]
    pictures(folder / "images", names)
    rows = []
    for name in names:
        content = (folder / "images" / name).read_bytes()
        row = columnwise(ground(image=name, instruction=f"Open {name}"))
        rows.append({**row, "image": {"bytes": content, "path": name}})
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    whole = (folder / "rows.parquet").read_bytes()
    hub.add("agent-studio/GroundUI-1K", {"data/train-00000-of-00001.parquet": whole})


def _said(cell: Any) -> str:
    """What a cell wrote to stdout, and its value."""
    written = [output.text for output in cell.outputs if output.get("name") == "stdout"]
    values = [output.data.get("text/plain", "") for output in cell.outputs if "data" in output]
    return "".join([*written, *values])


@pytest.mark.full("seconds of a kernel")
@pytest.mark.parametrize("name", [name for name in NAMES if name != RUN_ELSEWHERE])
def test_the_notebook_runs(
    name: str,
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if "from the Hub" in read(name).cells[0].source:
        publish(request.getfixturevalue("hub"), tmp_path)
    if "finetune" in name or "tensors" in name:
        pytest.importorskip("transformers", reason="needs the extra `local`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `dev`")
    monkeypatch.setenv("DATA", str(sample))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = pytest.importorskip("traitlets.config").Config(KernelManager={"transport": "ipc"})
    notebook = read(name)
    nbclient.NotebookClient(notebook, config=config, kernel_name="python3", timeout=300).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    said = "\n".join(map(_said, cells))
    assert re.search(CLAIMS[name], said), said


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
