"""Verbs that look at data: info, view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnidata import registry
from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.data import data_of, only_task
from omnidata.cli.declare import argument, flag, option, repeatable, verb
from omnidata.errors import DataError, UsageError, plural

if TYPE_CHECKING:
    from omnidata.table import TextTable
    from omnidata.tasks.asking import Asking
    from omnidata.tasks.overview import View
    from omnidata.tasks.statistics import Statistics
    from omnidata.types import LoadedDataset
    from omnidata.viewer.book import Book


_USAGE = (
    "omnidata info DATA, omnidata info TASK DATA, omnidata info TASK, or omnidata info dialects"
)
_DIALECTS = "dialects"
Format = Literal["terminal", "md", "latex", "json"]


@verb(args.reading_data, args.listing_findings)
def info(
    named: list[str] | None = argument(
        "The dataset's folder or file. Name the benchmark before it, e.g. omnigui, if the"
        " data fit several. Several datasets are compared.",
        "[TASK] DATA",
        default=None,
    ),
    expect: str | None = option(
        "Compare the counts with a published table (omnigui: table7).", "TABLE"
    ),
    plot: Path | None = option(
        "Draw the counts, as png, svg or pdf (omnigui: the paper's Figure 2).", "FILE"
    ),
    chart: Path | None = option("Draw a t-SNE map of the instructions.", "FILE", name="--map"),
    task: str | None = option(
        "With `info dialects`: list the actions that only this benchmark, or only the "
        "dialect, can express.",
        "TASK",
    ),
    strict: bool = flag("Stop at the first finding.", "--strict"),
    form: Format = option("Format of the tables.", name="--format", default="terminal"),
    as_json: bool = flag("Print everything as JSON.", "--json"),
) -> bool:
    """Show the supported tasks, one task, or the contents of datasets.

    `omnidata info` lists tasks and models. `info TASK` shows a task's options, baselines, profiles,
    media and tags. `info DATA` recognises the benchmark from the data. `info dialects` lists the
    action formats of model families (-T dialect=NAME). Exit code 1: the data have errors, or the
    counts differ from TABLE.

    Example: omnidata info omnigui omnidata-demo/data

    Example: omnidata info dialects --task androidcontrol
    """
    from omnidata.figures import check, save

    form = "json" if as_json else form
    if named == [_DIALECTS] and not Path(_DIALECTS).exists():
        _print_dialects(task, form == "json")
        return False
    if task is not None:
        raise UsageError(
            "--task is only for `info dialects`",
            where=f"--task {task}",
            expected=f"omnidata info dialects --task {task}, or omnidata info {task}",
        )
    first, *more = named or [""]
    if not named or (not more and first in registry.names() and not Path(first).exists()):
        if expect or strict or plot or chart:
            raise UsageError("no data is named", expected=_USAGE)
        if named:
            _print_task(first, form == "json")
        else:
            _print_supported(form == "json")
        return False
    for path, given in ((plot, "--plot"), (chart, "--map")):
        if path:
            check(path, given)
    places = _places(named)
    if len(places) > 1 and (expect or plot):
        flag = f"--expect {expect}" if expect else f"--plot {plot}"
        raise UsageError(
            "this option takes one dataset", where=flag, expected=f"one DATA, not {len(places)}"
        )
    held = [_open(*each, expect, strict) for each in places]
    differences = held[0].view.differences(expect) if expect else []
    if len(held) == 1:
        _print(held[0], form, expect, differences)
    else:
        _print_several(held, form)
    if plot:
        _draw(held[0], plot)
    if chart:
        from omnidata.analysis.instruction_map import figure

        labels = [each.label for each in held]
        if len(set(labels)) < len(labels):
            labels = [str(each.source.root) for each in held]
        sources = dict(zip(labels, (each.source for each in held), strict=True))
        save(lambda: figure(sources), chart)
        terminal.note(f"figure: {chart}")
    found = [finding for each in held for finding in each.source.findings]
    return bool(differences) or any(finding.severity == "error" for finding in found)


@dataclass(frozen=True, slots=True)
class _Dataset:
    task: Asking
    source: LoadedDataset
    view: View
    statistics: Statistics

    @property
    def label(self) -> str:
        return f"{self.task.benchmark.card.title}: {self.source.root.resolve().name}"


def _places(named: Sequence[str]) -> list[tuple[str | None, Path]]:
    """Return the datasets, each with the task before it.

    A word is a task if one has that name, or if no file has it; the last is always a dataset.
    """
    words = iter(named)
    found: list[tuple[str | None, Path]] = []
    for word in words:
        data = None
        if word in registry.names() or not Path(word).exists():
            data = next(words, None)
        task, place = (None, word) if data is None else (word, data)
        found.append((task, data_of(task, Path(place))))
    return found


def _open(name: str | None, place: Path, expect: str | None, strict: bool) -> _Dataset:
    from omnidata.files import staying_in
    from omnidata.tasks import get_task
    from omnidata.tasks.statistics import statistics

    name = name or only_task(place, "omnidata info TASK DATA", _USAGE)
    task = get_task(name)
    kind = task.benchmark.paper.overview
    if expect is not None and expect not in kind.published:
        names = ", ".join(kind.published)
        raise UsageError(
            f"{name} has no such table",
            where=f"--expect {expect}",
            expected=names or "no --expect: the benchmark has no table to compare with",
            remedy=f"use --expect {names}" if names else "drop the option",
        )
    with staying_in(place):
        source = kind.read(task, place, strict=strict)
    return _Dataset(task, source, kind(source), statistics(task, source))


def _as_dict(held: _Dataset) -> dict[str, Any]:
    source = held.source
    return {
        "task": source.task,
        "fingerprint": source.fingerprint,
        "steps": len(source.steps),
        "episodes": held.view.episodes,
        "skipped": source.skipped,
        **held.view.as_dict(),
        "statistics": held.statistics.as_dict(),
        "findings": [finding.as_dict() for finding in source.findings],
    }


def _print(held: _Dataset, form: Format, expect: str | None, differences: list[str]) -> None:
    from collections import Counter

    source, view = held.source, held.view
    if form == "json":
        terminal.print_json({**_as_dict(held), "differences": differences})
        return
    _print_tables([*view.tables(), *held.statistics.tables()], form)
    terminal.print_kinds(source.findings)
    say = terminal.say if form == "terminal" else terminal.note
    errors = sum(finding.severity == "error" for finding in source.findings)
    parts = [
        plural(view.episodes, "episode"),
        plural(len(source.steps), "step"),
        f"{plural(source.skipped, 'row')} skipped",
        *view.remarks(),
        plural(errors, "error"),
        plural(len(source.findings) - errors, "warning"),
    ]
    say(", ".join(parts))
    for code, number in Counter(finding.code for finding in source.findings).most_common():
        say(f"  {number} {code}")
    for difference in differences:
        say(f"differs from {view.published[expect or '']}: {difference}")
    if expect and not differences:
        say(f"all counts agree with {view.published[expect]}")


def _print_several(several: Sequence[_Dataset], form: Format) -> None:
    from omnidata.tasks.statistics import comparison

    if form == "json":
        terminal.print_json({"datasets": [_as_dict(held) for held in several]})
        return
    rows = [(held.task, held.source, held.statistics) for held in several]
    _print_tables([comparison(rows)], form)
    for held in several:
        source = held.source
        terminal.note(
            f"{held.label}: {plural(source.skipped, 'row')} skipped,"
            f" {plural(len(source.findings), 'finding')}"
            f" (`omnidata info {source.task} {source.root}` shows them)"
        )


def _print_tables(tables: Sequence[TextTable], form: Format) -> None:
    for table in tables:
        terminal.show_table(table, form)
        if form != "terminal":
            terminal.say("")


def _draw(held: _Dataset, path: Path) -> None:
    from omnidata.figures import save
    from omnidata.tasks.statistics import figure

    if held.view.draws:
        for text, drawn in held.view.draw(path).items():
            terminal.note(f"no installed font can draw {text!r}; it is drawn as {drawn}")
    elif held.source.steps:
        save(lambda: figure(held.source, held.statistics), path)
    else:
        raise DataError(
            "there is no step to draw",
            where=str(held.source.root),
            expected="data with steps",
            remedy="drop --plot",
        )
    terminal.note(f"figure: {path}")


def _print_task(name: str, as_json: bool) -> None:
    from omnidata.tasks import get_task

    task = get_task(name)
    told = _description(task)
    if as_json:
        terminal.print_json({"task": name, **told})
        return
    terminal.say(f"{name}: {told['holds']}")
    if task.benchmark.about:
        terminal.say(f"asks about the data of {task.benchmark.data_of}")
    terminal.say(f"DATA: {told['data'] or 'see the documentation of the distribution'}")
    for key, values in told["options"].items():
        shown = "|".join(values) if values != [""] else "TEXT"
        terminal.say(f"  -T {key}={shown}  (default: {values[0] or 'none'})")
    terminal.say(f"options of every task, if the data allow them: {_common_options(task)}")
    terminal.say(f"baselines: {', '.join(f'baseline:{one}' for one in told['baselines'])}")
    recorded = task.benchmark.rollouts.profiles if task.benchmark.rollouts else {}
    for what, names in (
        ("profiles for answers of a model" if recorded else "profiles", [*task.profiles]),
        ("profiles for records of an environment", [*recorded]),
    ):
        if names:
            terminal.say(f"{what}: {', '.join([f'{names[0]} (default)', *names[1:]])}")
        for name in names:
            rules = task.profiles.get(name)
            terms = rules.legend if rules else {}
            columns = rules.columns if rules else recorded[name]
            words = (f"{one} ({terms[one]})" if one in terms else one for one in columns)
            terminal.say(f"  {name}: {', '.join(words)}")
    unknown = "depends on the data; see `omnidata info TASK DATA`"
    media = (f"{role} ({kind})" for role, kind in (told["media"] or {}).items())
    for what, found in (
        ("media", ", ".join(media)),
        ("tags, for --where", ", ".join(told["tags"] or ())),
        ("subsets", ", ".join(told["subsets"] or ())),
    ):
        terminal.say(f"{what}: {found or unknown}")
    if told["docs"]:
        terminal.say(f"more: {told['docs']}")


def _summary(task: Asking) -> str:
    """Return the task's own summary, or the first line of its class's docstring."""
    doc = (type(task.benchmark).__doc__ or "").strip().partition("\n")[0]
    return task.benchmark.card.holds or doc or "a task of another distribution"


def _description(task: Asking) -> dict[str, Any]:
    from omnidata.run.scoring import profiles_of

    card = task.benchmark.card
    page = type(task.benchmark).__module__.split(".")[2:3]  # its package, which tasks share
    return {
        "holds": _summary(task),
        "data": _data_form(task),
        "profiles": profiles_of(task),
        "default_profile": task.default_profile,
        "columns": {profile: list(rules.columns) for profile, rules in task.profiles.items()},
        "options": {option: list(values) for option, values in task.allowed.items()},
        "baselines": list(task.baselines),
        "media": card.roles and dict(card.roles),
        "tags": card.tags and list(card.tags),
        "subsets": ["all", *card.subsets] if card.subsets else None,
        "docs": f"docs/benchmarks/{page[0].replace('_', '-')}.md"
        if registry.is_ours(task.name)
        else None,
    }


def _data_form(task: Asking) -> str:
    """Return the form of the task's data, from its loader's error for missing data."""
    try:
        task.load(Path("no data"), check_media=False)
    except Exception as error:  # a plug-in's loader may fail in any way
        return error.expected if isinstance(error, DataError) else ""
    return ""


def _common_options(task: Asking | None = None) -> str:
    """Return the options of every task, apart from those that the task defines itself."""
    from omnidata.tasks.common_options import OPTIONS

    own = task.allowed if task else {}
    return ", ".join(f"-T {name}={value}" for name, value in OPTIONS.items() if name not in own)


def _print_supported(as_json: bool) -> None:
    from omnidata.adapters import PLUGINS, forms, presets
    from omnidata.run.logs import HARNESSES
    from omnidata.run.scoring import profiles_of
    from omnidata.tasks import get_task

    tasks = [get_task(name) for name in registry.names() if registry.is_ours(name)]
    if as_json:
        described = {
            task.name: {
                "holds": _summary(task),
                "profiles": profiles_of(task),
                "default_profile": task.default_profile,
                "options": {name: list(values) for name, values in task.allowed.items()},
                "baselines": list(task.baselines),
            }
            for task in tasks
        }
        about = {task.name: task.benchmark.data_of for task in tasks if task.benchmark.about}
        terminal.print_json(
            {
                "tasks": {name: one for name, one in described.items() if name not in about},
                "tasks_about_others": {
                    name: {"asks_about": other, **described[name]} for name, other in about.items()
                },
                "models": forms(),
                "presets": list(presets.table()),
                "plugins": PLUGINS.names(),
                "task_plugins": registry.plugin_names(),
                "logs": list(HARNESSES),
            }
        )
        return
    for task in sorted(tasks, key=lambda task: task.benchmark.about is not None):
        terminal.say(f"task {task.name}: {_summary(task)}")
        if task.benchmark.about:
            terminal.say(f"  asks about the data of {task.benchmark.data_of}")
        terminal.say(f"  profiles: {', '.join(profiles_of(task))}")
        for name, values in task.allowed.items():
            terminal.say(f"  -T {name}={'|'.join(values) or 'TEXT'}")
        terminal.say(f"  baselines: {', '.join(task.baselines)}")
    terminal.say(f"every task: {_common_options()}")
    terminal.say("tasks of plugins:  " + ("  ".join(registry.plugin_names()) or "none"))
    terminal.say("models:   " + "  ".join(forms()))
    terminal.say("presets:  " + "  ".join(presets.table()))
    terminal.say("plugins:  " + ("  ".join(PLUGINS.names()) or "none"))
    terminal.say("logs:     " + ", ".join(HARNESSES))


def _print_dialects(task: str | None, as_json: bool) -> None:
    from omnidata.analysis.dialect_gaps import describe, find_gaps
    from omnidata.dialects import dialects

    found = {name: describe(one) for name, one in dialects().items()}
    if task is not None:
        found = {name: find_gaps(task, name) for name in found}
    if as_json:
        terminal.print_json(found)
        return
    for name, told in found.items():
        terminal.say(f"dialect {name}: {told.pop('title')}")
        for key, value in told.items():
            words = ", ".join(value) if isinstance(value, list) else value
            terminal.say(f"  {key.replace('_', ' ')}: {words or 'none'}")


_VIEW_USAGE = "omnidata view DATA, omnidata view TASK DATA, or omnidata view RUN"
_RUN = ("run.json", "results.json")


@verb(args.reading_data, args.listing_findings)
def view(
    task_options: args.TaskOptions,
    task: str | None = argument(
        "The benchmark, e.g. omnigui; needed if the data fit several.", "TASK", default=None
    ),
    data: Path | None = args.data_argument(
        "A dataset's folder or file, or a run folder.", default=None
    ),
    named: str | None = option("Same as TASK.", "NAME", name="--task"),
    of: Path | None = args.data_option("The dataset of the run, if it has moved.", "--data"),
    errata: list[str] = repeatable(
        "Show what these corrections of labels say about each step (repeatable).", "FILE"
    ),
    port: int = option("Port on 127.0.0.1; 0 picks a free one.", min=0, max=65535, default=0),
    as_json: bool = flag("Print the address and the sizes as JSON.", "--json"),
) -> None:
    """Browse a dataset, or the answers of a run, in the browser.

    Pages are made on request; nothing is written. The server listens on 127.0.0.1 only and serves
    only the media of the steps. Stop it with Ctrl-C.

    Example: omnidata view omnigui omnidata-demo/data
    """
    from omnidata.run.errata import corrections_in_order, read_all
    from omnidata.run.event_loop import EventLoop
    from omnidata.viewer.server import serve

    place = data
    if place is None:
        if task is None:
            raise UsageError("no data and no run is named", expected=_VIEW_USAGE)
        place = data_of(named, Path(task))
        task = None
    if task and named:
        raise UsageError("the task is named twice", where=f"--task {named}", expected=_VIEW_USAGE)
    book = _book(place, task or named, of, task_options)
    if errata:
        files = read_all(errata, book.task.name)
        book = replace(book, corrections=corrections_in_order(files))

    def announce(address: str) -> None:
        if as_json:
            sizes = {"steps": len(book.steps), "episodes": len(book.episodes)}
            terminal.print_json({"address": address, "task": book.task.name, **sizes})
        else:
            terminal.say(address)
            terminal.note("stop with Ctrl-C")

    try:
        with EventLoop() as loop:
            loop.run(serve(book, port, announce))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise UsageError(
            f"the port cannot be used ({error.strerror})",
            where=f"--port {port}",
            expected="a free port",
            remedy="drop --port",
        ) from None


def _book(data: Path, task: str | None, of: Path | None, task_options: Mapping[str, str]) -> Book:
    from omnidata.run.run_files import read_run
    from omnidata.tasks import get_task
    from omnidata.viewer.book import open_data, open_run

    if data.is_dir() and any((data / name).is_file() for name in _RUN):
        if task:
            raise UsageError(
                "a run folder names its own task", where=f"the task {task}", remedy="drop the task"
            )
        return open_run(read_run(data), data=of, files=task_options)
    if of is not None:
        raise UsageError("DATA is not a run folder", where=f"--data {of}", remedy="drop --data")
    name = task or only_task(data, "omnidata view TASK DATA", _VIEW_USAGE)
    book = open_data(get_task(name, task_options), data)
    terminal.print_findings(book.source)
    return book
