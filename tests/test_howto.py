"""The commands of how-to pages that need nothing but the demo run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.running import here

DOCS = Path(__file__).resolve().parents[1] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="needs a checkout: the sdist has no docs")
EIGHT_RUNS = pytest.mark.full("a grid of eight runs, and one of a few more")
FIGURES = {
    "errors": ["137", "115", "21.7"],
    "items": ["7.1", "2.7", "4.9"],
    "compare_runs": ["-25.0", "-32.9 to -17.4", "-3.5", "0.232"],
    "audit": ["56.2", "34.0", "0.005"],
}
"""What pages say of the demo, as its commands print it."""
NEEDS_MORE = re.compile(r"\b(DATA|SPEC|ORG)\b|(openai|gemini|hf):|--engine ray")
"""Other data, a model, an account or a cluster."""


def commands(page: Path) -> list[list[str]]:
    """Return the words of the commands in blocks that name the demo's folder or a run on it."""
    text = page.read_text("utf-8")
    fenced = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    indented = re.findall(r"(?:^ {4}omnidata .*\n)+", text, re.M)
    blocks = [text for text in [*fenced, *indented] if re.search("omnidata-demo|runs/center", text)]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [
        shlex.split(line.partition(">")[0], comments=True)[1:]
        for line in lines
        if line.startswith("omnidata ") and not NEEDS_MORE.search(line)
    ]


@pytest.fixture(scope="module")
def made(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `omnidata demo` leaves, out of data that are there already."""
    home = tmp_path_factory.mktemp("howto")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        Path("omnidata-demo").mkdir()
        Path("omnidata-demo/data").symlink_to(demo)
        for name in ("oracle", "center"):
            command = f"evaluate omnigui omnidata-demo/data --model baseline:{name} --out"
            here(*command.split(), f"omnidata-demo/runs/baseline-{name}-seed0")
    return home / "omnidata-demo"


@pytest.mark.parametrize(
    "name",
    [
        "evaluate", "score", "critics", "models", "dialects", "report", "errors", "items",
        "compare_runs", "publish", "audit", pytest.param("ablate", marks=EIGHT_RUNS),
    ],
)  # fmt: skip
def test_the_pages_commands_run_on_the_demo(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / f"{name}.md").read_text("utf-8")
    if "--figures" in page:
        pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, "omnidata-demo", symlinks=True)
    found = [words for words in commands(DOCS / f"{name}.md") if words != ["demo"]]
    assert found
    printed = ""
    for words in found:
        paths = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words]
        expected = 1 if words[0] == "audit" else 0  # the page says which leak the demo has
        printed += here(*(word for each in paths for word in each), code=expected).stdout
    figures = FIGURES.get(name, [])
    assert [each for each in figures if each not in page or each not in printed] == []
