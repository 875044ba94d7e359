"""One entry to the four benchmarks, for installations that know no module of each."""

from __future__ import annotations

from collections.abc import Mapping

from omnidata.tasks.agentstudio import base
from omnidata.tasks.agentstudio.criticbench import CriticBench
from omnidata.tasks.agentstudio.groundui import GroundUi
from omnidata.tasks.agentstudio.idm import IdmMultiple, IdmSingle


def _make(name: str, options: Mapping[str, str]) -> base.AgentStudio:
    kinds = (GroundUi, IdmSingle, IdmMultiple, CriticBench)
    return next(kind for kind in kinds if kind.task == name)(name, options)


AgentStudio = _make
