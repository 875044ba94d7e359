"""A model of another distribution that knows the answer to what it hears or sees, and to nothing
else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Modality
from tests import plugs
from tests.cli.running import here

PLUGIN = '''
"""`senses:audio` and `senses:video`."""

import hashlib
import json
from pathlib import Path

from omnidata import media
from omnidata.adapters import Model
from omnidata.types import Completion, Prepared


class Senses(Model):
    accepts = frozenset({"image", "video", "audio"})

    def __init__(self, kind, options):
        self.name = f"senses:{kind}"
        self._kind = kind
        self._known = json.loads(Path(options["known"]).read_text())

    def prepare(self, request):
        parts = [part for part in request.conversation[-1].parts if part.role == self._kind]
        found = [hashlib.sha256(media.read_bytes(part.media)).hexdigest() for part in parts]
        return Prepared(request, payload=self._known.get(found[0], "") if found else "")

    async def generate(self, batch, params):
        return [Completion(text=item.payload or '{"action_type": -1}') for item in batch]
'''


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `senses:` a model, in this process."""
    plugs.on_path(site, "senses_plugin", monkeypatch)
    (site / "senses_plugin.py").write_text(PLUGIN, encoding="utf-8")
    plugs.install(site, "senses", "omnidata.adapters", "senses = senses_plugin:Senses")


def learn(source: LoadedDataset, role: Modality, path: Path) -> Path:
    """Write what such a model knows: the right answer to every sound or clip of the data."""
    task = get_task("omnigui")
    known = {}
    for step in source.steps:
        ref, target = step.media[role], task.target(step)
        assert ref and target
        known[hashlib.sha256(media.read_bytes(ref)).hexdigest()] = target.text
    path.write_text(json.dumps(known), encoding="utf-8")
    return path


def ablate(data: Path, out: Path, *words: str | Path, model: str, task: str = "omnigui") -> Any:
    """What `omnidata ablate --json` prints."""
    command = ("ablate", task, data, "--model", model, "--out", out, *words, "--json")
    return json.loads(here(*command).stdout)
