"""Prompts for reinforcement learning, and the reward as each trainer loads it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from omnidata.errors import DataError, UsageError
from omnidata.tasks import get_task
from omnidata.torch import exported_table
from omnidata.training.media_store import Sizing
from omnidata.training.reward_files import load_reward
from omnidata.training.rewards import Reward
from tests.cli.running import EXPORT, here
from tests.export.small import load, rows, tree, written
from tests.loaders import desk

HIT = '{"action_type":0,"coordinate":[222,177]}'
PICTURES = {"video": "frames", "drop_audio": True}
LIMITS: dict[str, dict[str, Any]] = {"easyr1": PICTURES, "trl-grpo": PICTURES}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree(tmp_path_factory.mktemp("data") / "tree", episodes=2)


def exported(data: Path, out: Path, form: Any, **options: Any) -> list[dict[str, Any]]:
    written(data, out, format=form, **LIMITS.get(form, {}), **options)
    suffix = "json" if form == "verl" else "jsonl"
    lines = (out / f"train.{suffix}").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def texts(row: dict[str, Any]) -> str:
    """What is asked, with a tag for each medium."""
    prompt: Any = row.get("prompt", row.get("messages"))
    if isinstance(prompt, str):
        return prompt
    turns = [turn["content"] for turn in prompt]
    return "\n\n".join(
        turn
        if isinstance(turn, str)
        else "".join(part.get("text", f"<{part['type']}>") for part in turn)
        for turn in turns
    )


@pytest.mark.parametrize("form", ["trl-grpo", "swift-grpo", "verl", "easyr1"])
def test_rows_ask_what_the_evaluation_asks_and_tell_no_answer(
    form: str, data: Path, tmp_path: Path
) -> None:
    found = exported(data, tmp_path / "out", form)
    written(data, tmp_path / "right", format="swift", **LIMITS.get(form, {}))
    right = rows(tmp_path / "right")
    assert [row["sample_id"] for row in found] == [row["sample_id"] for row in right]
    for row, answered in zip(found, right, strict=True):
        *asked, said = answered["messages"]
        assert texts(row) == "\n\n".join(turn["content"] for turn in asked)
        assert said["content"] not in json.dumps(row, ensure_ascii=False)
        for kind in ("images", "videos", "audios"):
            files = [
                next(iter(name.values())) if isinstance(name, dict) else name
                for name in row.get(kind, ())
            ]
            names = [f"media/{Path(name).name}" for name in files]
            assert names == answered.get(kind, [])
            assert all((tmp_path / "out" / name).is_file() for name in files)


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ANSWERS = (HIT, '{"action_type":0,"coordinate":[900,900]}', '{"action_type":8}', "I would tap.")


@pytest.fixture
def rewards(data: Path) -> dict[str, list[dict[str, Any]]]:
    reward = Reward(get_task("omnigui"), data)
    ids = [step.sample_id for step in load(data).steps]
    found = {name: [dict(reward.score(name, text)) for text in ANSWERS] for name in ids}
    assert len({each["reward"] for one in found.values() for each in one}) > 3
    return found


def test_verl_calls_compute_score(data: Path, tmp_path: Path, rewards: Any) -> None:
    found = exported(data, tmp_path / "out", "verl")
    module = imported(tmp_path / "out" / "reward_verl.py")
    for row in found:
        truth = row["reward_model"]["ground_truth"]
        for text, wanted in zip(ANSWERS, rewards[row["sample_id"]], strict=True):
            got = module.compute_score(
                data_source=row["data_source"],
                solution_str=text,
                ground_truth=truth,
                extra_info=row["extra_info"],
            )
            assert got["score"] == wanted["reward"]
            assert got["exact_match"] == wanted["exact_match"]
            assert {*map(type, got.values())} == {float}


def test_easyr1_calls_compute_score(data: Path, tmp_path: Path, rewards: Any) -> None:
    found = exported(data, tmp_path / "out", "easyr1")
    module = imported(tmp_path / "out" / "reward_easyr1.py")
    assert (module.REWARD_NAME, module.REWARD_TYPE) == ("omnidata", "batch")
    for row in found:
        given = [
            {"response": text, "response_length": 9, "ground_truth": row["answer"]}
            for text in ANSWERS
        ]
        got = module.compute_score(given)
        assert [each["overall"] for each in got] == [
            each["reward"] for each in rewards[row["sample_id"]]
        ]


def test_swift_calls_a_registered_orm(
    data: Path, tmp_path: Path, rewards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    swift, registry = ModuleType("swift.rewards"), dict[str, Any]()

    class ORM:
        def __init__(self, args: Any = None, **kwargs: Any) -> None:
            self.args = args

    swift.ORM, swift.orms = ORM, registry  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", swift)
    found = exported(data, tmp_path / "out", "swift-grpo")
    imported(tmp_path / "out" / "reward_swift.py")
    orm = registry["omnidata"](args=SimpleNamespace())
    for row in found:
        count = len(ANSWERS)
        columns = {name: [row[name]] * count for name in ("sample_id", "receipt", "messages")}
        got = orm([*ANSWERS], **columns, trainer_state=None, is_truncated=[False] * count)
        assert got == [each["reward"] for each in rewards[row["sample_id"]]]
        cut = orm([*ANSWERS], **columns, is_truncated=[True] * count)
        assert cut == [0.0] * count


def test_pixels_are_read_in_the_picture_of_the_row(data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"coordinates": "px", "sizing": Sizing(longest=100)}
    exported(data, tmp_path / "out", "verl", **options)
    written(data, tmp_path / "right", format="swift", **options)
    lines = (tmp_path / "out" / "train.json").read_text(encoding="utf-8").splitlines()
    module = imported(tmp_path / "out" / "reward_verl.py")
    for line, right in zip(map(json.loads, lines), rows(tmp_path / "right"), strict=True):
        said = right["messages"][-1]["content"]
        truth = line["reward_model"]["ground_truth"]
        found = module.compute_score("", said, truth, line["extra_info"])
        assert found["exact_match"] == 1.0, said


def test_a_recipe_is_the_reward_of_an_export(tmp_path: Path) -> None:
    data = desk.screenspot(tmp_path / "data", *(desk.spot(img_filename=f"{n}.png") for n in "ab"))
    rules = ("--format", "verl", "--reward", "aepo", "--split", "train=1.0")
    here(*EXPORT, "screenspot", data, tmp_path / "out", *rules)
    reward = load_reward(tmp_path / "out" / "reward.json")
    assert reward.terms == "aepo"
    said = '<think>There.</think>[{"point_2d": [0.25, 0.375]}]'
    assert reward.score("screenspot_web/0", said)["reward"] == 2.0
    report = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (report["options"]["format"], report["options"]["reward"]) == ("verl", "aepo")


def test_a_reward_of_other_data_is_refused(tmp_path: Path) -> None:
    data = tree(tmp_path / "data")
    exported(data, tmp_path / "out", "trl-grpo")
    assert load_reward(tmp_path / "out" / "reward.json")
    (path,) = (data / "App").glob("dataset_*.json")
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(DataError, match="have changed"):
        load_reward(tmp_path / "out" / "reward.json")
    (tmp_path / "out" / "reward.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be read"):
        load_reward(tmp_path / "out" / "reward.json")


def test_what_a_trainer_has_no_place_for_is_refused(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options, said in (
        ({"format": "easyr1"}, "hold no audio"),
        ({"format": "trl-grpo"}, "hold no audio and no video"),
        ({"format": "easyr1", "drop_audio": True}, "pictures or clips"),
        ({"format": "verl", "objects": "norm1"}, "cannot store coordinates apart"),
        ({"format": "verl", "reward": "aepo"}, "not coordinates to rank"),
        ({"format": "swift", "reward": "ui-r1"}, "prompts without answers"),
    ):
        with pytest.raises(UsageError, match=said):
            written(data, out, **options)
    exported(data, out, "trl-grpo")
    with pytest.raises(DataError, match="no answers to learn"):
        exported_table(out)
