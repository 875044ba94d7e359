"""The sample pool: what is clicked is there, what is needed is provided, and nothing is real."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from omnidata.errors import DataError
from omnidata.synth.pool import make_pool
from omnidata.synth.pool.catalogue import RECIPES
from omnidata.tasks.omnibench.load import load, read_library
from tests.full import FULL
from tests.synth.composing import sample_pool
from tests.synth.making import digests


def test_it_loads_without_a_finding() -> None:
    source = load(sample_pool())
    assert not source.findings
    assert {step.screen for step in source.steps} == {(640, 400)}


def test_it_has_apps_of_all_categories_that_nobody_makes() -> None:
    library = read_library(sample_pool())
    apps = {subtask.application for subtask in library.subtasks.values()}
    categories = {subtask.source["category"] for subtask in library.subtasks.values()}
    table10 = files("omnidata.tasks.omnibench").joinpath("table10.json").read_text("utf-8")
    published: dict[str, list[str]] = json.loads(table10)["categories"]
    assert len(apps) >= 8
    assert categories == set(published)
    assert not apps & set(chain(*published.values()))


def test_every_binding_has_a_trajectory_with_its_instruction() -> None:
    library = read_library(sample_pool())
    told = defaultdict(list)
    for trajectory in library.trajectories:
        told[trajectory.subtask_id].append(trajectory.instruction)
    for subtask in library.subtasks.values():
        wanted = []
        for binding in subtask.parameters:
            text = subtask.template
            for place, value in binding.items():
                text = text.replace(f"{{{place}}}", value)
            assert "{" not in text
            wanted.append(text)
        assert sorted(told[subtask.id]) == sorted(wanted)


def test_some_subtasks_edit_in_place_and_some_need_what_nobody_provides() -> None:
    subtasks = read_library(sample_pool()).subtasks.values()
    assert sum(bool(set(one.inputs) & set(one.outputs)) for one in subtasks) >= 10
    made = {kind for one in subtasks for kind in one.outputs}
    needed = {kind for one in subtasks for kind in one.inputs if not kind.endswith("_path")}
    assert needed - made == {"memory_stick_mounted", "vpn_connected"}
    assert all(kind == kind.lower() and " " not in kind for kind in made | needed)


def test_a_control_is_drawn_where_its_rectangle_is() -> None:
    """Each rectangle of one control of one app holds the same pixels wherever it is shown."""
    folder = sample_pool()

    @cache
    def pixels(path: Path) -> NDArray[np.uint8]:
        with Image.open(path) as image:
            return np.asarray(image)

    shown: dict[tuple[str, ...], set[bytes]] = defaultdict(set)
    plain = 0
    for trajectory in read_library(folder).trajectories:
        app = ""
        for picture, action in zip(trajectory.observations, trajectory.actions, strict=True):
            if not action["function"]:
                assert "rect" not in action
                continue
            left, top, right, bottom = action["rect"]
            image = pixels(folder / picture)
            assert 0 <= left < right < image.shape[1]
            assert 0 <= top < bottom < image.shape[0]
            inside = image[top : bottom + 1, left : right + 1]
            around = image[top - 1, left : right + 1]
            plain += bool((inside == inside[0, 0]).all())
            control = action["control_text"]
            if control in ("Text field", "Content"):
                continue
            if not app:
                assert control == action["description"].split("'")[1]
            shown[app, control, str(inside.shape)].add(inside.tobytes())
            assert (inside[0] != around).any() or not app, "no edge is drawn around it"
            app = app or control
    assert not plain
    one_look = [len(pixels) == 1 for pixels in shown.values()]
    assert sum(one_look) / len(one_look) > 0.95  # an entry of a list may be marked already


def test_actions_are_the_three_functions_and_the_end() -> None:
    done = [(step.action.kind, step) for step in load(sample_pool()).steps if step.action]
    assert {kind for kind, _ in done} == {"tap", "type", "scroll", "done"}
    assert all((kind == "done") == (step.step_index == step.num_steps - 1) for kind, step in done)
    for trajectory in read_library(sample_pool()).trajectories:
        count = len(trajectory.actions)
        statuses = [action["status"] for action in trajectory.actions]
        assert statuses == ["CONTINUE"] * (count - 1) + ["FINISH"]
        assert [action["step"] for action in trajectory.actions] == list(range(count))


def test_evaluation_functions_are_python_that_takes_the_parameters() -> None:
    for subtask in read_library(sample_pool()).subtasks.values():
        assert subtask.evaluation is not None
        found = [
            node for node in ast.parse(subtask.evaluation).body if isinstance(node, ast.FunctionDef)
        ]
        assert [one.name for one in found] == ["evaluate_agent_task_completion"]
        assert [argument.arg for argument in found[0].args.args] == list(subtask.parameters[0])


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """The sample pool, or the first subtasks of it, made a second time, and its report."""
    out = tmp_path_factory.mktemp("again") / "pool"
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr("omnidata.synth.pool.RECIPES", RECIPES[:8])
        return out, make_pool(out)


def test_equal_seeds_make_equal_bytes(again: tuple[Path, Mapping[str, Any]]) -> None:
    one, other = digests(again[0]), digests(sample_pool())
    if FULL:
        assert one == other
        return
    for name in ("subtasks.jsonl", "subtask_trajectories.jsonl"):
        assert (sample_pool() / name).read_bytes().startswith((again[0] / name).read_bytes())
    pictures = {name: digest for name, digest in one.items() if not name.endswith((".json", "l"))}
    assert len(pictures) > 40
    assert pictures.items() <= other.items()


@pytest.mark.full("a second pool is drawn")
def test_another_seed_makes_other_bytes(tmp_path: Path) -> None:
    make_pool(tmp_path / "other", seed=1)
    assert digests(tmp_path / "other").keys() != digests(sample_pool()).keys()


def test_a_pool_of_another_seed_is_refused(again: tuple[Path, Mapping[str, Any]]) -> None:
    pool, report = again
    assert report == make_pool(pool)
    assert report == json.loads((pool / "pool.json").read_text("utf-8"))
    with pytest.raises(DataError, match="seed: 0 there, 1 now"):
        make_pool(pool, seed=1)
