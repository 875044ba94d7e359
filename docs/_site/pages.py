"""What the site adds to the pages in `docs`: notebooks, versions, sources, bars in tables."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ADDRESS = re.compile(r">(\w+://[^<]+)<")
_CODE = re.compile(r"`[^`]+`")
_NOTEBOOK = re.compile(r"\]\(\.\./((?:\.\./)*notebooks/\w+)\.ipynb\)")
_SOURCE = re.compile(r"\[`([\w.]*?)(\w+)`\]\((?:\.\./)+(omnidata/[\w/]+)\.py\)")
_SECTIONS = {
    "benchmarks": "Benchmarks",
    "metrics": "Metrics",
    "notebooks": "Notebooks",
    "design": "Design",
    "api": "Reference",
}
"""Folder -> the section of the navigation that lists its pages."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version and the edit link, and list pages that `mkdocs.yml` does not name.

    The version is that of the checkout, not of whatever is installed. The link to edit a page
    appears once `pyproject.toml` names the repository (`project.urls.Repository`).
    """
    docs, root = Path(config.docs_dir), Path(config.config_file_path).parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.copyright = f"omnidata {project['version']}, {project['license']}"
    urls = project.get("urls", {})
    config.site_url = urls.get("Documentation")  # 404.html needs it where the site is in a folder
    if repository := urls.get("Repository"):
        config.repo_url = repository
        config.edit_uri = "edit/main/docs/"
    names = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    names += [f"notebooks/{path.stem}.md" for path in (root / "notebooks").glob("*.ipynb")]
    placed = json.dumps(config.nav)
    for name in sorted(name for name in names if f'"{name}"' not in placed):
        title = _SECTIONS.get(name.rpartition("/")[0], "More")
        section = next((item[title] for item in config.nav if title in item), None)
        if section is None:
            section = []
            config.nav.append({title: section})
        section.append(name)
    return config


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Name the file that a reader edits to change the page, and let addresses end a line at "/"."""
    html = _ADDRESS.sub(lambda text: text[0].replace("/", "/<wbr>").replace("/<wbr>/", "//"), html)
    folder = "" if page.file.generated_by else "docs/"
    name = page.file.src_uri.replace(".md", ".ipynb") if not folder else page.file.src_uri
    return (
        f'{html}\n<p class="source-file" data-search-exclude><small>Source of this page: '
        f"<code>{folder}{name}</code></small></p>"
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make a page of every notebook, in the folder `notebooks`."""
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
    r"""Turn a page of the repository into a page of the site.

    Links to notebooks lead to their pages. Links from a name to its source file lead to the API.
    Repository hosts need `\|` for a bar within code in a table; the site shows a bar.
    """
    markdown = _NOTEBOOK.sub(r"](\1.md)", markdown)
    markdown = _SOURCE.sub(
        lambda link: f"[`{link[1]}{link[2]}`][{link[3].replace('/', '.')}.{link[2]}]", markdown
    )
    return "\n".join(
        _CODE.sub(lambda code: code[0].replace(r"\|", "|"), line) if line[:1] == "|" else line
        for line in markdown.split("\n")
    )
