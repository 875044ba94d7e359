"""The reward of an answer is what `omnidata score` says of it, for every benchmark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.errors import PredictionError, UsageError
from omnidata.metrics.texts import token_f1
from omnidata.predictions import Prediction
from omnidata.run.scoring import score as run_score
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training.reward_files import TrlReward
from omnidata.training.rewards import Reward
from omnidata.types import LoadedDataset, Step
from tests.goldens.worlds import WORLDS, build
from tests.linear import Reader, grow
from tests.loaders import agentstudio, desk
from tests.metrics.mutations import mutants
from tests.trees import read_lines, row, write_rows

ROUNDS = 6
"""Answers to each step of a world."""


def scored(
    task: Asking, steps: Sequence[Step], profile: str, texts: dict[str, str], out: Path
) -> dict[str, dict[str, Any]]:
    """The lines of `scores.jsonl`, by step."""
    answers = [Prediction(sample_id=name, output=text) for name, text in texts.items()]
    whole = np.ones(len(steps), dtype=np.bool_)
    run_score(task, task.profiles[profile], steps, answers, whole=whole, out=out)
    return {line["sample_id"]: line for line in read_lines(out / "scores.jsonl")}


def _texts(task: Asking, source: LoadedDataset, world: str) -> list[str]:
    right = sorted({t.text for step in source.steps for t in [task.target(step)] if t})[:40]
    return [*right, *mutants([*right, "", "Yes", "[0.5, 0.5]"], 400, seed=len(world))]


@pytest.mark.parametrize(
    "world",
    ["omnigui", "groundui", "idm-multiple", "criticbench", "aitz", "agentnetbench",
     "screenspot", "omnibench", "androidcontrol", "osworld"],
)  # fmt: skip
def test_a_reward_says_what_scores_jsonl_says(world: str, tmp_path: Path) -> None:
    # The sample of OmniGUI has media, which take long to make and are not looked at.
    data = phones(tmp_path / "data.json") if world == "omnigui" else build(world, tmp_path)
    task = get_task(WORLDS[world][0])
    source = task.load(data, check_media=False)
    texts = _texts(task, source, world)
    steps = [*source.steps[:12]]
    judged = 0
    for profile in task.profiles:
        reward = Reward(task, source, profile=profile)
        for number in range(ROUNDS):
            given = {
                step.sample_id: texts[(place * ROUNDS + number) % len(texts)]
                for place, step in enumerate(steps)
            }
            lines = scored(task, steps, profile, given, tmp_path / "scores")
            for name, text in given.items():
                line, found = lines[name], reward.score(name, text)
                values = {key: line[key] for key in task.profiles[profile].values}
                exact = values.get("exact_match", values.get("score", next(iter(values.values()))))
                assert found["outcome"] == line["outcome"]
                assert found["exact_match"] == exact
                assert found["cause"] == line.get("cause")
                if exact is None:
                    assert found["reward"] is None
                    continue
                judged += 1
                assert found["type_match"] == values.get("type_match")
                read = line["outcome"] == "ok"
                assert found["format_ok"] == values.get("format_ok", read)
                kind = values.get("type_match", exact)
                wanted = 0.1 * values.get("format_ok", read) + 0.4 * kind + 0.5 * exact
                assert found["reward"] == pytest.approx(wanted)
    assert judged >= ROUNDS


TAP, TYPE, UP, BACK = (f"unknown/T1/{number}" for number in range(4))
BOX = "[[210,786],[351,850]]"


def phones(path: Path) -> Path:
    """A tap into a box, a text, a swipe up and a key, on a screen of 720 x 1600."""
    rows = [
        row(result_touch_xy=BOX),
        row(step=1, result_action_type=7, result_action_text="buy some milk", result_touch_xy=""),
        row(
            step=2,
            result_action_type=3,
            result_touch_xy=BOX,
            result_lift_xy="[[210,86],[351,150]]",
        ),
        row(step=3, result_action_type=8, result_touch_xy=""),
    ]
    return write_rows(path, rows)


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    return phones(tmp_path / "steps.json")


def tap(x: int, y: int) -> str:
    return f'{{"action_type":0,"coordinate":[{x},{y}]}}'


def swipe(begin: int, end: int) -> str:
    places = f'"start_coordinate":[390,{begin}],"end_coordinate":[390,{end}]'
    return f'{{"action_type":{3 if end < begin else 4},{places}}}'


def typed(text: str) -> str:
    return json.dumps({"action_type": 7, "text": text})


def tagged(answer: str) -> str:
    return f"<think>The list is open.</think> <answer>{answer}</answer>"


HIT, MISS = tap(390, 511), tap(600, 511)
CASES = {
    "ui-r1": [
        (TAP, tagged(HIT), 3.0),
        (TAP, HIT, 2.0),
        (TAP, tagged(MISS), 2.0),
        (TAP, "x" + tagged(MISS), 1.0),
        (TAP, tagged('{"action_type":8}'), 1.0),
        (TAP, '{"action_type":8}', 0.0),
        (TYPE, tagged(typed("eggs")), 3.0),  # other actions than clicks by their type alone
        (BACK, '{"action_type":8}', 2.0),
        (TAP, "I would tap.", 0.0),
        (TAP, tagged("I would tap."), 1.0),
    ],
    "gui-r1": [
        (TAP, tagged(HIT), 1.0),
        (TAP, HIT, 0.8),
        (TAP, tagged(MISS), 0.2),
        (TYPE, typed("buy milk"), 0.8),  # F1 of 0.8
        (TYPE, typed("buy eggs and bread"), 0.0),  # F1 of 2/7
        (UP, swipe(100, 90), 0.8),  # it begins elsewhere, and goes the right way
        (UP, swipe(90, 100), 0.0),
        (BACK, '{"action_type":8}', 0.8),
        (BACK, tagged("go back"), 0.0),  # nothing to read between the tags
    ],
    "ui-s1": [
        (TAP, f"<think>The list is open.</think>{HIT}", 1.0),
        (TAP, HIT, 0.9),
        (TAP, MISS, 0.45),
        (TAP, '{"action_type":8}', 0.09),
        (TAP, "<think>No idea.</think>", 0.1),
        (TAP, "<think> </think>", 0.0),
        (TAP, "No idea.", 0.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("recipe", CASES)
def test_recipes_by_hand(recipe: Any, phone: Path) -> None:
    reward = Reward(get_task("omnigui"), phone, terms=recipe)
    for sample, text, worth in CASES[recipe]:
        assert reward.score(sample, text)["reward"] == pytest.approx(worth), (sample, text)


@pytest.mark.parametrize("recipe", CASES)
def test_recipes_read_every_run_in_linear_time(recipe: Any, phone: Path) -> None:
    reward = Reward(get_task("omnigui"), phone, terms=recipe)
    reader = Reader(recipe, lambda text: reward.score(TAP, text), ())
    units = ("<think>a", "<think>", "</think>", "<think> ", "</think><answer></answer>", " ", "[")
    for frame in (("", ""), ("<think>", "</answer>")):
        for unit in units:
            assert grow(reader, frame, unit, 12_000) is None


SPOT = "screenspot_web/0"
INSIDE, OUTSIDE, ELSEWHERE = [0.25, 0.375], [0.9, 0.1], [0.8, 0.9]
"""The box is [0.125, 0.25] to [0.375, 0.5]."""


def listed(*points: Sequence[float]) -> str:
    return json.dumps([{"point_2d": [*point], "label": "shop"} for point in points])


def thought(answer: str) -> str:
    return f"<think>There.</think>{answer}"


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        (thought(listed(INSIDE)), 2.0),  # 1 + 1 / sqrt(1 * 1)
        (thought(listed(OUTSIDE, INSIDE)), 1.5),  # 1 + 1 / sqrt(2 * 2)
        (thought(listed(INSIDE, OUTSIDE)), 1 + 2**-0.5),
        (thought(listed(OUTSIDE, ELSEWHERE)), 0.5),  # 1 - 1 / 2
        (thought(listed([0.1, 0.1], INSIDE, [0.4, 0.65])), -1.0),  # on a line
        (thought(listed()), -1.0),
        (thought("(0.25, 0.375)"), -1.0),
        (listed(INSIDE), -1.0),
        (f"<think> </think>{listed(INSIDE)}", -1.0),
        (thought('[{"point_2d": [NaN, 1]}]'), -1.0),
    ],
)
def test_candidates_are_worth_their_rank(text: str, worth: float, tmp_path: Path) -> None:
    data = desk.screenspot(tmp_path / "data", desk.spot())
    reward = Reward(get_task("screenspot"), data, terms="aepo")
    assert reward.score(SPOT, text)["reward"] == pytest.approx(worth)


def test_terms_of_places(tmp_path: Path) -> None:
    data = desk.screenspot(tmp_path / "data", desk.spot())
    task = get_task("screenspot")
    near = Reward(task, data, terms={"distance": 1})
    rank = Reward(task, data, terms={"rank": 1, "format": 1})
    for text, distance, ranked in [
        ("(0.25, 0.375)", 1.0, 2.0),
        ("(0.475, 0.375)", 0.6, 0.0),  # 100 of 1000 right of the box, 1 - 100 / 250
        ("(0.475, 0.6)", 1 - 100 * 2**0.5 / 250, 0.0),
        ("(0.9, 0.9)", 0.0, 0.0),
        ("nowhere", 0.0, -1.0),
    ]:
        assert near.score(SPOT, text)["reward"] == pytest.approx(distance)
        assert rank.score(SPOT, text)["reward"] == pytest.approx(ranked)
    assert rank.score(SPOT, listed(OUTSIDE, INSIDE))["exact_match"] == 0  # as the table has it


def test_a_term_that_a_step_has_not_is_the_exact_one(phone: Path) -> None:
    reward = Reward(get_task("omnigui"), phone, terms={"distance": 0.5, "exact": 0.5})
    assert reward.score(BACK, '{"action_type":8}')["reward"] == 1
    assert reward.score(TAP, tap(500, 511))["reward"] == pytest.approx(
        0.475
    )  # 12.5 of 1000 right of the box
    assert reward.score(TAP, '{"action_type":8}')["reward"] == 0


def test_pixels_are_those_of_the_picture_that_was_shown(phone: Path) -> None:
    reward = Reward(get_task("omnigui", {"coordinates": "px"}), phone)
    receipt = {
        "parts": [{"role": "screenshot", "width": 360, "height": 800, "original": [720, 1600]}]
    }
    text = tap(140, 409)
    assert reward.score(TAP, text, receipt=receipt)["exact_match"]
    assert not reward.score(TAP, text)["exact_match"]


def test_what_was_cut_off_is_wrong_and_worth_a_number(phone: Path) -> None:
    reward = Reward(get_task("omnigui"), phone)
    found = reward.score(TAP, HIT, delivery="truncated")
    assert found == {"reward": 0.0, "type_match": False, "exact_match": False, "format_ok": False,
                     "cause": "truncated", "outcome": "truncated"}  # fmt: skip


def test_it_travels_and_is_shared(phone: Path) -> None:
    reward = Reward(get_task("omnigui"), phone, terms="ui-s1")
    again = pickle.loads(pickle.dumps(reward))
    phone.unlink()
    asked = [(name, text) for name in (TAP, TYPE) for text in (HIT, MISS, typed("eggs"), "")] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda each: reward.score(*each), asked))
    assert found == [again.score(*each) for each in asked]
    assert len({each["reward"] for each in found}) > 2


def test_what_cannot_be_is_refused(phone: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    source = task.load(phone, check_media=False)
    spot = desk.screenspot(tmp_path / "spot", desk.spot())
    terms: Any
    for terms in ("ui-r2", {"kind": 1}, {"exact": float("nan")}, {}, "aepo"):
        with pytest.raises(UsageError):
            Reward(task, source, terms=terms)
    with pytest.raises(UsageError):
        Reward(task, source, profile="no")
    with pytest.raises(UsageError):
        Reward(get_task("screenspot", {"dialect": "qwen2.5"}), spot, terms="aepo")
    with pytest.raises(PredictionError, match="no such step"):
        Reward(task, source).score("nobody", HIT)


def test_words_as_gui_r1_compares_them() -> None:
    assert token_f1("", "buy") == 0
    assert token_f1("[buy] MILK", "milk buy") == 1
    assert token_f1("a b c", "c d e") == pytest.approx(1 / 3)


def test_a_dialect_is_read_as_the_evaluation_reads_it(phone: Path) -> None:
    reward = Reward(get_task("omnigui", {"dialect": "gui-r1"}), phone, terms="gui-r1")
    said = "[{'action': 'type', 'point': [-100, -100], 'input_text': 'buy milk'}]"
    found = reward.score(TYPE, tagged(said))
    assert (found["reward"], found["type_match"], found["exact_match"]) == (1.0, True, False)


def test_trl_gets_rewards_in_order_and_tm_and_em(phone: Path) -> None:
    judge = TrlReward(Reward(get_task("omnigui"), phone), ends={9})
    said = [HIT, MISS, "I would tap.", HIT]
    logged: dict[str, float] = {}
    columns: dict[str, list[str]] = {}
    got = judge(
        [[{"role": "user", "content": "?"}]] * 4,
        [[{"role": "assistant", "content": text}] for text in said],
        [[1, 9], [2, 9], [3, 9], [1, 1]],
        sample_id=[TAP] * 4,
        log_metric=logged.__setitem__,
        log_extra=columns.__setitem__,
        trainer_state=None,
    )
    assert got == [1.0, 0.5, 0.0, 0.0]  # the last one was cut off
    assert logged == {"TM": 0.5, "EM": 0.25}
    assert columns == {"sample_id": [TAP] * 4}  # by which its table is scored later
    assert pickle.loads(pickle.dumps(judge))([], ["x"], sample_id=[TAP]) == [0.0]
    with pytest.raises(UsageError, match="OmniGRPOTrainer"):
        judge([[{"role": "user", "content": [{"type": "audio"}]}]], ["x"], sample_id=[TAP])


def test_a_critic_is_right_or_wrong_and_has_no_type(tmp_path: Path) -> None:
    agentstudio.pictures(tmp_path / "images", [f"m2w/{number}.png" for number in range(8)])
    data = agentstudio.write(tmp_path / "rows.jsonl", agentstudio.trajectory())
    task = get_task("criticbench")
    reward = Reward(task, data)
    (step,) = task.load(data, check_media=False).steps
    target = task.target(step)
    assert target
    found = reward.score(step.sample_id, target.text)
    assert (found["reward"], found["type_match"], found["exact_match"]) == (1.0, None, True)
