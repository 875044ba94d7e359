"""Every mistake that is planted is found, at its place, and nothing else is."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import pytest
from filelock import FileLock

from omnidata.data.validate import Report, validate
from omnidata.tasks import get_task
from tests.data import planted, plants

Found = tuple[planted.Garden, Report]


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Callable[[str, Mapping[str, planted.Plant]], Found]:
    """Plants a tree and looks at it once per test run."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent

    def made(name: str, mistakes: Mapping[str, planted.Plant]) -> Found:
        kept = base / f"planted-{name}.pickle"
        with FileLock(f"{kept}.lock"):
            if not kept.exists():
                garden = planted.grow(
                    base / f"planted-{name}", mistakes, media=name == "media", seed=1
                )
                source = get_task("omnigui").load(garden.tree, check_media=False)
                kept.write_bytes(pickle.dumps((garden, validate(source, workers=0))))
        found: Found = pickle.loads(kept.read_bytes())
        return found

    return made


@pytest.fixture
def with_media(once: Callable[[str, Mapping[str, planted.Plant]], Found]) -> Found:
    return once("media", plants.MEDIA)


@pytest.fixture
def without_media(once: Callable[[str, Mapping[str, planted.Plant]], Found]) -> Found:
    return once("annotations", plants.ANNOTATIONS)


def _places(report: Report) -> dict[str, Counter[str]]:
    """By code; without the file that a loader adds to a step."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for finding in report.findings:
        found[finding.code][finding.where.partition(" (")[0]] += 1
    return found


@pytest.mark.parametrize("code", plants.MEDIA)
def test_every_planted_medium_is_found_and_nowhere_else(with_media: Found, code: str) -> None:
    garden, report = with_media
    assert len(garden.planted[code]) == planted.TIMES
    assert _places(report)[code] == Counter(garden.planted[code])


@pytest.mark.parametrize("code", plants.ANNOTATIONS)
def test_every_planted_annotation_is_found_and_nowhere_else(
    without_media: Found, code: str
) -> None:
    garden, report = without_media
    assert len(garden.planted[code]) == planted.TIMES
    assert _places(report)[code] == Counter(garden.planted[code])


def test_a_finding_names_the_steps_of_its_place(without_media: Found, with_media: Found) -> None:
    """A mistake in an episode is about all its steps; about a file, or an app, it is about none."""
    for garden, report in (without_media, with_media):
        steps = get_task("omnigui").load(garden.tree, check_media=False).steps
        ids: dict[str, list[str]] = defaultdict(list)
        for step in steps:
            ids[step.sample_id] = [step.sample_id]
            ids[step.episode].append(step.sample_id)
        for finding in report.findings:
            if finding.code == "twins-differ":  # about the rows alone that differ
                continue
            if finding.code in ("copies-differ", "episode-repeated"):  # their place is a file
                assert list(finding.sample_ids) in ids.values()
                continue
            named = ids[finding.where.partition(" (")[0]]
            assert set(named) <= set(finding.sample_ids), finding
            assert named or not finding.sample_ids, finding


def test_nothing_else_is_found(with_media: Found, without_media: Found) -> None:
    assert _places(with_media[1]).keys() == plants.MEDIA.keys()
    assert _places(without_media[1]).keys() == {*plants.ANNOTATIONS, "media-absent"}
