"""What the site adds to the pages in `docs`: notebooks, a place for each page, bars in tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_CODE = re.compile(r"`[^`]+`")
_NOTEBOOK = re.compile(r"\]\(\.\./((?:\.\./)*notebooks/\w+)\.ipynb\)")
_SOURCE = re.compile(r"\[`([\w.]*?)(\w+)`\]\((?:\.\./)+(omnidata/[\w/]+)\.py\)")
_SECTIONS = {
    "tasks": "Tasks",
    "metrics": "Metrics",
    "notebooks": "Notebooks",
    "design": "Design",
    "api": "API",
}
"""Folder -> the section of the navigation in which its pages stand."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page that `mkdocs.yml` gives no place stands at the end of its folder's section."""
    docs, notebooks = Path(config.docs_dir), Path(config.config_file_path).parent / "notebooks"
    names = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    names += [f"notebooks/{path.stem}.md" for path in notebooks.glob("*.ipynb")]
    placed = json.dumps(config.nav)
    for name in sorted(name for name in names if f'"{name}"' not in placed):
        title = _SECTIONS.get(name.rpartition("/")[0], "More")
        section = next((item[title] for item in config.nav if title in item), None)
        if section is None:
            section = []
            config.nav.append({title: section})
        section.append(name)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every notebook becomes a page of the folder `notebooks`."""
    for path in sorted(Path(config.config_file_path).parent.glob("notebooks/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        note = f"\n\n*This page is the notebook `notebooks/{path.name}`.*"
        text = "\n\n".join(map(_cell, cells)) + note
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    return files


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    language = "sh" if text.startswith("%%sh") else "python"
    code = f"```{language}\n{text.strip()}\n```"
    return "\n\n".join([code, *map(_output, cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    """Show a printed text, a value or a picture."""
    data = output.get("data", {})
    if "image/png" in data:
        source = "".join(data["image/png"]).strip()
        return f'<img alt="Output of the cell" src="data:image/png;base64,{source}">'
    text = "".join(output.get("text") or data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, **_: Any) -> str:
    r"""Make of a page as it reads in the repository one of the site.

    Links to notebooks lead to their pages, and links of a name in code to the file that has it lead
    to its place in the API. Tables of other dialects escape a bar in code, where this one shows the
    backslash.
    """
    markdown = _NOTEBOOK.sub(r"](\1.md)", markdown)
    markdown = _SOURCE.sub(
        lambda link: f"[`{link[1]}{link[2]}`][{link[3].replace('/', '.')}.{link[2]}]", markdown
    )
    return "\n".join(
        _CODE.sub(lambda code: code[0].replace(r"\|", "|"), line) if line[:1] == "|" else line
        for line in markdown.split("\n")
    )
