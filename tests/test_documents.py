"""The README, the pages of docs, their pictures and the notebook are true."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cli.running import command_group, here
from tests.conftest import Once
from tests.export.small import tree

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="needs a checkout: the sdist has no docs and notebooks"
)
README = (ROOT / "README.md").read_text("utf-8")
README_COMMANDS = README.partition("## Six commands")[2].partition("```sh\n")[2].partition("```")[0]
VERBS = ["demo", "info", "evaluate", "report", "report", "compare"]


@pytest.fixture
def beside_data(demo: Path, tmp_path: Path) -> None:
    """Put the data that `omnidata demo` makes where it looks for those of an earlier call."""
    home = tmp_path / "omnidata-demo"
    shutil.copytree(demo, home / "data", copy_function=os.link)
    (home / "demo.json").write_text(json.dumps({"seed": 0, "omnidata": version("omnidata")}))


@pytest.mark.slow
@pytest.mark.usefixtures("beside_data")
def test_the_readmes_commands_run_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line.split() for line in README_COMMANDS.splitlines()]
    printed = "".join(map(run_command, commands))
    assert [words[1] for words in commands] == VERBS
    assert (tmp_path / "pages" / "index.html").is_file()
    assert "B: baseline:random" in printed


def test_the_readmes_python_shows_a_steps_media_and_history(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "omnidata-demo").mkdir()
    (tmp_path / "omnidata-demo" / "data").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(block, {})
    instruction, screenshot, clip, sound, history, target = capsys.readouterr().out.splitlines()
    assert instruction.startswith("Wait for the call")
    assert screenshot.startswith(str(sample.resolve())) and ".png (" in screenshot
    assert ".mp4 (" in clip
    assert ".wav (" in sound
    assert "'kind': 'NONE'" in history
    assert target.startswith("TAP [{")
    assert len(block.splitlines()) <= 14


@pytest.mark.full("every verb runs")
def test_the_command_lines_page_runs_line_by_line_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    blocks = "".join(re.findall(r"<!-- runs -->\n```sh\n(.*?)```", page, re.S))
    lines = blocks.replace("\\\n", "").splitlines()
    commands = [words for line in lines if (words := shlex.split(line, comments=True))]
    for words in commands:
        if words[1] != "doctor":  # it loads every package, and judges this machine
            run_command(words)
    assert len(commands) > 25


def test_the_command_lines_page_has_every_verb_and_its_lines_parse() -> None:
    group = command_group()
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    lines = re.findall(r"^omnidata (.*)", page.replace("\\\n", ""), re.M)
    for line in lines:
        command, context = group, group.make_context("omnidata", [], resilient_parsing=True)
        words = shlex.split(line, comments=True)
        while hasattr(command, "commands"):
            name, command, words = command.resolve_command(context, words)
            context = command.context_class(command, parent=context, info_name=name)
        command.make_parser(context).parse_args(words)  # options, without a look at files
    assert {line.split()[0] for line in lines} == set(group.commands)


def run_command(words: Sequence[str]) -> str:
    """Run a line of a shell, its globs expanded; return what it prints."""
    assert words[0] == "omnidata"
    found = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words[1:]]
    done = here(*(word for each in found for word in each))
    return done.stdout + done.stderr


def test_the_readme_is_short() -> None:
    text = re.sub(r"```.*?```|<[^>]*>", "", README, flags=re.S)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    assert 500 < len(re.findall(r"\S*\w\S*", text)) <= 950


HOSTS = {"arxiv.org", "github.com", "huggingface.co", "omni-bench.github.io"}
"""Where links of the README may lead to; nothing is asked of them here."""


def test_the_readmes_links_lead_to_files_or_to_known_hosts() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    links += re.findall(r"(?:src|srcset|href)=\"([^\"]+)\"", README)
    assert len(links) > 60
    parts = [urlsplit(link) for link in links]
    assert {part.netloc for part in parts if part.scheme} == HOSTS
    assert [
        part.path for part in parts if not part.scheme and not (ROOT / part.path).exists()
    ] == []


def test_the_readmes_data_sizes_and_licences_are_those_of_the_benchmarks() -> None:
    from omnidata import registry
    from omnidata.tasks import get_task

    known = {
        publication.url: publication
        for name in registry.benchmarks()
        for publication in get_task(name).benchmark.card.sources
    }
    elsewhere = "arxiv.org", "omni-bench.github.io"
    linked = 0
    for row in re.findall(r"^\| \[.*https://arxiv.*|^\| \[.*\| same.*", README, re.M):
        *_, size, _, _, source, licence, _ = row.split("|")
        urls = re.findall(r"\]\((https://[^)]+)\)", source)
        sources = [known[url] for url in urls if urlsplit(url).netloc not in elsewhere]
        linked += len(sources)
        stated = licence.strip().partition(" (")[0].lower()
        assert {each.licence for each in sources} <= {stated}, row
        steps = [each.remote.steps for each in sources if each.remote and each.remote.steps]
        assert not steps or f"{sum(steps):,}" == size.split()[0], row
    assert linked == 17


def test_the_readmes_badges_and_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = " | ".join(line[-4:] for line in project["classifiers"] if ":: 3." in line)
    for badge in (f"licence: {project['license']}", f"python: {versions}", "typing: typed"):
        assert f"[![{badge}](" in README
    assert project["requires-python"] == ">=3.11" and "Python 3.11 or newer" in README
    extras = {name for name, packages in project["optional-dependencies"].items() if packages}
    extras -= {"dev", "docs"}
    installed = ",".join(re.findall(r"'\.\[([\w,]+)\]'", README)).split(",")
    assert len(installed) >= 4 and set(installed) <= extras
    assert [extra for extra in sorted(extras) if f"| `{extra}`" not in README
            and f", `{extra}`" not in README] == []  # fmt: skip


def test_the_citation_has_what_its_form_requires_and_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["authors"] == project["authors"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    page = (ROOT / "docs" / "cite.md").read_text("utf-8")
    assert f"version = {{{project['version']}}}" in page
    papers = set(re.findall(r"arxiv\.org/abs/([\d.]+)", README))
    eprints = re.findall(r"eprint = \{([\d.]+)\}", page)
    assert papers <= set(eprints)
    assert re.findall(r"url = \{https://arxiv.org/abs/([\d.]+)\}", page) == eprints
    keys = re.findall(r"^@\w+\{(\w+),$", page, re.M)
    assert len(keys) == len(eprints) + 1 == len(set(keys))


def test_the_install_page_has_every_extra_and_its_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| ([`\w, ]+) \| (.*?) \| .* \|$", page, re.M)
    adds = {extra: row for names, row in rows for extra in re.findall(r"`(\w+)`", names)}
    every = project["optional-dependencies"]
    extras = {name: packages for name, packages in every.items() if packages}
    assert adds.keys() == extras.keys()
    for extra in extras.keys() - {"dev"}:  # its row says "test tools"
        packages = {re.split(r"[\[>=]", line)[0] for line in extras[extra]}
        assert packages <= set(adds[extra].split(", ")), extra


def test_the_security_page_names_options_that_exist() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "omnidata").rglob("*.py"))
    flags = re.findall(r"`(?:omnidata )?(--[\w-]+)`", page)
    assert len(flags) >= 4
    assert [flag for flag in flags if f'"{flag}"' not in source] == []
    named = re.findall(r"`-M (\w+)=", page)
    assert named and [name for name in named if f"{name}: " not in source] == []


@pytest.fixture(scope="module")
def pictures() -> Any:
    spec = spec_from_file_location("pictures", ROOT / "docs" / "_site" / "pictures.py")
    assert spec and spec.loader
    module = sys.modules["pictures"] = module_from_spec(spec)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.usefixtures("beside_data")
def test_no_picture_is_older_than_its_source(pictures: Any, tmp_path: Path) -> None:
    """Where it fails: `make pictures`, look at them, and commit them."""
    plots = find_spec("matplotlib") is not None
    assert pictures.find_stale(pictures.prepare(tmp_path, figures=plots)) == []


def test_a_picture_whose_source_or_file_changed_is_stale(pictures: Any, tmp_path: Path) -> None:
    for name, data in {"same.svg": "a", "newer.svg": "b", "edited.svg": "x"}.items():
        (tmp_path / name).write_text(data)
    made = {
        name: {"source": pictures.hash_of(b"1"), "picture": pictures.hash_of(data)}
        for name, data in {"same.svg": b"a", "newer.svg": b"b", "edited.svg": b"c"}.items()
    }
    (tmp_path / pictures.HASHES).write_text(json.dumps(made))
    sources = {"same.svg": "1", "newer.svg": "2", "edited.svg": "1", "absent.svg": "1"}
    assert pictures.find_stale(sources, tmp_path) == ["absent.svg", "edited.svg", "newer.svg"]


def test_pictures_are_small_used_and_load_nothing() -> None:
    folder = ROOT / "docs" / "pictures"
    made = {path for path in folder.iterdir() if path.suffix != ".json"}
    assert {path.name for path in made} == json.loads((folder / "sources.json").read_text()).keys()
    assert sum(path.stat().st_size for path in made) < 2_000_000
    pages = README + "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert [path.name for path in made if f"pictures/{path.name}" not in pages] == []
    drawn = "".join(path.read_text("utf-8") for path in made if path.suffix == ".svg")
    assert re.findall(r"(?:href|src)=\"(?!#)[^\"]*|url\((?!#)[^)]*|@import", drawn) == []


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

    text = (ROOT / "docs" / "benchmarks" / "omnigui.md").read_text("utf-8")
    for name, values in get_task("omnigui").allowed.items():
        assert f"`{name}=" in text
        for value in values:
            assert value in text
