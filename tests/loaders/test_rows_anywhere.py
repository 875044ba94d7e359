"""Rows come back as they came, wherever they wait for their episodes and however a file is cut."""

import json
import random
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnidata.jsontext import json_items
from omnidata.loaders.row_files import read_rows
from omnidata.tasks import get_task
from tests.loaders import neighbours, phones
from tests.loaders.every import is_on_disk, rows_of
from tests.trees import row, write_app, write_rows

VARIABLE = "OMNIDATA_STEPS_IN_MEMORY"


def apart(task: str, folder: Path) -> Path:
    """Rows of which no two neighbours are of one episode, some of them wrong."""
    pairs = [*product(range(15), "abc")]
    random.Random(0).shuffle(pairs)
    if task == "aitw":
        for number, name in pairs:
            steps = [phones.zoo(number, episode_id=name), phones.zoo(number, episode_id="x")]
            write_rows(folder / f"{number}{name}.json", [*steps, phones.zoo("y")])
        return folder
    if task == "mind2web":
        rows = (
            neighbours.web_row(name) | {"action_uid": str(number), "target_action_index": number}
            for number, name in pairs
        )
        return neighbours.mind2web(folder, *rows)
    steps = [row(name, number, app="TED") for number, name in pairs]
    steps += [steps[7], row("a", 3, app="TED", image_width=9), row("d", 1), row("e", 0)]
    steps.append(row("b", step_id="z"))
    if task == "array":
        return write_rows(folder / "steps.json", steps)
    app = write_app(folder / "TED", [step | {"app": "TED"} for step in steps])
    for name in ("a", "b", "e"):
        own = [step for step in steps if step["episode_id"] == name]
        write_rows(app / "media" / name / f"{name}.json", own[1:] if name == "a" else own)
    (app / "media" / "b" / "b.json").write_text("[{")
    return folder


@pytest.mark.parametrize("most", ["0", "35"])
@pytest.mark.parametrize("task", ["aitw", "mind2web", "array", "tree"])
def test_an_episodes_rows_may_lie_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, most: str
) -> None:
    data = apart(task, tmp_path)
    asking = get_task("omnigui" if task in ("array", "tree") else task)
    in_memory = asking.load(data)
    monkeypatch.setenv(VARIABLE, most)
    on_disk = asking.load(data)
    assert (is_on_disk(on_disk), is_on_disk(in_memory)) == (True, False)
    assert len(in_memory.steps) >= 45
    assert on_disk == in_memory


@pytest.mark.parametrize("most", ["0", "35"])
def test_an_episode_that_is_there_twice_agrees_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    rows = [row(name, number, app="TED") for number, name in product(range(15), "abc")]
    app = write_app(tmp_path / "TED", rows)
    for name in "abc":
        own = [step for step in rows if step["episode_id"] == name]
        write_rows(app / "media" / name / f"{name}.json", own)
    monkeypatch.setenv(VARIABLE, most)
    found = get_task("omnigui").load(tmp_path, check_media=False)
    assert (len(found.steps), [finding.code for finding in found.findings]) == (45, [])


@pytest.mark.parametrize(
    "task",
    [
        *("agentnet", "androidcontrol", "cagui-grounding", "criticbench", "groundui"),
        *("gui-odyssey", "idm-multiple", "idm-single", "omnibench", "osworld", "osworld-g"),
        "screenspot",
    ],
)
def test_every_benchmark_has_the_same_steps_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    data, asking = rows_of(task, tmp_path), get_task(task)
    in_memory = asking.load(data)
    monkeypatch.setenv(VARIABLE, "0")
    on_disk = asking.load(data)
    assert (is_on_disk(on_disk), is_on_disk(in_memory)) == (True, False)
    assert on_disk == in_memory


class Cut(BytesIO):
    """A file of which no more than a few bytes come at once."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.most)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def told(content: bytes, most: int) -> object:
    """What the items of a file are, or what is wrong with it and where."""
    try:
        return repr([*json_items(Cut(content, most))])
    except json.JSONDecodeError as error:
        return error.msg, error.lineno
    except TypeError:
        return None


def wanted(content: bytes) -> object:
    """The same by `json`."""
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        return error.msg, error.lineno
    return repr(value) if isinstance(value, list) else None


@given(
    st.lists(JSON, max_size=4) | JSON,
    st.sampled_from([None, 2]),
    st.booleans(),
    st.text('[]{},:"\n 1e.-tx', max_size=4),
    st.integers(3, 9),
)
@example([1.5e300, 12, {"a": "\ud800"}], None, False, "", 3)
@example([], 2, True, "\n\n]", 3)
def test_an_array_is_read_as_json_reads_it(
    value: Any, indent: int | None, mark: bool, rest: str, most: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=bool(indent)) + rest
    content = text.encode("utf-8-sig" if mark else "utf-8", "replace")
    assert told(content, most) == wanted(content)


@pytest.mark.parametrize(
    ("end", "rows"),
    [("]", 4), ("", None), ("]]", None), (", " + "[" * 200 + "]" * 200 + "]", None)],
)
def test_nothing_of_a_large_array_that_is_broken_is_used(
    tmp_path: Path, end: str, rows: int | None
) -> None:
    path = tmp_path / "large.json"
    wide = json.dumps({"text": "é" * 1024**2}, ensure_ascii=False)
    path.write_text("[" + ", ".join([wide] * 4) + end, encoding="utf-8")
    found = [
        (line.where, len(line.row["text"]) if isinstance(line.row, dict) else bool(line.fault))
        for line in read_rows(path)
    ]
    assert found == (
        [(f"{path}, item {number}", 1024**2) for number in range(rows)]
        if rows
        else [(str(path), True)]
    )
