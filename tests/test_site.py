"""The site builds strictly, every page is found, its links are live, its numbers are computed."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.cli.running import command_group
from tests.conftest import Once
from tests.full import FULL
from tests.goldens.worlds import build
from tests.report.planted_run import browser, until

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

    def make(folder: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(folder), str(FULL)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )
        assert done.returncode == 0, done.stderr

    site = once("site", make)
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


def test_every_page_names_the_version_and_its_source(pages: dict[Path, Page]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        source = re.search(r"Source of this page: <code>([^<]+)</code>", text)
        assert f"omnidata {project['version']}, {project['license']}" in text, path
        assert source, path
        assert (ROOT / source[1]).is_file(), source[1]


def test_an_address_that_does_not_exist_leads_on(pages: dict[Path, Page]) -> None:
    index = next(path for path in pages if path.parts[-2:] == ("site", "index.html"))
    lost = Page(index.with_name("404.html"))
    for name in ("index.html", "benchmarks/index.html", "cli.html"):
        assert f"/{name}" in lost.links
        assert (index.parent / name).is_file()


BROKEN = """() => [...document.querySelectorAll("article table code")].flatMap(code => {
  const text = code.firstChild;
  return [...(text.data ?? "").matchAll(/\\w+/g)].filter(word => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(word => word[0]);
})"""


@pytest.mark.parametrize("width", [1400, 390])
def test_tables_keep_words_of_code_whole_and_no_page_scrolls_sideways(
    pages: dict[Path, Page], width: int
) -> None:
    [site] = {path.parent for path in pages if path.parts[-2:] == ("site", "index.html")}
    with browser() as opened:
        page = opened.new_page(viewport={"width": width, "height": 900})
        for name in ("index", "columns", "models", "hub", "validate", "benchmarks/omnibench"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert page.evaluate(BROKEN) == [], name


SEARCHABLE = """
import sys
from mkdocs.commands.build import build
from mkdocs.config import load_config
nav = [{"Pages": ["index.md", "intervals.md"]}]
config = load_config("mkdocs.yml", docs_dir=sys.argv[1], site_dir=sys.argv[2], nav=nav)
config.plugins.on_startup(command="build", dirty=False)
build(config)
"""


def test_search_finds_words_in_a_folder_opened_as_files(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Start\n\nNothing is here.\n")
    (docs / "intervals.md").write_text("# Intervals\n\nThe zyzzyva resamples groups.\n")
    done = subprocess.run(
        [sys.executable, "-c", SEARCHABLE, str(docs), str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    with browser() as opened:
        page = opened.new_page()
        page.goto((tmp_path / "site" / "index.html").as_uri())
        page.wait_for_selector("[data-md-component=search-query]", state="attached")
        page.keyboard.press("/")
        until(page, "document.activeElement.name === 'query'")
        page.keyboard.type("zyzzyva")
        page.wait_for_selector(".md-search-result__link")
        found = page.get_attribute(".md-search-result__link", "href")
    assert Path(urlsplit(found).path).name == "intervals.html"


@pytest.mark.skipif(not FULL, reason="the gate builds no index for searches")
def test_the_index_for_searches_has_every_page(pages: dict[Path, Page]) -> None:
    [site] = {path.parent for path in pages if path.parts[-2:] == ("site", "index.html")}
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {urlsplit(entry["location"]).path or "index.html" for entry in index["docs"]}
    assert {path.relative_to(site).as_posix() for path in pages} <= found


def test_a_page_of_the_api_has_what_docstrings_say(pages: dict[Path, Page]) -> None:
    ids = {name for page in pages.values() for name in page.ids}
    assert {"omnidata.types.Step", "omnidata.metrics.graphs.coverage"} <= ids
    assert {"omnidata.tasks.benchmark.Benchmark.parse", "omnidata.adapters.base.Model"} <= ids


def test_bars_in_tables_are_shown_as_they_are_typed(pages: dict[Path, Page]) -> None:
    [omnigui] = [path for path in pages if path.parts[-2:] == ("benchmarks", "omnigui.html")]
    assert "<code>modalities=IAV|IV|IA|I</code>" in omnigui.read_text("utf-8")


@pytest.fixture
def beside_demo(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder that holds what `omnidata demo` makes there."""
    (tmp_path / "omnidata-demo").mkdir()
    (tmp_path / "omnidata-demo" / "data").symlink_to(demo)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", COMPUTED, ids=lambda path: str(path.relative_to(DOCS)))
@pytest.mark.usefixtures("beside_demo")
def test_what_a_page_computes_is_what_it_says(page: Path) -> None:
    found = doctest.testfile(
        str(page), module_relative=False, encoding="utf-8", optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.failed == 0
    assert found.attempted > 1


def test_the_reference_of_the_run_folder_names_every_field(few: Path, tmp_path: Path) -> None:
    import omnidata

    task = omnidata.get_task("omnigui")
    run = tmp_path / "run"
    omnidata.evaluate(task, task.load(few), "baseline:center", run)
    fields = set[str]()
    for name in ("run.json", "predictions.jsonl", "scores.jsonl", "results.json"):
        text = (run / name).read_text(encoding="utf-8")
        fields |= set(json.loads(text if name.endswith(".json") else text.partition("\n")[0]))
    page = (DOCS / "run_folder.md").read_text(encoding="utf-8")
    assert len(fields) > 40
    assert {field for field in fields if f"`{field}`" not in page} == set()


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


@pytest.mark.usefixtures("beside_demo")
def test_the_quickstarts_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    for block in blocks:
        exec(block, {})
    assert len(blocks) == 2
    assert len(capsys.readouterr().out.splitlines()) == 2


def benchmark_pages() -> dict[str, Path]:
    from omnidata import registry

    tasks = {
        name: registry.get_benchmark(name) for name in registry.names() if registry.is_ours(name)
    }
    homes = {
        name: type(getattr(task, "benchmark", task)).__module__.split(".")[2]
        for name, task in tasks.items()
    }
    return {
        name: DOCS / "benchmarks" / f"{folder.replace('_', '-')}.md"
        for name, folder in homes.items()
    }


@pytest.mark.parametrize("name", sorted(benchmark_pages()))
def test_a_benchmarks_page_has_what_its_tasks_have(name: str) -> None:
    from omnidata.tasks import get_task

    task = get_task(name)
    text = benchmark_pages()[name].read_text(encoding="utf-8")
    assert f"`{name}`" in text
    assert [option for option in task.allowed if f"`{option}" not in text] == []
    assert [baseline for baseline in task.baselines if f"`{baseline}`" not in text] == []
    assert [profile for profile in task.profiles if f"`{profile}`" not in text] == []
    assert [source.url for source in task.benchmark.card.sources if source.url not in text] == []
    licences = [source.licence or "none stated" for source in task.benchmark.card.sources]
    assert [licence for licence in licences if licence not in text] == []


def test_the_navigation_lists_every_page() -> None:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert listed == pages | notebooks


OPENED = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if path.parent.name in ("api", "benchmarks", "design", "metrics")
    or path.stem in ("install", "concepts", "run_folder", "papers", "differences")
]


@pytest.mark.parametrize("page", OPENED, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_opens_with_a_sentence(page: Path) -> None:
    title, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    assert re.match(r"[*A-Z`\[]", rest)
    assert "." in rest.partition("\n\n")[0]


SECTIONS = (
    "What it asks",
    "Get the data",
    "Load",
    "Prompt",
    "Actions and parsing",
    "Rules and profiles",
    "Metrics",
    "Known differences",
    "Tables of the paper",
)


@pytest.mark.parametrize(
    "page", sorted(set(benchmark_pages().values())), ids=lambda path: path.stem
)
def test_benchmark_pages_share_their_sections(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", prose(page), re.M)
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)


LOADED_WORLDS = {
    "omnigui": "omnigui-few",
    "agentstudio": "criticbench",
    "omnibench": "omnibench",
    "osworld": "osworld",
    "aitw": "aitw",
    "androidcontrol": "androidcontrol",
    "agentnet": "agentnet",
    "screenspot": "screenspot",
}
"""Page of a benchmark -> a small dataset that its Python loads."""


@pytest.mark.parametrize("name", sorted(LOADED_WORLDS))
def test_the_python_of_a_benchmarks_page_loads_its_data(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = build(LOADED_WORLDS[name], tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "DATA").symlink_to(data)
    monkeypatch.chdir(tmp_path / "work")
    text = (DOCS / "benchmarks" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    for block in blocks:
        exec(block, {})
    assert blocks
    assert capsys.readouterr().out.strip()


def commands() -> list[str]:
    """The command lines of the README, the quickstart and the pages that open with a sentence."""
    blocks = "\n".join(
        block
        for page in (ROOT / "README.md", DOCS / "quickstart.md", *OPENED)
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    )
    return sorted(set(re.findall(r"^omnidata .*", blocks.replace("\\\n", " "), re.M)))


@pytest.mark.parametrize("line", commands())
@pytest.mark.usefixtures("beside_demo")
def test_a_command_of_a_page_parses(line: str) -> None:
    from omnidata.tasks import get_task

    command, words = command_group(), shlex.split(line, comments=True)[1:]
    while hasattr(command, "get_command"):
        command = command.get_command(command.context_class(command), words.pop(0))
    context = command.make_context(line, list(words))
    for setting in (word for flag, word in pairwise(words) if flag == "-T"):
        option, _, value = setting.partition("=")
        values = get_task(context.params["task"]).allowed[option]
        assert not any(values) or value in values


def test_the_contract_lists_every_member_of_a_benchmark() -> None:
    from omnidata.tasks.benchmark import Benchmark

    text = (DOCS / "design" / "contract.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## Members")
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## Plug-ins")[0], re.M)
    listed = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    members = {*vars(Benchmark), *Benchmark.__annotations__, "options"}
    assert sorted(listed) == sorted(name for name in members if not name.startswith("_"))


def test_no_page_names_a_verb_that_does_not_exist() -> None:
    verbs = set(command_group().commands)
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        shells = re.findall(r"```sh\n(.*?)```", text, re.S)
        commands = "\n".join([*shells, *re.findall(r"^ {4}(?:\$ )?(\S.*)", text, re.M)])
        named = set(re.findall(r"^omnidata ([a-z]+)", commands, re.M))
        named |= set(re.findall(r"`omnidata ([a-z]+)", text))
        assert named <= verbs, (path, named - verbs)
