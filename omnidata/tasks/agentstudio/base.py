"""Common parts of AgentStudio's benchmarks: their rows, and the names of their two rules.

`agentstudio-paper` reads with care: edges are part of a box, the last readable `Answer:` decides.
`agentstudio-release` gives the released evaluator's verdicts, with its traps. A faulty row (no
usable box, an operation outside the action space, an empty window) is judged by neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from omnidata.jsontext import hash_of
from omnidata.tasks.agentstudio import load as loader
from omnidata.tasks.agentstudio.answers import Reading
from omnidata.tasks.agentstudio.derived import DERIVATIONS
from omnidata.tasks.agentstudio.files import BenchmarkFiles, TaskName
from omnidata.tasks.agentstudio.messages import template
from omnidata.tasks.agentstudio.paper import TABLES, publications, published_results
from omnidata.tasks.agentstudio.rows import PLATFORMS, action_box
from omnidata.tasks.benchmark import Benchmark, Card, Note, Paper, Rule
from omnidata.tasks.coordinates import in_pixels
from omnidata.tasks.published import HISTORY, Variation
from omnidata.types import LoadedDataset, Overlays, Step

Value = TypeVar("Value")

FRAMES: Final = "recorded action"
"""The name of frames around the places of recorded actions, which are no targets."""


class AgentStudioRule(Rule[Value]):
    """Base class of the rules.

    Args:
        reading: whose rule, "paper" or "release".
    """

    def __init__(self, reading: Reading) -> None:
        self.reading: Reading = reading
        self.name = f"agentstudio-{reading}"
        paper = "AgentStudio, section 5 and appendix E"
        self.source = paper if reading == "paper" else "AgentStudio's released evaluator"


class AgentStudio(Benchmark):
    """Base class of the benchmarks.

    Attributes:
        task: which of the four.
        templates: names of its prompt texts.
        variations: options that get a table of the runs that differ only in them.
    """

    task: ClassVar[TaskName]
    templates: ClassVar[Sequence[str]]
    variations: ClassVar[Sequence[Variation]] = (HISTORY,)

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self.files = BenchmarkFiles(self.task)
        self.paper = Paper(
            published=partial(published_results, self.task),
            tables=(TABLES[self.task],),
            variations=self.variations,
        )
        self.derivation = DERIVATIONS[self.task]
        asked = {key: value for key, value in self.options.items() if key != "coordinates"}
        self.prompt_hash = hash_of([self.task, asked, [*map(template, self.templates)]])

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(
            data,
            self.task,
            instructions="raw" if self.options.get("instructions") == "raw" else "recaptioned",
            check_media=check_media,
            strict=strict,
        )

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return self.load(data, check_media=False).steps

    def group(self, step: Step) -> Step:
        return loader.assign_group(step)


def make_card(task: TaskName, title: str, holds: str, **rest: Any) -> Card:
    """Return the card of a benchmark."""
    return Card(
        title=title,
        holds=holds,
        sources=publications(task),
        tags=loader.TAGS,
        roles=loader.ROLES.get(task),
        subsets=(*PLATFORMS, *loader.FAMILIES[task]),
        detailed_actions=False,
        **rest,
    )


def action_frames(
    step: Step, actions: Mapping[str, Mapping[str, Any]] | None = None
) -> Mapping[str, Overlays]:
    """Return the places of recorded actions by role of the picture, as far as they are known.

    Args:
        step: the step.
        actions: the action made on each picture; None for those of a trajectory.
    """
    if actions is None:
        actions = {f"observation_{n}": each for n, each in enumerate(step.source["actions"])}
    found = ((role, action_box(step.source, action)) for role, action in actions.items())
    return {
        role: Overlays((in_pixels(region, step.screen),))
        for role, region in found
        if region is not None
    }
