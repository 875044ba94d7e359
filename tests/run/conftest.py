"""What tests of runs share: a few episodes, loaded once, and a cluster of Ray's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnidata.run.engines import Cluster
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.plugs import install
from tests.run.scripted import Run

MODELS = """
import os
import resource

from omnidata.adapters.base import Model
from omnidata.types import Completion


class Deadly(Model):
    # Ends its process at one step, and answers the others.
    def __init__(self, rest, options):
        self.name = f"deadly:{rest}"
        self.at, self.accepts = rest, None

    async def generate(self, prepared, params):
        if self.at == "*" or any(each.request.sample_id == self.at for each in prepared):
            os._exit(3)
        return [Completion(delivery="ok", text="CLICK <1,1>") for _ in prepared]


class Filling(Deadly):
    # The disk of the first process that comes takes no more; or that of all.
    async def generate(self, prepared, params):
        try:
            if self.at != "*":
                os.mkdir(self.at)
        except FileExistsError:
            pass
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
        return [Completion(delivery="ok", text="CLICK <1,1>") for _ in prepared]
"""

CHANGING = """
import asyncio
import os
from pathlib import Path

from omnidata.adapters.base import Model
from omnidata.types import Completion

# Every process finds other code in the package.
own = Path(__file__).parent / f"of_{os.getpid()}"
own.mkdir()
(own / "code.py").write_text(f"NUMBER = {os.getpid()}")
__spec__.submodule_search_locations.append(str(own))


class Changing(Model):
    accepts = None

    def __init__(self, rest, options):
        self.name = "changing"

    async def generate(self, prepared, params):
        await asyncio.sleep(0.3)  # a second worker comes meanwhile
        return [Completion(text=str(os.getpid())) for _ in prepared]
"""


@pytest.fixture(scope="session")
def source(few: Path) -> LoadedDataset:
    """28 steps with media and labels."""
    return get_task("omnigui").load(few)


@pytest.fixture(scope="session")
def whole(sample: Path) -> LoadedDataset:
    """All steps of the sample."""
    return get_task("omnigui").load(sample)


@pytest.fixture
def run(source: LoadedDataset, tmp_path: Path) -> Run:
    return Run(source, tmp_path / "run")


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two machines with room for two workers each, on the loopback; one is the head."""
    folder = tmp_path_factory.mktemp("plugged")
    handler = signal.getsignal(signal.SIGTERM)
    (folder / "deadly.py").write_text(MODELS, encoding="utf-8")
    install(
        folder,
        "deadly-models",
        "omnidata.adapters",
        "deadly = deadly:Deadly\nfilling = deadly:Filling",
    )
    (folder / "changing").mkdir()
    (folder / "changing" / "__init__.py").write_text(CHANGING, encoding="utf-8")
    install(folder, "changing", "omnidata.adapters", "changing = changing:Changing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # a cluster on the loopback, for a minute
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        from ray.cluster_utils import Cluster as Machines

        made: Any = Machines(
            initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
        )
        made.add_node(num_cpus=2)
        # It puts up a handler of its own, and other tests are about what nobody handles.
        signal.signal(signal.SIGTERM, handler)
        yield made
        made.shutdown()
    signal.signal(signal.SIGTERM, handler)  # which the machines have put up


@pytest.fixture
def cluster(machines: Any) -> Cluster:
    return Cluster(machines.address, workers=2, wait_s=30)


def workers_of(machines: Any, kind: str) -> list[int]:
    """The processes of a cluster that are of a kind, by what they call themselves."""
    raylets = {
        str(node.all_processes["raylet"][0].process.pid)
        for node in machines.list_all_nodes()
        if node.all_processes.get("raylet")
    }
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            named = (place / "cmdline").read_bytes().startswith(f"ray::{kind}".encode())
            known = (place / "environ").read_bytes().split(b"\0") if named else ()
        except OSError:
            continue
        if any(f"RAY_RAYLET_PID={pid}".encode() in known for pid in raylets):
            found.append(int(place.name))
    return found
