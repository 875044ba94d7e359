"""Repositories opened by the oldest and the middle `datasets` that are promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omnidata.data.convert import convert
from omnidata.tasks.omnigui.load import load
from tests.conftest import Once
from tests.trees import row, write_app

pytestmark = pytest.mark.full("installs old versions of datasets")

_READ = """
import datasets, json, sys
datasets.disable_progress_bars()
repository, cache, name = sys.argv[1:]
data = datasets.load_dataset(repository, name, split="test", cache_dir=cache)
stream = datasets.load_dataset(repository, name, split="test", cache_dir=cache, streaming=True)
rows = [
    {**row, **{role: row[role] and [row[role]["path"], len(row[role].get("bytes") or b"")]
               for role in ("screenshot", "history_screenshot", "video", "audio")}}
    for row in data
]
mixed = sorted(row["sample_id"] for row in stream.shuffle(seed=1, buffer_size=20))
picture = data.cast_column("screenshot", datasets.Image())[0]["screenshot"]
print(json.dumps({"version": datasets.__version__, "rows": rows, "mixed": mixed,
                  "size": picture and picture.size}))
"""


@pytest.fixture(scope="session", params=["3.6.0", "4.0.0"])
def older(request: pytest.FixtureRequest, once: Once) -> Path:
    """The Python of an environment that has an old `datasets` and not omnidata."""

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"datasets=={request.param}", "pillow"], check=True)

    return once(f"datasets-{request.param}", install) / "bin" / "python"


def read(python: Path | str, repository: Path, cache: Path, name: str = "all") -> dict[str, object]:
    done = subprocess.run(
        [str(python), "-c", _READ, str(repository), str(cache), name],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("embed", [True, False], ids=["embed", "link"])
def test_old_versions_read_the_same_rows(
    older: Path, sample: Path, tmp_path: Path, embed: bool
) -> None:
    convert(load(sample / "Chirp", check_media=False), tmp_path / "out", embed=embed)
    for name in ("all", "critical", "en"):
        old = read(older, tmp_path / "out", tmp_path / "old", name)
        new = read(sys.executable, tmp_path / "out", tmp_path / "new", name)
        assert old.pop("version") != new.pop("version")
        assert old == new
        assert old["size"] == [720, 1600]


def test_old_versions_notice_a_rewrite(older: Path, sample: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    for left in (210, 1, 210):
        target = f"[[{left},786],[351,850]]"
        write_app(data / "TED", [row("A", result_touch_xy=target), row("B")])
        convert(load(data), out, embed=False, overwrite=True)
        rows = json.loads(_lefts(older, out, tmp_path / "cache"))
        assert rows["A"] == left


def _lefts(python: Path, repository: Path, cache: Path) -> str:
    code = (
        "import datasets, json, sys; datasets.disable_progress_bars();"
        "d = datasets.load_dataset(sys.argv[1], split='test', cache_dir=sys.argv[2]);"
        "print(json.dumps({r['episode_id']: r['action']['start'][0]['left'] for r in d}))"
    )
    return subprocess.run(
        [str(python), "-c", code, str(repository), str(cache)],
        capture_output=True, text=True, timeout=300, check=True,
    ).stdout  # fmt: skip
