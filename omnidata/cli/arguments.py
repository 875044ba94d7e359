"""Arguments and options that several verbs have, each declared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer

from omnidata.cli import terminal
from omnidata.cli.data import data_of
from omnidata.cli.declare import Group, argument, declaration, flag, option, repeatable
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.loaders.steps_cache import Entry
    from omnidata.run.asker import Recipe
    from omnidata.run.cost import Limits
    from omnidata.run.engines import Cluster
    from omnidata.tasks.asking import Asking
    from omnidata.types import Adapter, LoadedDataset, Step


def _find_data(context: typer.Context, place: Path | None) -> Path | None:
    from omnidata.remote import sending_token

    if place is None:
        return None
    with sending_token(bool(context.params.get("token"))):
        return data_of(context.params.get("task"), place)


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

# Which steps of the data are used.


class Kept(TypedDict):
    """The steps that are used, as `omnidata.run.selection.select` takes them."""

    where: Mapping[str, str]
    exclude: frozenset[str]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which steps of the data are used.

    Attributes:
        where, exclude, limit: as the options are given.
    """

    where: Mapping[str, str]
    exclude: Path | None
    limit: int | None

    @property
    def options(self) -> dict[str, object]:
        """The options with their values, false if not given."""
        return {"--where": self.where, "--exclude": self.exclude, "--limit": self.limit}

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return any(self.options.values())

    def read(self, steps: Sequence[Step]) -> Kept:
        """Return the choice with the ids that the file names.

        Args:
            steps: all steps of the data.

        Raises:
            UsageError: the file cannot be read, or names a step that the data does not have.
        """
        from omnidata.run.selection import read_exclude

        excluded = read_exclude(self.exclude, steps) if self.exclude else frozenset[str]()
        return {"where": self.where, "exclude": excluded, "limit": self.limit}


def _choice(*, where: Where, exclude: Exclude = None, limit: Limit = None) -> Choice:
    return Choice(where, exclude, limit)


ChosenSteps = Annotated[Choice, Group(_choice)]


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
        from omnidata.run.asker import Recipe

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


_Settings = Annotated[
    Mapping[str, str],
    declaration(
        "Set an option of the model, e.g. layout=release (repeatable).",
        "KEY=VALUE",
        name="-M",
        **_MANY,
    ),
]
Prices = Annotated[
    Path | None, declaration("Prices of models, in TOML (docs/evaluate.md).", "FILE")
]


def _asked_model(
    *,
    model_options: _Settings,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    models: Models = None,
    concurrency: int | None = option(
        "Maximum number of requests at the same time; lowered when the server throttles."
    ),
    rpm: float | None = option("Maximum number of requests per minute."),
    tpm: float | None = option("Maximum number of tokens per minute."),
    timeout: float | None = option("Time limit of one attempt.", "SECONDS"),
    attempts: int = option("Maximum number of attempts for one request.", default=6),
    max_cost: float | None = option("Stop before the run costs more than this; needs --prices."),
    max_tokens: int | None = option("Stop before the run uses more tokens than this."),
    prices: Prices = None,
    cache: Path | None = option("Store answers in this database and reuse them.", "FILE"),
    reuse_answers: ReuseAnswers = False,
) -> ModelOptions:
    from omnidata.run.cost import Limits

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
    return ModelOptions(model_options, base_url, key_file, models, limits)


def _unasked_model(
    *,
    model_options: _Settings,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    models: Models = None,
    prices: Prices = None,
    reuse_answers: ReuseAnswers = False,
) -> ModelOptions:
    from omnidata.run.cost import Limits

    limits = Limits(prices=prices, reuse_answers=reuse_answers)
    return ModelOptions(model_options, base_url, key_file, models, limits)


AskedModel = Annotated[ModelOptions, Group(_asked_model)]
UnaskedModel = Annotated[ModelOptions, Group(_unasked_model)]
"""For a verb that sends nothing: of the limits only prices and reuse."""


# Where the work is done, the same for every verb that can do it on a cluster.

_EngineName = Annotated[
    Literal["local", "ray"],
    declaration("Run on this machine or on a Ray cluster (docs/cluster.md).", name="--engine"),
]
_Address = Annotated[
    str | None,
    declaration(
        "With ray: address of the cluster, or auto for the one that this machine is in. Default: "
        "start one here.",
        "HOST:PORT",
    ),
]
_Cores = Annotated[float | None, declaration("With ray: cores per process. Default: 1.", min=0)]


def _cluster(
    *,
    engine: _EngineName = "local",
    address: _Address = None,
    workers: int | None = option("With ray: number of processes. Default: all that fit.", min=1),
    gpus_per_worker: float | None = option(
        "With ray: GPUs per process; 0.5 lets two share one.", min=0
    ),
    cpus_per_worker: _Cores = None,
    gpus: int | None = option(
        "Short for: --engine ray --workers N --gpus-per-worker 1.", "N", min=1
    ),
) -> Any:
    from omnidata.run.engines import Cluster

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


def _processes(
    *,
    workers: int | None,
    engine: _EngineName = "local",
    address: _Address = None,
    cpus_per_worker: _Cores = None,
) -> Any:
    on = _cluster(
        engine=engine,
        address=address,
        workers=None,
        gpus_per_worker=None,
        cpus_per_worker=cpus_per_worker,
        gpus=None,
    )
    return on and replace(on, workers=workers)


Engine = Annotated["Cluster | None", Group(_cluster)]
Processes = Annotated["Cluster | None", Group(_processes)]
"""For a verb with `workers`, processes here or there that need no GPU."""


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


_CacheDir = Annotated[
    Path | None,
    declaration(
        "Folder of the caches: steps of large datasets, and data that DATA names by URL "
        "(docs/object_stores.md).",
        "FOLDER",
        is_eager=True,  # DATA, which may be a URL, is looked at when it is parsed
        callback=_in_environment("OMNIDATA_CACHE"),
    ),
]
_CacheBytes = Annotated[
    int | None,
    declaration(
        "Maximum size of each cache in bytes. Default: 50 GB.",
        "N",
        min=1,
        is_eager=True,
        callback=_in_environment("OMNIDATA_CACHE_BYTES"),
    ),
]


@contextmanager
def caching(*, cache_dir: _CacheDir = None, cache_bytes: _CacheBytes = None) -> Iterator[None]:
    """Run a verb with its own cache; the callbacks of the options have set it."""
    yield


@contextmanager
def reading_data(
    *,
    media_root: list[Path] = repeatable(
        "Also allow files below this folder, outside DATA (repeatable).",
        "FOLDER",
        name="--media-root",
    ),
    token: Token = False,
    cache_dir: _CacheDir = None,
    cache_bytes: _CacheBytes = None,
    no_cache: bool = option(
        "Read the annotations again; neither use nor fill the cache of steps.",
        name="--no-cache",
        default=False,
        callback=_in_environment("OMNIDATA_NO_CACHE"),
    ),
) -> Iterator[None]:
    """Run a verb that reads data, which may lead to these folders, and to the Hub."""
    from omnidata.files import following
    from omnidata.loaders.steps_cache import reporting
    from omnidata.remote import sending_token

    with following(media_root), sending_token(token), reporting(_note_entry):
        if media_root:
            names = ", ".join(str(root.resolve()) for root in media_root)
            terminal.note(f"files below {names} may be opened")
        yield


def _note_entry(entry: Entry) -> None:
    terminal.note(
        f"{entry.steps:,} steps are in the cache now, {entry.bytes / 1e6:,.0f} MB in {entry.path}; "
        "later commands open them at once (`omnidata cache` lists and clears them)"
    )


def listing_findings(
    *, each_finding: bool = flag("List every finding, not one line per kind.", "--all")
) -> AbstractContextManager[None]:
    """Run a verb that prints findings."""
    return terminal.listing(each_finding)


def add_option(options: Mapping[str, str], name: str, value: str | None) -> dict[str, str]:
    """Return the options of a task with one that has a short form, e.g. `--dialect NAME`.

    Args:
        options: as given with `-T`.
        name: of the option.
        value: as given with the short form; None if it is not given.

    Raises:
        UsageError: the option is given in both forms.
    """
    from omnidata.tasks.given_options import parse

    added = [] if value is None else [f"{name}={value}"]
    return parse([*map("=".join, options.items()), *added], "-T")


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


def check_apart(given: object, other: object, what: str, where: str) -> None:
    """Refuse an option beside one that excludes it.

    Args:
        given: the value of the option; false if it is not given.
        other: the value of the other.
        what: for the message, as in `UsageError`.
        where: both options as given.

    Raises:
        UsageError: both are given.
    """
    if given and other:
        option = where.split()[0]
        raise UsageError(what, where=where, expected="one of the two", remedy=f"drop {option}")
