"""Arguments and options that several verbs have."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from omnidata import registry
from omnidata.cli import terminal
from omnidata.errors import DataError, UsageError, plural, suggestion

if TYPE_CHECKING:
    from omnidata.loaders.steps_cache import Entry
    from omnidata.run.cluster import Recipe
    from omnidata.run.cost import Limits
    from omnidata.run.engines import Cluster as Cluster
    from omnidata.tasks.asking import Asking
    from omnidata.tasks.benchmark import Benchmark
    from omnidata.types import Adapter, LoadedDataset, Step


_Verb = Callable[..., bool | None]
"""A verb; the exit code is 1 if it returns true."""


def _find_data(context: typer.Context, place: Path | None) -> Path | None:
    from omnidata.loaders.hub import sending_token

    if place is None:
        return None
    with sending_token(bool(context.params.get("token"))):
        return data_of(context.params.get("task"), place)


def argument(help: str, metavar: str, **settings: Any) -> Any:
    """Return an argument, as a parameter's default or in `Annotated`."""
    return typer.Argument(metavar=metavar, help=help, **settings)


def option(
    help: str, metavar: str | None = None, *, name: str = "", default: Any = None, **settings: Any
) -> Any:
    """Return an option as a parameter's default.

    Args:
        help: its text.
        metavar: of its value; by default the type's.
        name: with dashes; by default the parameter's.
        default: its value if it is not given; `...` if it has to be, and in `Annotated`.
        settings: as of `typer.Option`.
    """
    return typer.Option(default, *filter(None, [name]), metavar=metavar, help=help, **settings)


def flag(help: str, name: str, *, default: Any = False) -> Any:
    """Return an option without a value."""
    return option(help, name=name, default=default)


def declaration(help: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an option for `Annotated`, where the parameter has the default, or none."""
    return option(help, metavar, default=..., **settings)


def repeatable(help: str, metavar: str, *, name: str = "") -> Any:
    """Return an option that may be given more than once, as a parameter's default."""
    return option(help, metavar, name=name, default=[], show_default=False)


def data_argument(help: str, **settings: Any) -> Any:
    """Return an argument that names a dataset's folder or file, or a folder whose `data` is one."""
    return argument(help, "DATA", callback=_find_data, **settings)


def data_option(help: str, name: str = "") -> Any:
    """Return the same as an option."""
    return option(help, "DATA", name=name, callback=_find_data)


_MANY = {"default_factory": list, "show_default": False}
TaskName = Annotated[str, argument("The benchmark, e.g. omnigui.", "TASK")]
Data = Annotated[
    Path, data_argument("The dataset: a folder or file, hf://ORG/NAME[@REV], or auto.")
]
TaskOptions = Annotated[
    Mapping[str, str],
    declaration(
        "Set an option of the task, e.g. modalities=I (repeatable).",
        "KEY=VALUE",
        name="-T",
        **_MANY,
    ),
]
Profile = Annotated[
    str | None, declaration("Rules for scoring. Default: those of the task's paper.")
]
Where = Annotated[
    Mapping[str, str],
    declaration(
        "Use only episodes with this tag, e.g. dimension=localization (repeatable).",
        "TAG=VALUE",
        **_MANY,
    ),
]
Exclude = Annotated[
    Path | None, declaration("Leave out the sample ids in this file, one per line.", "FILE")
]
Errata = Annotated[
    list[str],
    declaration(
        "Also show the numbers with these corrected labels (repeatable, in order).",
        "FILE",
        **_MANY,
    ),
]
Limit = Annotated[int | None, declaration("Use only the first N steps.", min=1)]
Strict = Annotated[bool, declaration("Stop if the data have findings.", name="--strict")]
ChangedMedia = Annotated[
    bool,
    declaration(
        "Accept media that have changed since the model was asked.", name="--changed-media"
    ),
]
Workers = Annotated[
    int | None,
    declaration("Number of processes. Default: one per core, with ray all that fit.", min=1),
]
Json = Annotated[bool, declaration("Print the results as JSON.", name="--json")]
Format = Annotated[
    Literal["terminal", "md", "csv", "json"], declaration("Format of the tables.", name="--format")
]

Token = Annotated[
    bool,
    declaration(
        "Send your Hugging Face token (HF_TOKEN or `hf auth login`), for gated data.",
        name="--token",
        is_eager=True,
    ),
]
ReuseAnswers = Annotated[
    bool,
    declaration("Reuse answers from before the adapter's code changed.", name="--reuse-answers"),
]
DryRun = Annotated[
    bool,
    declaration("Show the first conversation and an estimate; send nothing.", name="--dry-run"),
]
ShardOf = Annotated[
    str | None, declaration("Run only the I-th of N parts; join them with `omnidata merge`.", "I/N")
]
BaseUrl = Annotated[
    str | None, declaration("Address of the server, e.g. http://127.0.0.1:8000/v1.", "URL")
]
KeyFile = Annotated[
    Path | None, declaration("Read the API key from this file, not from the environment.", "FILE")
]
Models = Annotated[Path | None, declaration("Your own models, in TOML (docs/models.md).", "FILE")]
_PAIRS = {"task_options": "-T", "where": "--where", "hub_datasets": "--hub-dataset"}
"""Options of KEY=VALUE pairs."""

# The settings of a model, shared by all verbs that ask one.


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The settings of a model from the command line.

    Attributes:
        options: as given with `-M key=value`.
        base_url, key_file, models: as the flags of `omnidata evaluate`.
        limits: on rate, time and cost.
    """

    options: Mapping[str, str]
    base_url: str | None
    key_file: Path | None
    models: Path | None
    limits: Limits

    def adapter(
        self, spec: str, task: Asking, steps: Sequence[Step], *, asks: bool = True
    ) -> Adapter:
        """Return the model that a SPEC names; see `omnidata.adapters.get_adapter`."""
        return self.recipe(spec).make(task, steps, asks=asks)

    def recipe(self, spec: str) -> Recipe:
        """Return the recipe that makes the model on any machine."""
        from omnidata.run.cluster import Recipe

        return Recipe(spec, self.options, self.base_url, self.key_file, self.models)


def load_asking(
    task: str,
    task_options: Mapping[str, str],
    data: Path,
    model: str,
    asking: ModelOptions,
    *,
    strict: bool,
) -> tuple[Asking, LoadedDataset]:
    """Load the benchmark with its options and its data; print the data's findings.

    Args:
        task: its name.
        task_options: as given with `-T`; missing ones may follow from the model.
        data: the dataset's folder or file.
        model: the SPEC of the model that is to be asked.
        asking: its settings.
        strict: whether findings are an error.
    """
    from omnidata.tasks import get_task, options_for
    from omnidata.tasks.asking_under_options import load_to_ask

    options, said = options_for(task, task_options, model, models=asking.models)
    if said:
        terminal.note(said)
    benchmark = get_task(task, options)
    source = load_to_ask(benchmark, data, check_media=True, strict=strict)
    terminal.print_findings(source)
    return benchmark, source


def check_together(given: object, needed: object, what: str, where: str, expected: str) -> None:
    """Refuse an option without the one that it is for.

    Args:
        given: the value of the option; false if it is not given.
        needed: the value of the other.
        what: for the message, as in `UsageError`.
        where: the option as given.
        expected: the other option.

    Raises:
        UsageError: it is given, and the other is not.
    """
    if given and not needed:
        raise UsageError(what, where=where, expected=f"{expected} as well")


def with_options(
    verb: _Verb,
    call: _Verb,
    declared: Callable[..., Any],
    *,
    instead_of: str = "",
    only: Sequence[str] = (),
) -> _Verb:
    """Return a verb as the command line sees it, with more options than its own.

    Args:
        verb: the verb.
        call: what is called in its place, with the options as well.
        declared: a function whose parameters are the options.
        instead_of: the parameter of the verb at whose place they stand; behind all if empty.
        only: the names of the options; empty for all.
    """
    verb.__annotations__.pop(instead_of, None)  # its class is imported when the verb runs
    added = [each for each in _parameters(declared) if not only or each.name in only]
    parameters: list[inspect.Parameter] = []
    for own in _parameters(verb):
        parameters += added if own.name == instead_of else [own]
    parameters += [] if instead_of else added
    wraps(verb)(call)
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call


def _parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, own in inspect.signature(function).parameters.items():
        hint = hints.get(name)
        if name in _PAIRS:  # typer has no mappings; `reading_data` makes one
            about = getattr(hint, "__metadata__", None)
            hint = Annotated[list[str], *about] if about else list[str]
        yield own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)


def expand_parameter(name: str, make: Callable[..., Any], *only: str) -> Callable[[_Verb], _Verb]:
    """Return a decorator that gives a verb options in place of a parameter.

    Args:
        name: of the parameter.
        make: returns its value; its parameters are the options.
        only: the names of the options that the verb has; the others keep their defaults.
    """
    options = inspect.signature(make).parameters
    unset = {
        each: one.default.default for each, one in options.items() if only and each not in only
    }

    def decorate(verb: _Verb) -> _Verb:
        def call(**given: Any) -> bool | None:
            own = {each: given.pop(each) for each in only or options}
            return verb(**given, **{name: make(**unset, **own)})

        return with_options(verb, call, make, instead_of=name, only=only)

    return decorate


def _model_options(
    *,
    model_options: list[str] = repeatable(
        "Set an option of the model, e.g. layout=release (repeatable).", "KEY=VALUE", name="-M"
    ),
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    models: Models = None,
    concurrency: int | None = option(
        "Most requests at the same time; lowered when the server throttles."
    ),
    rpm: float | None = option("Most requests per minute."),
    tpm: float | None = option("Most tokens per minute."),
    timeout: float | None = option("Time limit of one attempt.", "SECONDS"),
    attempts: int = option("Most attempts for one request.", default=6),
    max_cost: float | None = option("Stop before the run costs more than this; needs --prices."),
    max_tokens: int | None = option("Stop before the run uses more tokens than this."),
    prices: Path | None = option("Prices of models, in TOML (docs/evaluate.md).", "FILE"),
    cache: Path | None = option("Store answers in this database and reuse them.", "FILE"),
    reuse_answers: ReuseAnswers = False,
) -> Any:
    from omnidata.run.cost import Limits
    from omnidata.tasks.given_options import parse

    limits = Limits(
        concurrency=concurrency,
        requests_per_minute=rpm,
        tokens_per_minute=tpm,
        timeout_s=timeout,
        attempts=attempts,
        max_cost=max_cost,
        max_tokens=max_tokens,
        prices=prices,
        cache=cache,
        reuse_answers=reuse_answers,
    )
    return ModelOptions(parse(model_options, "-M"), base_url, key_file, models, limits)


asks = expand_parameter("asking", _model_options)
"""Give a verb the options of `ModelOptions` in place of its parameter `asking`."""
_WAY = ("model_options", "base_url", "key_file", "models")
prices_only = expand_parameter("asking", _model_options, *_WAY, "prices", "reuse_answers")
"""Give a verb that sends nothing these options, of the limits only prices and reuse."""


# Where the work is done, the same for every verb that can do it on a cluster.


def _engine(
    *,
    engine: Literal["local", "ray"] = option(
        "Run on this machine or on a Ray cluster (docs/cluster.md).", default="local"
    ),
    address: str | None = option(
        "With ray: address of the cluster, or auto for the one that this machine is in. Default: "
        "start one here.",
        "HOST:PORT",
    ),
    workers: int | None = option("With ray: number of processes. Default: all that fit.", min=1),
    gpus_per_worker: float | None = option(
        "With ray: GPUs per process; 0.5 lets two share one.", min=0
    ),
    cpus_per_worker: float | None = option("With ray: cores per process. Default: 1.", min=0),
    gpus: int | None = option(
        "Short for: --engine ray --workers N --gpus-per-worker 1.", "N", min=1
    ),
) -> Any:
    from omnidata.run.engines.ray import Cluster

    given = {
        "address": address,
        "workers": workers,
        "gpus_per_worker": gpus_per_worker,
        "cpus_per_worker": cpus_per_worker,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if gpus:
        if twice := {"workers", "gpus_per_worker"} & given.keys():
            flag = min(twice).replace("_", "-")
            raise UsageError(
                "the number of workers or their GPUs are given twice",
                where=f"--gpus {gpus}",
                expected=f"--gpus or --{flag}, not both",
            )
        given |= {"workers": gpus, "gpus_per_worker": 1.0}
    elif engine == "local" and given:
        flag = min(given).replace("_", "-")
        raise UsageError(
            "this option is for a cluster, and the run is on this machine",
            where=f"--{flag}",
            expected="--engine ray as well",
            remedy=f"add --engine ray, or drop --{flag}",
        )
    if not gpus and engine != "ray":
        return None
    return Cluster(**given)  # type: ignore[arg-type]  # the parameters' own values


def on_engine(verb: _Verb) -> _Verb:
    """Give a verb the options of an engine in place of its parameter `cluster`.

    One that has a parameter `workers`, for processes here or there, needs no GPU.

    Raises:
        UsageError: when called, options of a cluster are given without one.
    """
    if "workers" not in inspect.signature(verb).parameters:
        return expand_parameter("cluster", _engine)(verb)

    @wraps(verb)
    def spread(*, workers: int | None, cluster: Cluster | None, **given: Any) -> bool | None:
        if cluster:
            cluster = replace(cluster, workers=workers)
        return verb(**given, workers=workers, cluster=cluster)

    return expand_parameter("cluster", _engine, "engine", "address", "cpus_per_worker")(spread)


# The options that let data lead outside, and to the Hub, the same for every verb that reads data.


@contextmanager
def _environment(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before


def _in_environment(variable: str) -> Callable[[typer.Context, Any], Any]:
    """Return a callback that sets a variable while a verb runs, so that its processes see it."""

    def set_variable(context: typer.Context, value: Any) -> Any:
        if value:
            text = str(value.absolute() if isinstance(value, Path) else int(value))
            context.with_resource(_environment(variable, text))
        return value

    return set_variable


def _reading(
    *,
    media_root: list[Path] = repeatable(
        "Also allow files below this folder, outside DATA (repeatable).",
        "FOLDER",
        name="--media-root",
    ),
    token: Token = False,
    cache_dir: Path | None = option(
        "Folder of the cache: of many steps, and of data that DATA names by URL "
        "(docs/object_stores.md).",
        "FOLDER",
        is_eager=True,  # DATA, which may be a URL, is looked at when it is parsed
        callback=_in_environment("OMNIDATA_CACHE"),
    ),
    cache_bytes: int | None = option(
        "Most bytes of steps, and of data of URLs, in the cache. Default: 50 GB each.",
        "N",
        min=1,
        is_eager=True,
        callback=_in_environment("OMNIDATA_CACHE_BYTES"),
    ),
    no_cache: bool = option(
        "Read the annotations again, and keep no steps in the cache.",
        name="--no-cache",
        default=False,
        callback=_in_environment("OMNIDATA_NO_CACHE"),
    ),
) -> None:
    """Declare the options; those of the cache are in the environment when the verb runs."""


def _note_entry(entry: Entry) -> None:
    terminal.note(
        f"{entry.steps:,} steps are in the cache now, {entry.bytes / 1e6:,.0f} MB in {entry.path}; "
        "later commands open them at once (`omnidata cache` lists and clears them)"
    )


def caching(verb: _Verb) -> _Verb:
    """Give a verb `--cache-dir` and `--cache-bytes`."""

    def call(cache_dir: Path | None, cache_bytes: int | None, **given: Any) -> bool | None:
        return verb(**given)

    return with_options(verb, call, _reading, only=("cache_dir", "cache_bytes"))


def reading_data(verb: _Verb) -> _Verb:
    """Give a verb that reads data the options on its cache, `--media-root` and `--token`.

    Its own options of KEY=VALUE pairs become mappings.

    Raises:
        UsageError: when called, a folder is none, or an option is no KEY=VALUE.
    """

    def call(media_root: list[Path], token: bool, **given: Any) -> bool | None:
        from omnidata.files import following
        from omnidata.loaders.hub import sending_token
        from omnidata.loaders.steps_cache import reporting
        from omnidata.remote import refuse_url
        from omnidata.tasks.given_options import parse

        for name in ("cache_dir", "cache_bytes", "no_cache"):
            del given[name]
        for name, value in given.items():  # DATA is a path by now
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, Path):
                    refuse_url(path, name.replace("_", "-"))
        given |= {name: parse(given[name], _PAIRS[name]) for name in _PAIRS.keys() & given.keys()}
        with following(media_root), sending_token(token), reporting(_note_entry):
            if media_root:
                told = ", ".join(str(root.resolve()) for root in media_root)
                terminal.note(f"files below {told} may be opened")
            return verb(**given)

    return with_options(verb, call, _reading)


# How findings are printed, the same for every verb that has any.


def _listing(
    *, each_finding: bool = flag("List every finding, not one line per kind.", "--all")
) -> None: ...


def finds(verb: _Verb) -> _Verb:
    """Give a verb that prints findings `--all`."""

    def call(each_finding: bool, **given: Any) -> bool | None:
        with terminal.listing(each_finding):
            return verb(**given)

    return with_options(verb, call, _listing)


# The benchmark that data are rows of, where the user does not name it.


def data_of(task: str | None, place: Path) -> Path:
    """Return the place, or its folder `data` if only that holds data, as after `omnidata demo`.

    Args:
        task: the benchmark, built in or a plug-in's; None where it is not known yet.
        place: as the user named it: a path, a URL, a dataset of the Hub, or `auto`.

    Raises:
        DataError: the Hub does not give the dataset, see `omnidata.loaders.fetch.local_place`.
    """
    from omnidata.files import inside, real
    from omnidata.loaders.fetch import local_place

    with terminal.resumable(), terminal.bytes_progress("fetching") as moves:
        place = local_place(place, task, terminal.note, moves)
    inner = place / "data"
    own = inner.is_dir() and inside(real(inner), [real(place)])  # and no link that leads outside
    if not own or _holds(place, task) or not _holds(inner, task):
        return place
    terminal.note(f"reading {inner}: {place} itself holds no data")
    return inner


def _holds(place: Path, task: str | None) -> bool:
    from omnidata.loaders.load import recognise
    from omnidata.loaders.repository import is_repository

    if is_repository(place):
        return True
    benchmark = registry.find_benchmark(task) if task else None
    if benchmark is None or benchmark.about or _says(benchmark, place):
        return bool(recognise(place))
    try:
        benchmark.load(place, check_media=False)
    except Exception:  # plug-ins need not know our errors
        return False
    return True


def _says(benchmark: Benchmark, place: Path) -> bool:
    from omnidata.files import staying_in

    try:
        with staying_in(place):
            return benchmark.recognises(place) is not None
    except Exception:  # a broken plug-in recognises nothing
        return True


def check_exclude(path: Path, *, head: str, flag: str) -> None:
    """Refuse to write sample ids over what another program wrote, before hours are spent.

    Args:
        path: where they are to be written.
        head: of such a file, by which it is told.
        flag: that names the path, for the message.

    Raises:
        UsageError: the file is another's, or cannot be written.
    """
    if path.is_file():
        with path.open("rb") as file:
            mine = file.read(len(head) + 2) == f"# {head}".encode()
    else:
        mine = not path.exists() and path.parent.is_dir()
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError:
        mine = False
    if not mine:
        raise UsageError(
            "the file cannot be written here",
            where=f"{flag} {path}",
            expected="a new file in an existing folder, or a file that this verb wrote earlier",
            remedy="choose another name",
        )


def check_new_file(path: Path, where: str) -> None:
    """Refuse to write corrections over another file.

    Args:
        path: where they are to be written.
        where: the argument, for the message.

    Raises:
        UsageError: the file exists, or its folder does not.
    """
    if path.exists() or not path.parent.is_dir():
        raise UsageError(
            "corrections are not written over another file",
            where=where,
            expected="a new file in an existing folder",
            remedy="choose another name",
        )


def write_exclude(path: Path, ids: Sequence[str], *, head: str) -> None:
    """Write sample ids for `evaluate --exclude`, and say how many."""
    from omnidata.run import selection

    lacking = selection.write_exclude(path, ids, head=head)
    terminal.note(f"{plural(len(ids) - len(lacking), 'step')} to leave out: {path}")
    for sample in lacking:
        terminal.note(f"not written: rename this id, such a file cannot hold it: {sample}")


def only_task(data: Path, usage: str, naming: Callable[[str, object], str]) -> str:
    """Return the benchmark that the data are rows of.

    Args:
        data: the dataset's folder or file.
        usage: of the verb, for messages.
        naming: the command for a task and its data.

    Raises:
        UsageError: they may be several's, or a benchmark is named in place of the data.
        DataError: nothing is there, or rows of no benchmark.
    """
    from omnidata.loaders.load import either, recognise

    if not data.exists():
        if str(data) in registry.names():
            raise UsageError("no data is named", expected=naming(str(data), "DATA"))
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected="the dataset's folder or file",
            remedy=suggestion(str(data), registry.names())
            or "check the path; `omnidata info` lists the tasks",
        )
    found = recognise(data)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"the data fit {either(found)}",
            where=str(data),
            expected=usage,
            remedy=f"name the task: {naming(found[0], data)}",
        )
    raise DataError(
        "the data fit no known benchmark, or are broken",
        where=str(data),
        expected=f"data of {either(registry.benchmarks())}",
        remedy=f"name the task to see the problems: {naming('TASK', data)}",
    )
