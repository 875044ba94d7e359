"""The split of a step follows from its episode and the shares, from nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.data.convert import convert
from omnidata.errors import UsageError
from omnidata.run.selection import SHARES, Split, parse_shares, split_of
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.loaders import desk, phones
from tests.loaders.agentstudio import act, ground, single, write
from tests.loaders.osworld import line, rollout
from tests.loaders.phones import records
from tests.trees import load_rows, row, write_rows

TASK = get_task("omnigui")


def assign_group(step: Step) -> Step:
    grouped = TASK.benchmark.group(step)
    assert grouped
    return grouped


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    return load_rows(tmp_path_factory.mktemp("step"), row()).steps[0]


def test_all_steps_of_an_episode_and_all_spellings_of_its_app_fall_together(step: Step) -> None:
    for number in range(50):
        first = assign_group(replace(step, episode_id=f"T{number}", tags=tags("GTrans")))
        same = assign_group(replace(first, step_index=7, tags=tags("Google_Translate")))
        assert split_of(first) == split_of(same)


def test_twins_of_one_app_fall_together_whatever_their_episodes_are_called(step: Step) -> None:
    """One that comes later, or alone, falls where the others are."""
    seen = Counter(
        len({split_of(twin(step, f"E{group}{number}", f"G{group}")) for number in range(4)})
        for group in range(50)
    )
    assert seen == {1: 50}
    ours, same, other = (
        assign_group(replace(twin(step, "E1", "G1"), tags=tags(app))).group
        for app in ("GTrans", "Google_Translate", "TED")
    )
    assert ours == same != other


@pytest.mark.parametrize("value", [None, "", 3, ["G1"], {"G": 1}])
def test_a_column_that_names_no_group_changes_nothing(step: Step, value: Any) -> None:
    assert twin(step, "E1", value).group == assign_group(replace(step, episode_id="E1")).group


def tags(app: str) -> dict[str, str]:
    return {"app": app, "language": "en"}


def twin(step: Step, episode: str, twins: Any) -> Step:
    return assign_group(replace(step, episode_id=episode, source={**step.source, "twins": twins}))


NAMED: tuple[tuple[str | None, ...], ...] = (
    ("G1", None, None), (None, None, "G1"), (None, "G1", "G2"), ("G1", "G1", "G1"), (None,) * 3,
)  # fmt: skip
"""The column `twins` of the three rows of one episode after the other."""


def test_an_episode_that_names_its_twins_in_some_rows_is_in_one_group(tmp_path: Path) -> None:
    """Read from files, from a repository, and from one that was written with nothing to say."""
    rows = [
        row(f"T{n}", k, app="TED", **({"twins": name} if name else {}))
        for n, names in enumerate(NAMED)
        for k, name in enumerate(names)
    ]
    task = get_task("omnigui")
    source = task.load(write_rows(tmp_path / "steps.json", rows), check_media=False)
    repository = tmp_path / "repository"
    convert(source, repository, embed=True)
    again = task.load(repository, check_media=False)
    manifest = json.loads((repository / "omnidata.json").read_text())
    (repository / "omnidata.json").write_text(json.dumps({**manifest, "findings": []}))
    for read in (source, again, task.load(repository, check_media=False)):
        groups = [group for group in ("ted/G1",) * 4 + ("ted/T4",) for _ in range(3)]
        assert [step.group for step in read.steps] == groups
        found = [each for each in read.findings if each.code == "twins-differ"]
        assert [each.where for each in found] == ["TED/T0", "TED/T1", "TED/T2"]
        assert {each.severity for each in found} == {"warning"}
        assert "3 groups by the column twins: ted/T2, ted/G1, ted/G2" in found[2].what
        assert "belongs to ted/G1" in found[2].remedy
        assert found[2].sample_ids == ("TED/T2/0", "TED/T2/2")


def test_shares_are_about_what_was_asked_for(step: Step) -> None:
    found = Counter(split_of(replace(step, group=f"E{number}")) for number in range(5000))
    for split, share in SHARES.items():
        assert abs(found[split] / 5000 - share) < 0.02


@given(names=st.sets(st.text(max_size=8), min_size=1), less=st.floats(0, 1), more=st.floats(0, 1))
def test_a_larger_share_takes_from_the_next_split_only(
    names: set[str], less: float, more: float, step: Step
) -> None:
    small, large = sorted((less, more))
    for name in names:
        one = replace(step, group=f"app/{name}")
        if split_of(one, {"train": small, "test": 1 - small}) == "train":
            assert split_of(one, {"train": large, "test": 1 - large}) == "train"


def test_a_split_without_a_share_gets_nothing(step: Step) -> None:
    shares: dict[Split, float] = {"train": 0.5, "test": 0.5}
    found = {split_of(replace(step, group=str(n)), shares) for n in range(200)}
    assert found == {"train", "test"}


def test_a_row_of_agentstudio_stays_where_it_is_when_others_come_before_it(tmp_path: Path) -> None:
    """Its number moves; the picture, which several instructions share, does not."""
    rows = [ground(image=f"{n}.png", instruction=f"Click {n}") for n in range(40)]
    more = [ground(image="0.png", instruction="another one"), *rows]
    task = get_task("groundui")
    before = task.load(write(tmp_path / "a.jsonl", *rows), check_media=False).steps
    after = task.load(write(tmp_path / "b.jsonl", *more), check_media=False).steps
    assert [split_of(step) for step in after[1:]] == [split_of(step) for step in before]
    assert split_of(after[0]) == split_of(after[1])
    assert len({step.group for step in before}) == 40


@pytest.mark.parametrize(
    "text", ["", "train", "train=0.5", "train=1,train=0", "dev=1", "train=nan", "train=2,test=-1"]
)
def test_shares_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not shares"):
        parse_shares(text)


FALLEN = (
    "train train train test train train train train train train test test train train train train"
)
"""Where the first episodes of TED, T0, T1, ..., have fallen since there are splits."""


def test_splits_that_were_cut_before_stay_as_they_are(step: Step, tmp_path: Path) -> None:
    """What is hashed is what has always been hashed where that was right."""
    found = [assign_group(replace(step, episode_id=f"T{n}", tags=tags("TED"))) for n in range(16)]
    assert [each.group for each in found[:2]] == ["ted/T0", "ted/T1"]
    assert " ".join(map(split_of, found)) == FALLEN
    assert (
        twin(step, "E1", "G1").group
        == f"{TASK.benchmark.wordings.spelling('app', step.tags['app'])}/G1"
    )
    rows = write(tmp_path / "a.jsonl", ground(image="shop/0.png"))
    [page] = get_task("groundui").load(rows, check_media=False).steps
    assert page.group == "shop/0.png"
    [spotted] = get_task("screenspot").load(desk.screenspot(tmp_path / "spot", desk.spot())).steps
    assert spotted.group == desk.spot()["img_filename"]


def zoo(folder: Path) -> Path:
    for n in range(24):
        name = f"GENERAL-{n}"
        rows = [phones.zoo(k, episode_id=str(n), image_path=f"{name}_{k}.png") for k in range(3)]
        phones.zoo_episode(folder / "test" / "general", *rows, name=name)
    return folder


def agentnet(folder: Path) -> Path:
    """All trajectories begin with the same screen."""
    code = "pyautogui.click(x=0.5, y=0.5)"
    return desk.agentnet(folder, *(desk.trajectory(code, code, own=f"t{n}") for n in range(24)))


def androidcontrol(folder: Path) -> Path:
    found = [phones.episode(phones.CLICK, phones.SCROLL, number=n) for n in range(12)]
    records(folder / "android_control-00000-of-00001", *found)
    return folder


def rollouts(folder: Path) -> Path:
    """Two agents over the same tasks."""
    for agent in ("one", "two"):
        for n in range(12):
            rows = [line(1, instruction="Go"), line(2)]
            place = f"pyautogui/screenshot/{agent}/chrome/e{n}"
            rollout(folder, *rows, place=place, pictures=False)
    return folder


@pytest.mark.parametrize(
    ("task", "make", "groups"),
    [
        ("aitw", zoo, 24),
        ("agentnet", agentnet, 24),
        ("androidcontrol", androidcontrol, 12),
        ("osworld", rollouts, 12),
    ],
)
def test_no_episode_is_torn_apart_from_files_or_from_a_repository(
    tmp_path: Path, task: str, make: Callable[[Path], Path], groups: int
) -> None:
    asking = get_task(task)
    source = asking.load(make(tmp_path / "data"), check_media=False)
    convert(source, tmp_path / "repository", embed=True)
    held = asking.load(tmp_path / "repository", check_media=False)
    shares: dict[Split, float] = {"train": 0.5, "test": 0.5}
    for steps in (source.steps, held.steps):
        assert len({step.group for step in steps}) == groups
        for name in ("episode", "group"):
            owned = {(getattr(step, name), split_of(step, shares)) for step in steps}
            assert len(owned) == len({own for own, _ in owned})
    assert [(step.episode, step.group) for step in held.steps] == [
        (step.episode, step.group) for step in source.steps
    ]


def test_rows_of_one_recording_of_agentstudio_fall_together(tmp_path: Path) -> None:
    rows = [
        single(**act(n) | {"obs_before": f"r/7_{n}.png", "obs_after": f"r/7_{n + 1}.png"})
        for n in range(3)
    ]
    data = write(tmp_path / "a.jsonl", *rows, single(obs_before="r/8_0.png"))
    steps = get_task("idm-single").load(data, check_media=False).steps
    assert [step.group for step in steps] == ["r/7"] * 3 + ["r/8"]
    assert len({step.episode for step in steps}) == 4
