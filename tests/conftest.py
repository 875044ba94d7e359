"""Fixtures that many rooms share."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import certifi
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from omnidata.synth.sample import make_sample
from tests.full import FULL
from tests.hub_server import Hub, online, serving
from tests.sample import write_sample

ROOT = Path(__file__).resolve().parents[1]
os.environ["HF_HUB_OFFLINE"] = "1"  # nothing imports `datasets` before this line
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side already
os.environ.setdefault("OMNIDATA_NO_CACHE", "1")  # steps of tests stay out of the cache of the user

# Machines are noisy: an example that takes long is no defect.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _PATIENT, max_examples=10)
settings.register_profile("full", _PATIENT, max_examples=2000)
settings.load_profile("full" if FULL else "quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background: the commands under test would inherit that nothing interrupts them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is marked `full` to `make test-full`, and say so and why.

    Tests that need what is dear to make are slow ones, which `make check` leaves to `make test`.
    Those that need torch come first: one worker runs them, and no other imports transformers.
    """
    torch = {"torch", "checkpoint", "collator"}  # a module has one of them where it needs models
    items.sort(key=lambda item: torch.isdisjoint(vars(getattr(item, "module", item))))
    for item in items:
        if "once" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if not FULL and (mark := item.get_closest_marker("full")):
            (why,) = mark.args
            item.add_marker(pytest.mark.skip(reason=f"{why}: `make test-full` runs it"))


def pytest_collection(session: pytest.Session) -> None:
    """Let every other worker import the modules of tests from the last to the first.

    Where nothing is compiled yet, to rewrite assertions takes longer than all else of a collection;
    workers that begin at two ends read what the other has written. What is collected lives to the
    end, so no garbage is looked for meanwhile.
    """
    if _runs_tests(session):
        gc.disable()
    if int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2:
        roots = [Path(argument.partition("::")[0]) for argument in session.config.args]
        for path in sorted((p for root in roots for p in root.rglob("test_*.py")), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # said when it is collected
                import_module(".".join(path.absolute().relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: no collection of garbage need visit them at all.

    Nor need what tests leave be looked for whenever a few hundred objects are made.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


_MANY = 1000


def _runs_tests(session: pytest.Session) -> bool:
    """Not where workers do."""
    return bool(session.config.getoption("dist", "no") == "no")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Start what commands are forked from, in each process that runs tests.

    Of thousands of tests some import what commands do: then it is imported once for both.
    """
    if _runs_tests(session) and not session.config.option.collectonly:
        from tests.cli import nursery, running

        if len(session.items) > _MANY:
            nursery.preload()
        running.begin()


def pytest_sessionfinish() -> None:
    """End it."""
    from tests.cli import running

    running.end()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report: object) -> Generator[None, Any, Any]:
    """Spell out what no UTF-8 has: a failure that shows it would end the process of tests."""
    told = yield
    return _storable(told) if getattr(report, "failed", False) else told


def _storable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _storable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_storable, value))
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let clients read one certificate, not those of all authorities, whenever one opens.

    The servers of tests are on this machine and speak plain HTTP.
    """
    first, end, _ = Path(certifi.where()).read_text("ascii").partition("-----END CERTIFICATE-----")
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(f"{first}{end}\n")
    os.environ["SSL_CERT_FILE"] = str(path)


@pytest.fixture(scope="session", autouse=True)
def _wide_output() -> Iterator[None]:
    """Print every table whole; a test of narrow ones says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "500")
        yield


@pytest.fixture(scope="session", autouse=True)
def _private_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Send every cache of `datasets` to a temporary folder."""
    import datasets

    cache = tmp_path_factory.mktemp("hf-cache")
    datasets.config.HF_DATASETS_CACHE = str(cache)
    datasets.disable_progress_bars()
    # After a shuffled stream it waits, lest a process that ends at once crashes; none ends here.
    datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0


@pytest.fixture(scope="session", autouse=True)
def _one_command_line() -> Iterator[None]:
    """Make the commands once: that takes longer than most verbs take on small data."""
    import typer.main
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        made = cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", made)
        patch.setattr(typer.testing, "_get_command", made)
        yield


Once = Callable[[str, Callable[[Path], object]], Path]
"""Makes a folder of that name by a function that writes into it, once for all test processes."""


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Once:
    """What is dear to make and what nobody writes into."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def make(name: str, write: Callable[[Path], object]) -> Path:
        folder = shared / name
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                unfinished = shared / f"{name}.unfinished" / name
                write(unfinished)
                unfinished.rename(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def sample(once: Once) -> Path:
    """The dataset of `tests/sample.py`, written once per test run; nobody writes into it."""
    return once("sample", write_sample)


@pytest.fixture(scope="session")
def demo(once: Once) -> Path:
    """The dataset of `omnidata demo`, made once per test run; nobody writes into it."""
    return once("demo", make_sample)


@pytest.fixture(scope="session")
def few(sample: Path, once: Once) -> Path:
    """Episodes of every app of the sample, 28 steps, with the labels; nobody writes into them."""
    from tests.data.converting import small

    def write(folder: Path) -> None:
        episodes = ("C001", "C002", "C007", "H006", "H007", "H010", "P002", "R007", "S008")
        small(folder, sample, *episodes)
        labels = (sample / "dependency.jsonl").read_text().splitlines(keepends=True)
        kept = (label for label in labels if json.loads(label)["ID"] in episodes)
        (folder / "dependency.jsonl").write_text("".join(kept))

    return once("few", write)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server of the Hub's protocol, which this process takes for the Hub, and empty caches."""
    with serving() as server, online(server, monkeypatch, tmp_path / "caches"):
        yield server
