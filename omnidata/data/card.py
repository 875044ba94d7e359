"""The dataset card of a Parquet repository: `README.md`, with the metadata that the Hub reads."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from omnidata import registry
from omnidata.data.convert_plan import Plan, slug
from omnidata.data.convert_shards import Shard
from omnidata.errors import plural
from omnidata.jsontext import encode
from omnidata.loaders.columns import (
    COLUMNS,
    OF_REPOSITORY,
    OPTIONAL,
    PLAIN,
    REPOSITORY,
    ROLES,
    describe,
    flatten,
    tag_column,
)
from omnidata.loaders.repository import Manifest
from omnidata.loaders.subsets import ALL, Subset, count_tags
from omnidata.table import Table, TextTable
from omnidata.table_formats import (
    escape_invisible,
    markdown,
    markdown_code,
    markdown_text,
    pipe_table,
)
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.statistics import statistics
from omnidata.types import LoadedDataset, Publication

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True, slots=True)
class Config:
    """A subset of the repository as `datasets` sees it.

    Attributes:
        name: as in the data; `all` is the default.
        paths: a pattern over the folders of the tags, or the shards where no single one fits: none
            may match a shard twice.
        numbers: of its shards.
    """

    name: str
    paths: Sequence[str]
    numbers: Sequence[int]


def configs(
    source: LoadedDataset, subsets: Sequence[Subset], plans: Sequence[Plan], shards: Sequence[Shard]
) -> list[Config]:
    """Return a config per subset, over shared shards."""
    found = []
    # The steps of a shard have the same tags: one stands for all.
    tags = [source.steps[plan.numbers[0]].tags for plan in plans]
    for subset in subsets:
        numbers = [number for number, own in enumerate(tags) if subset.has(own)]
        if len(subset.values) > 1:
            paths = [shards[number].file for number in numbers]
        else:
            wanted = dict(subset.values)
            levels = [slug(wanted[tag]) if tag in wanted else "*" for tag in source.tags]
            paths = ["/".join(("data", *levels, "*.parquet"))]
        found.append(Config(subset.name, paths, numbers))
    return found


def dataset_version(digest: str) -> str:
    """Return a version that changes with the content; else `datasets` serves its old cache.

    Examples:
        >>> dataset_version("00000010" + "f" * 56)
        '1.0.16'
    """
    return f"1.0.{int(digest[:8], 16)}"


def readme(
    source: LoadedDataset,
    manifest: Manifest,
    configs: Sequence[Config],
    shards: Sequence[Shard],
    features: datasets.Features,
    name: str,
) -> str:
    """Return the text of `README.md`.

    Args:
        source: the steps of the repository.
        manifest: what `omnidata.json` says.
        configs: the subsets, `all` first.
        shards: the files.
        features: the columns.
        name: of the folder.
    """
    counts = count_tags(source.steps)
    front = _front(source, manifest, configs, shards, features, counts)
    findings = [*manifest.findings, *manifest.media_findings]
    known = source.task in registry.names()
    task = get_task(source.task) if known else None
    picture = next((role for role, kind in source.roles.items() if kind == "image"), "screenshot")
    return _TEXT.format(
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        name=markdown_text(name),
        path=escape_invisible(encode(f"path/to/{name}").decode()),
        about=f"of {task.benchmark.card.title}" if task else f"of the benchmark {manifest.task}",
        task=manifest.task,
        subset=escape_invisible(
            encode(next((c.name for c in configs if c.name != ALL), ALL)).decode()
        ),
        steps=plural(sum(manifest.shards.values()), "step"),
        media=(_EMBEDDED if manifest.embed else _LINKED).format(role=picture),
        findings=plural(len(findings), "finding"),
        broken=plural(sum(found.severity == "error" for found in findings), "error"),
        digest=manifest.digest,
        columns=_columns(features),
        sheet=_datasheet(task, source, manifest, name, counts) if task else "",
    )


def _front(
    source: LoadedDataset,
    manifest: Manifest,
    configs: Sequence[Config],
    shards: Sequence[Shard],
    features: datasets.Features,
    counts: Iterable[tuple[str, str]],
) -> dict[str, Any]:
    stated = (value for tag, value in counts if tag == "language")
    languages = sorted(value for value in stated if re.fullmatch("[a-z]{2,3}", value))
    kinds = [kind for kind in _CATEGORIES if kind in source.roles.values()]
    return {
        "license": "unknown",  # only the data's owner can state it
        **({"language": languages} if languages else {}),
        "task_categories": [_CATEGORIES[kind] for kind in kinds],
        "size_categories": [_size(len(source.steps))],
        "tags": ["gui-agent", "omnidata", source.task, *kinds],
        "configs": [
            {
                "config_name": config.name,
                **({"default": True} if config.name == ALL else {}),
                "version": dataset_version(manifest.digest),
                "data_files": [{"split": "test", "path": list(config.paths)}],
            }
            for config in configs
        ],
        "dataset_info": [
            _info(
                config.name,
                [shards[number] for number in config.numbers],
                features if config.name == ALL else None,
            )
            for config in configs
        ],
    }


_CATEGORIES: Final[Mapping[str, str]] = {
    "image": "image-text-to-text",
    "video": "video-text-to-text",
    "audio": "audio-text-to-text",
}
"""Kind of a medium -> the Hub's name of a task that takes it."""


def _size(steps: int) -> str:
    """Return the Hub's name of a size.

    Examples:
        >>> _size(28), _size(2579), _size(10**7)
        ('n<1K', '1K<n<10K', '10M<n<100M')
    """
    names = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
    over = len(str(steps)) - 4  # digits beyond those of 1,000
    return "n<1K" if over < 0 else f"{names[over]}<n<{names[over + 1]}"


def _info(name: str, shards: Sequence[Shard], features: datasets.Features | None) -> dict[str, Any]:
    num_bytes = sum(shard.num_bytes for shard in shards)
    rows = sum(shard.rows for shard in shards)
    return {
        "config_name": name,
        **({"features": _yaml(features)} if features is not None else {}),
        "splits": [{"name": "test", "num_bytes": num_bytes, "num_examples": rows}],
        "download_size": sum(shard.size for shard in shards),
        "dataset_size": num_bytes,
    }


def _yaml(features: datasets.Features) -> Any:
    from datasets.info import DatasetInfo, DatasetInfosDict
    from huggingface_hub import DatasetCardData

    data = DatasetCardData()
    DatasetInfosDict({ALL: DatasetInfo(features=features)}).to_dataset_card_data(data)
    return data["dataset_info"]["features"]


def _columns(features: datasets.Features) -> str:
    lines = [["column", "type", "meaning"]]
    for path, kind in flatten(features):
        column = describe(path, kind)
        meaning = f"{column.meaning} Unit: {column.unit}." if column.unit else column.meaning
        lines.append([markdown_code(path), kind, meaning])
    return pipe_table(lines)


def column_reference() -> dict[str, str]:
    """Return the tables of docs/columns.md, by the name of their place in it."""
    media = [["column", "meaning"]]
    media += [[markdown_code(role), meaning] for role, meaning in ROLES.items()]
    media += [["`observation_0`, `observation_1`, ...", describe("observation_N", "Image").meaning]]
    owners = [["benchmark", "media columns", "tag columns"]]
    for name in registry.benchmarks():
        task = get_task(name)
        columns = (
            task.benchmark.card.roles or (),
            [tag_column(tag) for tag in task.benchmark.card.tags or ()],
        )
        cells = [", ".join(map(markdown_code, names)) or "as in the data" for names in columns]
        owners.append([markdown_code(name), *cells])
    return {
        "step": _fields([path for path in COLUMNS if path in PLAIN]),
        "action": _fields([*COLUMNS], "action."),
        "region": _fields([*COLUMNS], "action.start[]."),
        "some": _fields([path for path in COLUMNS if path in OPTIONAL]),
        "repository": _fields(OF_REPOSITORY),
        "screen": _fields([*COLUMNS], "history_screens[]."),
        "medium": _fields([*COLUMNS], "media[]."),
        "media": pipe_table(media),
        "benchmarks": pipe_table(owners),
    }


def _fields(paths: Sequence[str], below: str = "") -> str:
    lines = [["name", "type", "meaning", "example"]]
    for path in paths:
        name = path.removeprefix(below)
        if not path.startswith(below) or (below and "." in name):
            continue
        column = COLUMNS[path]
        kind = f"{column.kind}, {column.unit}" if column.unit else column.kind
        where = f" Only in {column.where}." if column.where not in ("", REPOSITORY) else ""
        example = markdown_code(column.example) if column.example else ""
        lines.append([markdown_code(name), kind, column.meaning + where, example])
    return pipe_table(lines)


_EMBEDDED: Final = """Media columns hold undecoded `{{bytes, path}}`. Pictures are decoded by
`steps.cast_column("{role}", datasets.Image())`, clips and sounds by `omnidata.decode`."""
_LINKED: Final = """Media columns hold file paths of the machine that wrote them.
`omnidata convert --embed` writes a portable copy."""

_TEXT = """---
{front}---
# {name}

{steps} {about}, written by omnidata, a toolkit for GUI agents. Each row is one question to a
model: the instruction, the screen, the expert's history, and the right answer.

## Load

```python
from datasets import load_dataset

path = {path}  # or the dataset's id on the Hub
steps = load_dataset(path, split="test")
part = load_dataset(path, {subset}, split="test")
```

{media}

Every subset is a choice of rows of `all`. Do not add subsets up: a step is in several.

## Teacher forcing

`history` holds the expert's actions, not the model's own. A model sees the expert's past at every
step, whatever it answered before. An episode succeeds if every step is right given that past; this
is not the rate at which an agent would finish the task by itself.

## Columns

{columns}

Coordinates keep the unit of the source. `action.start` is a list because several regions may be
right: a hit in any of them counts.

## Content

SHA-256 of the content: `{digest}`. The source has {findings}, {broken}; `omnidata.json` lists
them.

{sheet}"""


_MOST = 30
"""Values of a tag that the datasheet lists; of more it has the number."""


def _datasheet(
    task: Asking,
    source: LoadedDataset,
    manifest: Manifest,
    name: str,
    counts: Mapping[tuple[str, str], int],
) -> str:
    """Answers to the questions of a datasheet (OSWorld, Appendix G)."""
    found = statistics(task, source)
    codes = Counter(each.code for each in (*manifest.findings, *manifest.media_findings))
    tables = [*_tags(source.tags, counts), *found.tables()]
    if codes:
        rows = [[code, str(count)] for code, count in sorted(codes.items())]
        tables.append(TextTable("Findings about the source", ("", "findings"), rows))
    return _SHEET.format(
        title=task.benchmark.card.title,
        holds=f"{task.benchmark.card.title}: {task.benchmark.card.holds}"
        if task.benchmark.card.holds
        else task.benchmark.card.title,
        episodes=plural(found.episodes, "episode"),
        steps=plural(found.steps, "step"),
        skipped=plural(manifest.skipped, "row"),
        tables="\n\n".join(markdown(table, level=4) for table in tables),
        held="Yes: the media are in the rows." if manifest.embed else "No: the media are linked.",
        published="\n".join(map(_format_publication, publications(task, counts)))
        or "* No place is known.",
        command=markdown_code(
            f"omnidata evaluate {source.task} {_shell_word(name)} --model SPEC --out RUN"
        ),
    )


def publications(task: Asking, tags: Iterable[tuple[str, str]]) -> Sequence[Publication]:
    """Return the task's publications that the steps may be of, by their tags and values."""
    known = set(tags)
    return [one for one in task.benchmark.card.sources if one.where.items() <= known]


def _shell_word(name: str) -> str:
    """Return the name as a word for bash and zsh, with invisible characters escaped."""
    if escape_invisible(name) == name:
        return shlex.quote(name)
    inner = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{escape_invisible(inner)}'"


def _tags(tags: Sequence[str], counts: Mapping[tuple[str, str], int]) -> list[Table]:
    rows = []
    for tag in tags:
        own = sorted((value, count) for (name, value), count in counts.items() if name == tag)
        if len(own) > _MOST:
            rows.append([tag, f"{len(own)} values", ""])
        else:
            rows += [[tag, value, str(count)] for value, count in own]
    return [TextTable("Steps by tag", ("", "value", "steps"), rows)] if rows else []


def _format_publication(one: Publication) -> str:
    licence = f"`{one.licence}`, as its publisher says" if one.licence else "no licence is stated"
    paper = f"; cite [arXiv:{one.paper}](https://arxiv.org/abs/{one.paper})" if one.paper else ""
    return f"* [{one.name}]({one.url}): {licence}{paper}"


_SHEET = """## Datasheet

The data answer most questions. The others are marked **to be filled in**.

### Motivation

{holds}.

* For what purpose, and by whom was it made? **To be filled in.**

### Composition

{steps} of {episodes}, each with its media, the expert's history and the right answer where the
source has one. {skipped} of the source became no step. There is one split, `test`.

{tables}

* Is it self-contained? {held}
* May pictures and sounds identify people, or offend? **To be filled in.**

### Collection and preprocessing

No value was changed: coordinates keep their unit, and the column `source` has every row as it was.

* How, when and by whom was it collected, and with whose consent? **To be filled in.**

### Uses

{command} asks a model about every step.

* Has it been used for training, and what should it not be used for? **To be filled in.**

## Licence and citation

Data of {title} are published here:

{published}

Nobody has checked that these rows are those data. If they are, their licence holds here too: write
it at the top of this file, in place of `unknown`. For your own data, choose the licence yourself.

## Maintenance

The version at the top follows the content: another content has another version.

* Who maintains it, and where can errors be reported? **To be filled in.**
"""
