"""Which steps are asked about, and which split of training data each belongs to."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from omnidata.errors import UsageError
from omnidata.files import read_file
from omnidata.loaders.steps import Positions, Steps, episodes_of, ids_of, select_steps
from omnidata.storage import atomic_write
from omnidata.types import Step

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking

Shard = tuple[int, int]
"""Which part of a run, counted from 1, of how many."""


def select(
    steps: Sequence[Step],
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    task: Asking | None = None,
    part: Shard | None = None,
) -> Sequence[Step]:
    """Return the chosen steps, in order.

    Args:
        steps: all steps of the dataset.
        where: tag -> value that an episode must have.
        exclude: sample ids to leave out (see `read_exclude`).
        limit: keep the first so many steps.
        task: says which spellings of a tag's value are the same; None takes them as they are.
        part: the shard of the chosen steps; None for all (see `shard`).

    Raises:
        UsageError: a tag or a value that the data does not have, nothing is left, or there are
            fewer episodes than shards.
    """
    spelling = task.benchmark.wordings.spelling if task else lambda tag, value: value
    for tag, value in where.items():
        values = Counter(step.tags[tag] for step in steps if tag in step.tags)
        if not any(_is(tag, found, value, spelling) for found in values):
            tags = sorted({name for step in steps for name in step.tags})
            known = f"a tag of {', '.join(tags)}" if tags else "no --where: no step has one"
            raise UsageError(
                f'no step has {tag} "{value}"',
                where=f"--where {tag}={value}",
                expected=f"one of {', '.join(sorted(values))}" if values else known,
                remedy="choose one of these" if values or tags else "drop --where",
            )
    if limit is not None and limit < 1:
        raise UsageError("nothing is kept", where=f"--limit {limit}", expected="1 or more")
    if steps and not (where or exclude or limit or part):
        return steps
    kept: Iterable[int] = (
        number for number, name in enumerate(ids_of(steps)) if name not in exclude
    )
    if where:
        kept = (
            number
            for number, step in enumerate(steps)
            if step.sample_id not in exclude
            and all(_is(tag, step.tags.get(tag), value, spelling) for tag, value in where.items())
        )
    chosen = select_steps(steps, islice(kept, limit))
    if not chosen:
        raise UsageError(
            "no step is left",
            where="--where, --exclude, --limit",
            expected="a choice that keeps at least one step",
            remedy="drop one of them, or choose more steps",
        )
    return shard(chosen, *part) if part else chosen


def _is(tag: str, found: str | None, wanted: str, spelling: Callable[[str, str], str]) -> bool:
    if found is None or found == wanted:
        return found is not None
    return spelling(tag, found) == spelling(tag, wanted)


def write_exclude(path: Path, ids: Iterable[str], *, head: str) -> list[str]:
    """Write sample ids for `--exclude`, one per line.

    Args:
        path: of the file.
        ids: in order.
        head: what the list is, for the comment in its first line.

    Returns:
        The ids that such a file cannot hold; it lacks them.
    """
    lacking = []
    with atomic_write(path) as file:
        file.write(f"# {head}\n".encode())
        for sample in ids:
            if _is_line(sample):
                file.write(f"{sample}\n".encode())
            else:
                lacking.append(sample)
    return lacking


def _is_line(sample: str) -> bool:
    try:
        sample.encode()
    except UnicodeEncodeError:
        return False
    return sample == sample.strip() and len(sample.splitlines()) == 1


def read_exclude(path: Path, steps: Sequence[Step]) -> frozenset[str]:
    """Read sample ids, one per line; `#` starts a comment unless the whole line is an id.

    Raises:
        UsageError: the file cannot be read, or names a step that the data does not have.
    """
    try:
        lines = read_file(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the file cannot be read ({error.strerror if isinstance(error, OSError) else error})",
            where=f"--exclude {path}",
            expected="a text file with one sample id per line",
            remedy="name a file that can be read",
        ) from None
    known = Positions(steps)
    excluded = set()
    for number, line in enumerate(lines, 1):
        whole = line.strip()
        sample_id = whole if whole in known else line.partition("#")[0].strip()
        if sample_id and sample_id not in known:
            raise UsageError(
                f'no step has the id "{sample_id}"',
                where=f"{path}:{number}",
                expected="ids like app/episode/step, as in predictions.jsonl",
                remedy="remove the line, or use the data that the file was made for",
            )
        if sample_id:
            excluded.add(sample_id)
    return frozenset(excluded)


def whole_episodes(steps: Sequence[Step], chosen: Sequence[Step]) -> npt.NDArray[np.bool_]:
    """Return for each chosen step whether its whole episode was chosen; bool (N,).

    Success and progress of half an episode are not those of the episode.
    """
    if chosen is steps:
        return np.ones(len(steps), np.bool_)
    if (
        isinstance(steps, Steps)
        and isinstance(chosen, Steps)
        and steps.file is not None
        and steps.file is chosen.file
    ):
        codes = Steps(steps.file).episodes
        sides = [codes if each.numbers is None else codes[each.numbers] for each in (steps, chosen)]
        counts = [np.bincount(side, minlength=int(codes.max(initial=-1)) + 1) for side in sides]
        return np.asarray((counts[0] == counts[1])[sides[1]], np.bool_)
    full = Counter(step.episode for step in steps)
    kept = Counter(step.episode for step in chosen)
    return np.array([kept[step.episode] == full[step.episode] for step in chosen], dtype=np.bool_)


# A part of a run: `--shard i/n`.


def parse_shard(text: str) -> Shard:
    """Parse `i/n`.

    Raises:
        UsageError: it is not of that form, or i is not one of 1 to n.

    Examples:
        >>> parse_shard("2/8")
        (2, 8)
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match:
        number, count = int(match[1]), int(match[2])
        if 1 <= number <= count:
            return number, count
    raise UsageError(
        "this is not a part of a run",
        where=f"--shard {text}",
        expected="i/n with i from 1 to n, e.g. 1/4",
    )


def shard(steps: Sequence[Step], number: int, count: int) -> Sequence[Step]:
    """Return the steps of one part: every `count`-th episode, whole, in order.

    All parts together are the steps, each once, whatever machine cuts them.

    Args:
        steps: of the run, as chosen.
        number: which part, from 1.
        count: how many parts there are.

    Raises:
        UsageError: there are fewer episodes than parts.
    """
    episodes = episodes_of(steps)
    most = int(episodes.max(initial=-1)) + 1
    if not 1 <= number <= count or count > most:
        raise UsageError(
            f"the steps are of {most} episodes",
            where=f"--shard {number}/{count}",
            expected=f"at most {most} parts: an episode is never split",
            remedy="split the run into fewer parts",
        )
    return select_steps(steps, np.flatnonzero(episodes % count == number - 1))


# Which steps are trained on, chosen by and tested with: a cut by a hash of the group.
#
# The split of a step follows from the shares and the name of its group (`Step.group`: its episode,
# with what must not be torn from it) alone. Steps that come or go, and other groups, never move it;
# a larger share takes groups from the following split only.

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES: Mapping[Split, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""Unless the user says otherwise."""


def split_of(step: Step, shares: Mapping[Split, float] = SHARES) -> Split:
    """Return the split of a step.

    Args:
        step: of any benchmark.
        shares: of the groups, summing to 1 (see `parse_shares`).
    """
    digest = hashlib.sha256(step.group.encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    end = 0.0
    for split in SPLITS:
        end += shares.get(split, 0.0)
        if place < end:
            return split
    return next(split for split in reversed(SPLITS) if shares.get(split))


def parse_shares(text: str) -> dict[Split, float]:
    """Parse shares as written on the command line.

    Raises:
        UsageError: an unknown split, no number, or a sum other than 1.

    Examples:
        >>> parse_shares("train=0.9,test=0.1")
        {'train': 0.9, 'test': 0.1}
    """
    shares: dict[Split, float] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        split = next((known for known in SPLITS if known == name.strip()), None)
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if split is None or split in shares or not 0 <= share <= 1:
            raise _shares_error(text)
        shares[split] = share
    if not math.isclose(sum(shares.values()), 1, abs_tol=1e-9):
        raise _shares_error(text)
    return shares


def _shares_error(text: str) -> UsageError:
    return UsageError(
        "these are not shares",
        where=f"--split {text}",
        expected=f"{', '.join(SPLITS)}, each once at most, summing to 1",
        remedy="--split train=0.8,validation=0.1,test=0.1 is the default",
    )
