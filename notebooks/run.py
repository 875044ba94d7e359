"""Run the notebooks and store their outputs.

    python notebooks/run.py [NAME ...]

Needs the extras `dev`, `local` and `train`. Nothing is downloaded.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

FOLDER = Path(__file__).parent
COLOURS = 128
"""Of a stored picture: screens have few, and files stay small."""


def execute(path: Path, scratch: Path) -> Any:
    """Run a notebook and return it with its outputs.

    Args:
        path: of the notebook.
        scratch: an empty folder for its files; nothing else is written.

    Raises:
        CellExecutionError: a cell raises an error.
        ValueError: an output has a warning, a progress bar, or a path of this machine.
    """
    notebook = nbformat.read(path, as_version=4)
    changed = {"TMPDIR": scratch, "HF_HOME": scratch / "hf", "IPYTHONDIR": scratch / "ipython"}
    environment = {**os.environ, **{name: str(place) for name, place in changed.items()}}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore:IProgress not found"}
    environment.pop("DATA", None)
    with tempfile.TemporaryDirectory() as sockets:  # kernels beside this one have others
        client = NotebookClient(
            notebook,
            config=Config(
                KernelManager={"transport": "ipc", "connection_file": f"{sockets}/kernel.json"}
            ),
            kernel_name="python3",
            timeout=600,
            record_timing=False,
        )
        client.execute(env=environment)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = list(_cleaned(cell.outputs))
            _check(path, cell, scratch)
    return notebook


def _cleaned(outputs: list[Any]) -> Iterator[Any]:
    """The printed text in a fixed order, values, and small pictures."""
    printed = [output for output in outputs if output.output_type == "stream"]
    for name in ("stdout", "stderr"):
        text = "".join(output.text for output in printed if output.name == name)
        text = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
        if name == "stderr":  # progress leaves blank lines
            text = re.sub(r"\n+", "\n", text)
        if text:
            yield nbformat.v4.new_output("stream", name=name, text=text + "\n")
    for output in outputs:
        if output.output_type == "stream":
            continue
        kept = {"text/plain": output.data.get("text/plain", "")}
        if picture := output.data.get("image/png"):
            kept = {"text/plain": "<an image>", "image/png": _small(picture)}
        yield nbformat.v4.new_output(
            output.output_type, data=kept, execution_count=output.get("execution_count")
        )


def _small(picture: str) -> str:
    """A PNG in base64 with few colours."""
    held = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    made = io.BytesIO()
    held.quantize(COLOURS, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def _check(path: Path, cell: Any, scratch: Path) -> None:
    """Refuse what no reader should see.

    Raises:
        ValueError: a text has it.
    """
    refused = re.compile(
        rf"Warning|\r|it/s|{re.escape(str(scratch))}|{re.escape(sys.prefix)}|/tmp/"
    )
    text = text_of(cell)
    if found := refused.search(text):
        raise ValueError(f"{path.name}: an output has {found[0]!r}:\n{text}")


def text_of(cell: Any) -> str:
    """The printed text of a cell and its value."""
    texts = [output.text for output in cell.outputs if output.output_type == "stream"]
    values = [output.data.get("text/plain", "") for output in cell.outputs if "data" in output]
    return "".join([*texts, *values])


def main() -> None:
    """Run the notebooks that are named, or all."""
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as scratch:
            nbformat.write(execute(path, Path(scratch)), path)
        print(f"{name}: {path.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
