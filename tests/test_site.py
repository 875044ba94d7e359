"""The site builds strictly, its links lead somewhere, and its numbers are what code finds."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.conftest import Once
from tests.full import FULL

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    not (ROOT / "mkdocs.yml").is_file(), reason="needs a checkout: the sdist has no docs"
)
COMPUTED = sorted(path for path in DOCS.rglob("*.md") if ">>> " in path.read_text("utf-8"))
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself."""


BUILD = """
import gc, logging, sys
gc.disable()
from mkdocs.commands.build import build
from mkdocs.config import load_config
logging.basicConfig(level=logging.WARNING)
config = load_config("mkdocs.yml", strict=True, site_dir=sys.argv[1])
if sys.argv[2] == "False":
    search = config.plugins.pop("material/search")
    for methods in config.plugins.events.values():
        methods[:] = [each for each in methods if getattr(each, "__self__", None) is not search]
    options = config.plugins["mkdocstrings"].config.handlers["python"]["options"]
    tables = ("parameters", "attributes", "returns", "raises", "yields")
    options |= {f"show_docstring_{table}": False for table in tables}
    config.mdx_configs["pymdownx.highlight"] = {"use_pygments": False}
    options |= {"separate_signature": False, "show_signature": False}
config.plugins.on_startup(command="build", dirty=False)
build(config)
"""
"""In the gate without what takes two thirds of the time and what no test here looks at: the index
for searches, colours of code, signatures, and the tables of parameters, which are read all the
same, and so checked, and have neither a link of their own nor a place that one leads to."""


class Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {value for name in ("id", "name") if (value := found.get(name))}
        if tag == "a" and (link := found.get("href")):
            self.links.add(link)
        if (part := LOADED.get(tag)) and (address := found.get(part)):
            self.loads.add(address)


@pytest.fixture(scope="module")
def pages(once: Once) -> dict[Path, Page]:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")

    def build(folder: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(folder), str(FULL)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )
        assert done.returncode == 0, done.stderr

    site = once("site", build)
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_of_the_site_leads_to_a_page_and_a_place(pages: dict[Path, Page]) -> None:
    broken = []
    followed = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            followed += 1
            if not target.exists() or (place and place not in pages[target].ids):
                broken.append(f"{path.name}: {link}")
    assert broken == []
    assert followed > 1000


def test_the_site_loads_nothing_from_outside(pages: dict[Path, Page]) -> None:
    loads = {address for page in pages.values() for address in page.loads}
    assert len(loads) > 5
    assert [address for address in loads if urlsplit(address).netloc] == []


def test_a_page_of_the_api_has_what_docstrings_say(pages: dict[Path, Page]) -> None:
    ids = {name for page in pages.values() for name in page.ids}
    assert {"omnidata.types.Step", "omnidata.metrics.graphs.coverage"} <= ids
    assert {"omnidata.tasks.base.Benchmark.answer", "omnidata.adapters.base.Model"} <= ids


def test_bars_in_tables_are_shown_as_they_are_typed(pages: dict[Path, Page]) -> None:
    [omnigui] = [path for path in pages if path.parts[-2:] == ("benchmarks", "omnigui.html")]
    assert "<code>modalities=IAV|IV|IA|I</code>" in omnigui.read_text("utf-8")


@pytest.mark.parametrize("page", COMPUTED, ids=lambda path: str(path.relative_to(DOCS)))
def test_what_a_page_computes_is_what_it_says(page: Path) -> None:
    found = doctest.testfile(
        str(page), module_relative=False, encoding="utf-8", optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.failed == 0
    assert found.attempted > 1


def test_every_metric_has_a_worked_example() -> None:
    pages = {path for path in (DOCS / "metrics").glob("*.md") if path.name != "index.md"}
    assert pages
    assert pages <= set(COMPUTED)


def prose(page: Path) -> str:
    """A page without its code, in which nothing is a link or a heading."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("[", "").replace("]", ""), text)


def places(page: Path) -> set[str]:
    """The anchors that a host of repositories gives to a page's headings."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{number}" if number else name for name, many in found.items()
            for number in range(many + 1)}  # fmt: skip


def test_every_link_leads_somewhere_in_the_repository_too() -> None:
    broken, followed = [], 0
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = prose(page)
        links = re.findall(r"\]\(\s*([^)\s]+)", text)
        # What the site alone resolves: names of its API in place of addresses.
        broken += [f"{page.name}: {link}" for link in re.findall(r"\]\[[\w.]+\]", text)]
        for link in links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            followed += 1
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.exists() or (parts.fragment and parts.fragment not in places(target)):
                broken.append(f"{page.name}: {link}")
    assert broken == []
    assert followed > 150


def test_the_quickstarts_python_runs(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "omnidata-demo").mkdir()
    (tmp_path / "omnidata-demo" / "data").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    for block in blocks:
        exec(block, {})
    assert len(blocks) == 2
    assert len(capsys.readouterr().out.splitlines()) == 2


def benchmark_pages() -> dict[str, Path]:
    """The page of every task that is ours."""
    from omnidata import registry

    found = {name: type(registry.get_task(name)).__module__ for name in registry.names()
             if registry.is_ours(name)}  # fmt: skip
    return {
        name: DOCS / "benchmarks" / f"{module.split('.')[2].replace('_', '-')}.md"
        for name, module in found.items()
    }


@pytest.mark.parametrize("name", sorted(benchmark_pages()))
def test_a_benchmarks_page_has_the_options_and_baselines_of_its_tasks(name: str) -> None:
    from omnidata.tasks import get_task

    task = get_task(name)
    text = benchmark_pages()[name].read_text(encoding="utf-8")
    assert f"`{name}`" in text
    assert [option for option in task.allowed if f"`{option}" not in text] == []
    assert [baseline for baseline in task.baselines if f"`{baseline}`" not in text] == []


def test_no_page_names_a_verb_that_does_not_exist() -> None:
    from typer.main import get_command

    from omnidata.cli import app

    verbs = set(get_command(app).commands)  # type: ignore[attr-defined] # a group's, not a command's
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        shells = re.findall(r"```sh\n(.*?)```", text, re.S)
        commands = "\n".join([*shells, *re.findall(r"^ {4}(?:\$ )?(\S.*)", text, re.M)])
        named = set(re.findall(r"^omnidata ([a-z]+)", commands, re.M))
        assert named <= verbs, (path, named - verbs)
