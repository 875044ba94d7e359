"""Steps that lie on disk are the steps that were put there, whoever asks for them and how."""

import os
import pickle
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box, Point
from omnidata.errors import OmnidataError, UsageError
from omnidata.loaders.steps import (
    Positions,
    Steps,
    as_steps,
    episodes_of,
    ids_of,
    select_steps,
)
from omnidata.loaders.stored_rows import ScatteredRows
from omnidata.tasks import get_task
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer
from omnidata.types import (
    ByteRange,
    LoadedDataset,
    MediaRef,
    ParquetLocation,
    Step,
    VideoSegment,
)
from tests.limits import full_disk
from tests.loaders.every import is_on_disk

VARIABLE = "OMNIDATA_STEPS_IN_MEMORY"

TEXTS = st.text(st.characters(), max_size=8)  # lone surrogates among them
NUMBERS = st.integers() | st.floats() | st.booleans()
PLACES = st.builds(Point, NUMBERS, NUMBERS, st.just("px")) | st.builds(
    Box, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.just("rel")
)
ACTIONS = st.builds(
    Action,
    st.sampled_from(["tap", "type", "scroll", "done"]),
    st.lists(PLACES, max_size=2).map(tuple),
    text=st.none() | TEXTS,
    words=st.none() | TEXTS,
    amount=st.none() | NUMBERS,
    keys=st.lists(TEXTS, max_size=2).map(tuple),
    seconds=st.none() | st.floats(),
)
SOURCES = st.dictionaries(
    TEXTS,
    st.recursive(
        st.none() | NUMBERS | TEXTS | st.binary(max_size=4) | st.datetimes() | st.just(Decimal(2)),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(TEXTS, inner, max_size=3)
            | st.frozensets(st.integers(), max_size=1)  # of more, the order is nobody's
        ),
        max_leaves=6,
    ),
    max_size=3,
)
MEDIA = st.builds(
    MediaRef,
    st.sampled_from(["image", "video", "audio"]),
    st.sampled_from([Path("/data"), Path(), Path("a/b")]),
    TEXTS,
    inline=st.none() | SOURCES,
    cell=st.none()
    | st.builds(ParquetLocation, TEXTS, TEXTS, st.integers())
    | st.builds(ByteRange, TEXTS, st.integers(), st.integers(), st.just((1, 2, 3)))
    | st.builds(VideoSegment, TEXTS, st.floats(), st.floats()),
    sha256=TEXTS,
    within=st.lists(TEXTS, max_size=2).map(tuple),
    until=st.floats(0.1, 1),
    marks=st.just(((1, 2, 3, 4),)) | st.just(()),
)
STEPS = st.builds(
    Step,
    sample_id=TEXTS,
    episode_id=TEXTS,
    step_index=st.integers(0, 5),
    num_steps=st.integers(1, 5),
    instruction=TEXTS,
    screen=st.just((720, 1600)),
    media=st.dictionaries(TEXTS, st.none() | MEDIA, max_size=2)
    | st.dictionaries(TEXTS, MEDIA, max_size=1).map(MappingProxyType),
    history=st.lists(st.none() | ACTIONS, max_size=3).map(tuple),
    history_screens=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(tuple),
    action=st.none() | ACTIONS,
    tags=st.dictionaries(TEXTS, TEXTS, max_size=2),
    source=SOURCES,
    episode=TEXTS,
    group=TEXTS,
)


class Shelf(Benchmark):
    """A benchmark of steps that are given."""

    card = Card(title="Shelf")
    given: Sequence[Step | None] = ()

    def steps(self, data: Path, note: object) -> Iterable[Step | None]:
        return iter(self.given)

    def parse(self, text: str, step: Step, receipt: object) -> ParsedAnswer[str]:
        raise NotImplementedError

    def target(self, step: Step, **_: object) -> None:
        return None


def load(given: Sequence[Step | None]) -> LoadedDataset:
    task = Shelf("shelf", {})
    task.given = given
    return task.load(Path(__file__), check_media=False)


@pytest.fixture(autouse=True)
def none_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")


def apart(step: Step) -> tuple[object, ...]:
    """A step with the types of all that it holds (NaN is itself), and what `repr` does not show."""
    media = [ref and (ref.within, ref.sha256) for ref in step.media.values()]
    return repr(step), media


@given(st.lists(STEPS, min_size=1, max_size=5))
def test_steps_come_back_as_they_were(steps: list[Step]) -> None:
    first = {step.sample_id: step for step in reversed(steps)}
    wanted = [step for step in steps if first[step.sample_id] is step]
    loaded = load(steps)
    assert [*map(apart, loaded.steps)] == [*map(apart, wanted)]
    assert loaded.skipped == len(steps) - len(wanted)


def make(count: int, length: int = 7) -> list[Step]:
    """Steps of episodes whose histories grow."""
    steps: list[Step] = []
    for number in range(count):
        episode, place = divmod(number, length)
        past = steps[-1] if place else None
        action = Action("tap", (Box(number, 2, 3, 4.5, "px"),), words=f"w{number}")
        steps.append(
            Step(
                f"a/{episode}/{place}", str(episode), place, length, "Do it.", (720, 1600),
                {"screenshot": MediaRef("image", Path("/d"), f"{number}.png"), "audio": None},
                (*past.history, past.action) if past else (),
                ((720, 1600),) * place,
                action, {"app": "a", "language": "en"}, {"row": number, "pair": (1, [2.0])},
            )
        )  # fmt: skip
    return steps


STEPS_MADE = make(150)


def test_a_field_of_another_type_comes_back_as_it_was() -> None:
    group: Any = [1]
    step = replace(STEPS_MADE[0], group=group)
    assert Steps.of([step]).pack()[0].group == group


def test_no_steps_have_no_numbers() -> None:
    none = Steps.of([]).pack()
    assert none.episodes.tolist() == none.codes("tags").tolist() == []
    assert none.integers("step_index").tolist() == []


@pytest.fixture
def stored() -> Sequence[Step]:
    return load(STEPS_MADE).steps


def test_it_is_a_sequence_as_a_list_is(stored: Sequence[Step]) -> None:
    count = len(STEPS_MADE)
    assert len(stored) == count
    assert stored == STEPS_MADE
    assert stored[-1] == STEPS_MADE[-1]
    assert stored[3:100:9] == STEPS_MADE[3:100:9]
    assert stored[::-1][:40] == STEPS_MADE[::-1][:40]
    assert [*reversed(stored)] == STEPS_MADE[::-1]
    assert stored[140:][5] == STEPS_MADE[145]
    assert STEPS_MADE[77] in stored
    assert stored.index(STEPS_MADE[77]) == 77
    for wrong in (count, -count - 1):
        with pytest.raises(IndexError):
            stored[wrong]
    order = [*range(count)] * 3
    random.Random(0).shuffle(order)
    assert all(stored[number] == STEPS_MADE[number] for number in order)


def test_steps_of_an_episode_share_what_they_shared(stored: Sequence[Step]) -> None:
    first, second = stored[8], stored[9]
    assert second.tags is first.tags
    assert second.history[0] is first.history[0]


def spread(count: int) -> list[Step]:
    """Steps of many episodes, whose histories begin anywhere, lack steps or are not shared."""
    rng = random.Random(1)
    steps: list[Step] = []
    for episode in range(count):
        length, hidden = rng.randrange(1, 200 if episode % 50 == 0 else 9), rng.randrange(4)
        past: list[Action | None] = []
        screens: list[tuple[int, int]] = []
        for place in range(length):
            action = Action("type", text=f"{episode}/{place}") if rng.random() < 0.9 else None
            screen = (720, 1600) if rng.random() < 0.95 else (place, 1600)
            if rng.random() < 0.97:
                steps.append(
                    replace(
                        STEPS_MADE[place % 7],
                        sample_id=f"{episode}/{place}",
                        episode=f"{episode}",
                        history=tuple(past[hidden if place > 3 else 0 :]),
                        history_screens=tuple(screens),
                        action=action,
                        screen=screen,
                    )
                )
            past.append(replace_action(action) if rng.random() < 0.02 else action)
            screens.append(screen)
    return steps


def replace_action(action: Action | None) -> Action | None:
    return action and msgspec.structs.replace(action)


def test_many_episodes_come_back_as_they_were() -> None:
    steps = spread(500)
    stored = load(steps).steps
    assert [*map(apart, stored)] == [*map(apart, steps)]
    order = random.Random(2).sample(range(len(steps)), 400)
    assert [apart(stored[number]) for number in order] == [apart(steps[n]) for n in order]
    for chosen in (order, range(100, 400), [5, 6, 7, 90, 91, 2000, 2001, 3]):
        there = pickle.loads(pickle.dumps(select_steps(stored, chosen)))
        assert [*map(apart, there)] == [apart(steps[number]) for number in chosen]


def test_a_row_is_the_same_whichever_of_its_neighbours_is_read_first() -> None:
    steps = make(150)
    steps[70] = replace(steps[70], instruction="\ud800", num_steps=2**70, screen=(-1, 2))
    for first in (0, 69, 70, 71, 149):
        stored = load(steps).steps
        for number in (first, 70, 69, first):
            assert apart(stored[number]) == apart(steps[number])


def test_columns_are_those_of_the_steps(stored: Sequence[Step]) -> None:
    assert isinstance(stored, Steps)
    for steps in (stored, stored[100:20:-7]):
        for name in ("sample_id", "step_index", "tags", "action", "history", "screen"):
            assert [*steps.column(name)] == [getattr(step, name) for step in steps]
        assert steps.column("episode_id")[-1] == steps[-1].episode_id
    assert stored.by_id("a/3/2") == STEPS_MADE[23]
    with pytest.raises(KeyError):
        stored.by_id("a/3/9")


def test_a_few_keys_of_rows_are_read_alone(stored: Sequence[Step]) -> None:
    plain = [replace(step, source={"row": n, "text": "é"}) for n, step in enumerate(STEPS_MADE)]
    for steps in map(as_steps, (plain, load(plain).steps, stored, stored[70:140])):
        for part in (steps, steps.select([5, 2])):
            rows = [*part.sources("row", "lacking")]
            assert [row["row"] for row in rows] == [step.source["row"] for step in part]
            assert not any("lacking" in row for row in rows)


def test_many_ids_are_looked_up_at_once(stored: Sequence[Step]) -> None:
    ids = [*ids_of(stored)]
    for wanted in (ids[60:140], ids[140:60:-1], ["none", *ids[:3]], []):
        found = [ids.index(each) if each in ids else None for each in wanted]
        assert [*Positions(stored).get_all(wanted)] == found


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = "the steps cannot be written to disk"
    with full_disk(after=10_000), pytest.raises(OmnidataError, match=said) as caught:
        load(STEPS_MADE)
    assert caught.value.where == str(tmp_path)


def test_columns_of_a_file_are_read_without_importing_pandas() -> None:
    code = """
        import sys
        from omnidata.loaders.steps import Steps
        from omnidata.types import Step
        made = (Step(f"a/{n}", "a", n, 2, "", (9, 16), {}, (), (), None, {}, {}) for n in range(2))
        steps = Steps.of(made)
        assert steps.file and steps.integers("step_index").tolist() == [0, 1]
        assert steps.episodes.tolist() == steps.codes("tags").tolist() == [0, 0]
        assert "pandas" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    subprocess.run(command, env={**os.environ, VARIABLE: "0"}, check=True)


def test_threads_read_at_once(stored: Sequence[Step]) -> None:
    wrong: list[int] = []

    def read(seed: int) -> None:
        order = [*range(len(stored))] * 4
        random.Random(seed).shuffle(order)
        wrong.extend(number for number in order if stored[number] != STEPS_MADE[number])

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_forked_process_reads_them(stored: Sequence[Step]) -> None:
    child = os.fork()
    if not child:
        os._exit(0 if [*stored] == STEPS_MADE else 1)
    assert [*stored] == STEPS_MADE  # at the same time
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_pickled_they_are_a_list(stored: Sequence[Step]) -> None:
    assert pickle.loads(pickle.dumps(stored[4:9])) == STEPS_MADE[4:9]


def test_a_part_knows_where_its_steps_are(stored: Sequence[Step]) -> None:
    part, listed = stored[100:20:-7], STEPS_MADE[100:20:-7]
    assert [*ids_of(part)] == [step.sample_id for step in listed]
    assert episodes_of(part).tolist() == episodes_of(listed).tolist()
    places = Positions(part)
    assert [places[step.sample_id] for step in listed] == [*range(len(listed))]
    assert STEPS_MADE[99].sample_id not in places


def test_rows_without_a_step_are_numbered(stored: Sequence[Step]) -> None:
    rows = load([STEPS_MADE[4], None, STEPS_MADE[90]]).row_ids
    assert rows is not None
    assert rows[:] == [STEPS_MADE[4].sample_id, None, STEPS_MADE[90].sample_id]


def test_a_step_whose_id_another_has_is_left_out_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = make(5000)
    twice = [*many[:40], many[3], *many[40:4600], many[50], *many[4600:]]
    found = load(twice)
    monkeypatch.delenv(VARIABLE)
    assert found == load(twice)
    assert (found.steps, found.skipped) == (many, 2)


class Odd(dict[str, Any]):
    """A row of somebody's own that cannot be pickled."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("no")


def test_what_cannot_be_packed_stays_in_memory() -> None:
    steps = [replace(step, source=Odd(n=1)) if step.step_index == 2 else step for step in make(70)]
    found = load(steps).steps
    assert [type(step.source) for step in found] == [type(step.source) for step in steps]
    assert found == steps


def test_rows_of_a_file_share_their_keys() -> None:
    rows: ScatteredRows[Any] = ScatteredRows()
    row = {"".join(("screen", "_", "width")): 720, 7: [{"x": None}]}
    for _ in range(2):
        rows.add(0, (row, "steps.json"))
    one, other = rows[0][0], rows[1][0]
    assert one == other == row
    assert [*one] == [*row]
    assert next(iter(one)) is next(iter(other))


def test_the_number_in_memory_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "some")
    with pytest.raises(UsageError, match="'some' is not a number of steps"):
        load(STEPS_MADE)


def test_few_steps_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    assert load(STEPS_MADE).steps[3] is STEPS_MADE[3]


def test_no_file_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = load(STEPS_MADE).steps
    assert [*tmp_path.iterdir()] == []
    assert found[1] == STEPS_MADE[1]


def test_a_dataset_is_the_same_wherever_its_steps_lie(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk = get_task("omnigui").load(sample)
    monkeypatch.delenv(VARIABLE)
    in_memory = get_task("omnigui").load(sample)
    assert (is_on_disk(on_disk), is_on_disk(in_memory)) == (True, False)
    assert on_disk == in_memory
