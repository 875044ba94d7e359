"""OSWorld's rollouts below a folder of results, and the facts in the names of their folders.

The release writes `<action_space>/<observation_type>/<model>/<domain>/<example_id>/`. Others pass
on a part of it, from any level downwards, or have a folder per instruction below the example.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, Final

from omnidata.errors import MediaError, MissingMediaError, OmnidataError
from omnidata.files import bounds, inside, read_text, real
from omnidata.jsontext import is_integer, json_file
from omnidata.loaders.files import check_depth, is_walked, refuse_far
from omnidata.loaders.load import Note, RowContext, short
from omnidata.loaders.row_files import read_rows
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef

# OSWorld's domains: their number of examples, and the groups of Table 5.

_DOMAINS: Final[Any] = json.loads(
    resources.files("omnidata.tasks.osworld").joinpath("domains.json").read_bytes()
)
SETS: Final[Mapping[str, Mapping[str, int]]] = _DOMAINS["sets"]
"""The sets of examples: the number by domain (Tables 8 and 9)."""
GROUPS: Final = {name: tuple(domains) for name, domains in _DOMAINS["groups"].items()}
"""The groups of Table 5 and their domains, in the paper's order."""
GROUP_OF: Final = {domain: name for name, domains in GROUPS.items() for domain in domains}
INFEASIBLE: Final = frozenset(
    f"{domain}/{one}" for domain, ids in _DOMAINS["infeasible"].items() for one in ids
)
"""The tasks that the release's evaluation calls infeasible, as `<domain>/<id>`."""

TRAJECTORY: Final = "traj.jsonl"
RESULT: Final = "result.txt"
RECORDING: Final = "recording.mp4"
ACTION_SPACES: Final = ("pyautogui", "computer_13")
OBSERVATION_TYPES: Final = ("screenshot", "a11y_tree", "screenshot_a11y_tree", "som")

EVALUATION: Final = "evaluation_examples"
"""The beginning of the name of the folder of a suite's tasks."""
_SKIPPED: Final = "onboard"  # the release's own trials
_ATTEMPT: Final = re.compile(r"(attempt|trial|repeat|seed)[-_ ]?\d+", re.IGNORECASE | re.ASCII)
"""Names of folders that hold one of several attempts of an agent."""
_SMALL: Final = Budget(max_bytes=1024**2)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One folder of an example.

    Attributes:
        root: the folder that was named, or that of the file that was.
        path: the folder, relative to `root`, with "/" between its parts; "." for `root` itself.
        domain: e.g. "chrome".
        example_id: the example's id.
        instruction_id: the folder of one of several instructions; empty where there is one.
        action_space: one of `ACTION_SPACES`; empty if unknown.
        observation_type: one of `OBSERVATION_TYPES`; empty if unknown.
        model: the agent's name; empty if unknown.
        folders: those between `root` and the domain's, but for that of an attempt.
        attempt: the folder of one of several attempts of the agent; empty where there is none.
        max_steps: the limit of the agent's turns; None if unknown.
    """

    root: Path
    path: str
    domain: str
    example_id: str
    instruction_id: str = ""
    action_space: str = ""
    observation_type: str = ""
    model: str = ""
    folders: tuple[str, ...] = ()
    attempt: str = ""
    max_steps: int | None = None

    @property
    def run(self) -> str:
        """The agent: action space, observation type and model.

        Other folders are a part of it: two agents side by side are never one.
        """
        names = (self.action_space, self.observation_type, self.model)
        more = (name for name in names if name and name not in self.folders)
        return "/".join((*more, *self.folders)) or "."

    def name(self, file: str) -> str:
        """Return a file of the folder, relative to `root`."""
        return file if self.path == "." else f"{self.path}/{file}"

    def text(self, file: str, *, budget: Budget = _SMALL) -> bytes:
        """Return the content of a small file of the folder, as UTF-8 without a byte order mark.

        Raises:
            MediaError: it is missing, too large, or outside the folder of results.
            FileError: it is no text in the encoding of its beginning.
            OSError: it cannot be read.
        """
        path = resolve(MediaRef("image", self.root, self.name(file)), budget=budget)
        return read_text(path, budget.max_bytes)


Parts = tuple[str, ...]
"""The names of folders, from that of the results downwards."""


def find(data: Path, note: Note, domains: Collection[str] = ()) -> list[Rollout]:
    """Return the rollouts below a folder, sorted by path.

    They are the folders with a trajectory or a result, and all folders in a known domain's or
    beside a rollout's, since the release makes a folder before the rollout begins. Skipped are
    `onboard`, the suite's own tasks, names that begin with a dot, and links to folders of the tree.
    A rollout in another's folder is one of the same agent, or skipped.

    Args:
        data: the folder, or a trajectory's file.
        note: takes the findings.
        domains: of the suite, beside those of the paper's sets.

    Raises:
        DataError: folders lie too deep in one another.
        FileError: a link to a folder leads outside.
        OSError: a folder cannot be read.
    """
    root = data if data.is_dir() else data.parent
    namer = _Namer(root, frozenset(domains) | GROUP_OF.keys())
    far: list[Path] = []
    walked = _walk(root, (), (real(root),), far, note, namer.domains)
    found = list(walked) if data.is_dir() else [()]
    refuse_far(far, data)
    return sorted(_name_rollouts(found, namer, note), key=lambda rollout: rollout.path)


def _walk(
    root: Path,
    parts: Parts,
    trees: tuple[str, ...],
    far: list[Path],
    note: Note,
    domains: Set[str],
) -> Iterator[Parts]:
    check_depth(root.joinpath(*parts), len(parts))
    with os.scandir(root.joinpath(*parts)) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    has_files = any(entry.name in (TRAJECTORY, RESULT) for entry in listed)
    below: list[Parts] = []
    begun: list[Parts] = []
    for entry in listed:
        path, inner = Path(entry.path), (*parts, entry.name)
        if entry.name.startswith((".", EVALUATION)) or entry.name == _SKIPPED:
            continue
        if not path.is_dir():
            continue
        if not path.is_symlink():
            rollouts = list(_walk(root, inner, trees, far, note, domains))
            below += rollouts
            begun += [] if rollouts else [inner]
        elif is_walked(leads := real(path), trees):
            RowContext(entry.path, note).warn(
                "link-skipped",
                "the folder is a link to another folder of the tree",
                "folders",
                "copy that folder if it is a separate rollout; the link is ignored until then",
            )
        elif inside(leads, bounds() or trees):
            below += _walk(root, inner, (*trees, leads), far, note, domains)
        else:
            far.append(path)
    above = (root.resolve().name, *parts)[-2:-1]
    if has_files or (not below and not domains.isdisjoint(above)):
        yield parts
    yield from below
    if not has_files and any(len(one) == len(parts) + 1 for one in below):
        yield from begun


def _name_rollouts(found: Sequence[Parts], namer: _Namer, note: Note) -> Iterator[Rollout]:
    above = _above_examples(found, namer) & set(found)
    for parts in sorted(above):
        RowContext("/".join((*parts, RESULT)), note).warn(
            "result-outside",
            "it is above the folders of domains",
            "results in the folders of examples",
            "move it if it belongs to an example; it is ignored until then",
        )
    folders = [parts for parts in found if parts not in above]
    known = set(folders)
    tried = set()
    inner: list[tuple[Parts, Parts]] = []
    for parts in folders:
        owner = next((parts[:n] for n in range(len(parts)) if parts[:n] in known), None)
        if owner is not None:
            inner.append((parts, owner))
            continue
        rollout = namer.rollout_of(parts)
        tried.add((rollout.run, rollout.domain, rollout.example_id))
        yield rollout
    for parts, owner in inner:
        if rollout_inside := _inner_rollout(parts, owner, namer, tried, note):
            yield rollout_inside


def _inner_rollout(
    parts: Parts, owner: Parts, namer: _Namer, tried: Set[tuple[str, str, str]], note: Note
) -> Rollout | None:
    """Return a rollout in the folder of another one; None for a folder that is none.

    Args:
        parts: the folder.
        owner: the outermost folder of a rollout above it.
        namer: names rollouts by their folders.
        tried: agent, domain and example of the rollouts in no other's folder.
        note: takes a finding about a folder that is skipped.
    """
    below, attempt = _without_attempts(parts[len(owner) :], namer.domains)
    if not below or (len(below) == 1 and not namer.has(owner, RESULT)):
        return namer.rollout_of(parts)  # of an attempt, or of one of several instructions
    if not (namer.has(parts, RESULT) or namer.has(parts, TRAJECTORY)):
        return None  # it has the name of a domain
    outer, example = namer.rollout_of(owner), below[-2:]
    if len(below) > 1 and (outer.run, *example) not in tried:
        return replace(
            outer,
            path="/".join(parts),
            domain=example[0],
            example_id=example[1],
            instruction_id="",
            attempt=attempt,
        )
    RowContext("/".join(parts), note).warn(
        "rollout-inside",
        f"it is in the folder of another rollout, {'/'.join(owner) or '.'}",
        "a separate folder for each example",
        "move it if it is a separate rollout; it is ignored until then",
    )
    return None


def _above_examples(found: Sequence[Parts], namer: _Namer) -> set[Parts]:
    """Return the folders above several examples; a result there is of no example."""
    inside: dict[Parts, list[Parts]] = {}
    for parts in found:
        for length in range(len(parts)):
            inside.setdefault(parts[:length], []).append(parts[length:])
    return {
        parts
        for parts, inner in inside.items()
        if not namer.has(parts, TRAJECTORY)
        and namer.domains.isdisjoint(parts[-2:-1])
        and len(inner) > 1
        and all(len(one) > 1 for one in inner)
    }


class _Namer:
    def __init__(self, root: Path, domains: Set[str]) -> None:
        self._root = root
        self.domains = domains
        self._above, _ = _without_attempts(root.resolve().parts[-5:], domains)
        self._args: dict[str, Mapping[str, Any]] = {}

    def rollout_of(self, parts: tuple[str, ...]) -> Rollout:
        inner, attempt = _without_attempts(parts, self.domains)
        known = (*self._above, *inner)
        at = _domain_at(known, len(self._above) if len(inner) >= 2 else 0, self.domains)
        before = known[: max(at, 0)]
        agent = before[:-1] if _is_trial(before) else before
        space = next((part for part in agent[-3:] if part in ACTION_SPACES), "")
        observed = next((part for part in agent[-2:] if part in OBSERVATION_TYPES), "")
        model = agent[-1] if observed and agent[-1] != observed else ""
        settings = self._settings(parts)
        stated_model, limit = settings.get("model"), settings.get("max_steps")
        return Rollout(
            root=self._root,
            path="/".join(parts) or ".",
            domain=known[at] if at >= 0 else "",
            example_id=known[at + 1] if at + 1 < len(known) else "",
            instruction_id="/".join(known[at + 2 :]),
            action_space=space or _one_of(ACTION_SPACES, settings.get("action_space")),
            observation_type=observed
            or _one_of(OBSERVATION_TYPES, settings.get("observation_type")),
            model=model or (stated_model if isinstance(stated_model, str) else ""),
            folders=before[len(self._above) :],
            attempt=attempt,
            max_steps=limit if is_integer(limit) and limit > 0 else None,
        )

    def has(self, parts: tuple[str, ...], file: str) -> bool:
        return self._root.joinpath(*parts, file).is_file()

    def _settings(self, parts: tuple[str, ...]) -> Mapping[str, Any]:
        for length in range(len(parts), -1, -1):
            name = "/".join((*parts[:length], "args.json"))
            if name not in self._args:
                self._args[name] = _read_object(self._root, name)
            if self._args[name]:
                return self._args[name]
        return {}


def _one_of(known: Sequence[str], value: object) -> str:
    return next((one for one in known if one == value), "")


def _read_object(root: Path, name: str) -> Mapping[str, Any]:
    """Return the JSON object of a small file; empty if there is none."""
    try:
        path = resolve(MediaRef("image", root, name), budget=_SMALL)
        found = json_file(path, _SMALL.max_bytes)
    except (MediaError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _without_attempts(parts: Parts, domains: Set[str]) -> tuple[Parts, str]:
    named = [
        bool(_ATTEMPT.fullmatch(part)) and (not place or parts[place - 1] not in domains)
        for place, part in enumerate(parts)
    ]
    both = list(zip(parts, named, strict=True))
    kept = tuple(part for part, is_attempt in both if not is_attempt)
    return kept, "/".join(part for part, is_attempt in both if is_attempt)


def _is_trial(before: Parts) -> bool:
    """WindowsAgentArena adds a trial number above the domains."""
    return len(before) > 2 and before[-1].isdecimal() and before[-3] in OBSERVATION_TYPES


def _domain_at(parts: Parts, lowest: int, domains: Set[str]) -> int:
    last = len(parts) - 1
    for at in (last - 1, last - 2):
        if at >= lowest and parts[at] in domains:
            return at
    for at in range(last - 3, lowest - 3, -1):
        if at >= 0 and parts[at] in OBSERVATION_TYPES:
            return at + (3 if last > at + 3 and _is_trial(parts[: at + 3]) else 2)
    return last - 1


# Recognise OSWorld's results by a few files.

FOUND: Final = (
    "<action_space>/<observation_type>/<model>/<domain>/<example_id>/ with "
    f"{TRAJECTORY} and {RESULT}, or a part of it from any level downwards"
)
_DEEPEST_LOOK: Final = 7
_LOOKS: Final = 5
_LINES: Final = 5


def recognises(data: Path) -> bool:
    """Return whether the data have a trajectory, or a result in the folder of a known domain.

    Raises:
        OSError: a file cannot be read.
    """
    if data.is_file():
        return data.suffix == ".jsonl" and _is_trajectory(data)
    files = list(islice(_files(data), _LOOKS))
    if any(path.name == TRAJECTORY and _is_trajectory(path) for path in files):
        return True
    domains = (path.parent.parent.name for path in files if path.name == RESULT)
    return not GROUP_OF.keys().isdisjoint(domains)


def _files(data: Path, depth: int = 0) -> Iterator[Path]:
    below = []
    for path in sorted(data.iterdir()):
        if path.name in (TRAJECTORY, RESULT) and path.is_file() and not path.is_symlink():
            yield path
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            below.append(path)
    for path in below if depth < _DEEPEST_LOOK else ():
        yield from _files(path, depth + 1)


def _is_trajectory(path: Path) -> bool:
    return any(_is_line(line.row) for line in islice(read_rows(path), _LINES))


def _is_line(row: Any) -> bool:
    if not isinstance(row, Mapping):
        return False
    acts = "step_num" in row and not row.keys().isdisjoint(("action", "actions"))
    marks = ("action_timestamp", "screenshot_file", "screenshot_file_before_exec", "response")
    return acts and not row.keys().isdisjoint(marks)


# The tasks of OSWorld's rollouts, which the release does not keep with them.

INSTRUCTION: Final = "instruction.txt"
"""The file of the task in forks."""


@dataclass(slots=True)
class Instructions:
    """The texts of tasks: from a fork's line or file, or from OSWorld's own examples.

    Attributes:
        examples: the release's folder `evaluation_examples/examples`, with `<domain>/<id>.json`;
            None without one.
        missing: rollouts without a task.
    """

    examples: Path | None = None
    missing: set[str] = field(default_factory=set)
    _known: dict[str, str] = field(default_factory=dict)

    def of(self, rollout: Rollout, row: Mapping[str, Any]) -> str:
        """Return the task of a rollout, or an empty string.

        Args:
            rollout: the folder.
            row: one of its lines.
        """
        own = row.get("instruction")
        if isinstance(own, str) and own:
            return own
        if rollout.path not in self._known:
            text: object = ""
            with suppress(MediaError, OSError, UnicodeDecodeError):
                text = rollout.text(INSTRUCTION).decode("utf-8").strip()
            if not text:
                listed = example_row(self.examples, rollout.domain, rollout.example_id)
                text = listed.get("instruction")
            self._known[rollout.path] = text if isinstance(text, str) else ""
            if not self._known[rollout.path]:
                self.missing.add(rollout.path)
        return self._known[rollout.path]


def example_row(examples: Path | None, domain: str, example_id: str) -> Mapping[str, Any]:
    """Return the entry of a task in a suite's examples; empty if there is none.

    Args:
        examples: the folder with `<domain>/<id>.json` or `<domain>/<id>/<id>.json`; None without
            one.
        domain: of the task.
        example_id: its id.
    """
    if examples is None or not domain or not example_id:
        return {}
    rows = (_read_object(examples, name) for name in example_names(domain, example_id))
    return next(filter(None, rows), {})


def example_names(domain: str, example_id: str) -> tuple[str, str]:
    """Return the places of a task in a suite's examples: a file, or one in a folder of its own.

    Examples:
        >>> example_names("os", "a")
        ('os/a.json', 'os/a/a.json')
    """
    return f"{domain}/{example_id}.json", f"{domain}/{example_id}/{example_id}.json"


# `result.txt`: the score of a rollout by OSWorld's evaluation.

_BUDGET: Final = Budget(max_bytes=4096)
_WORDS: Final = {"True": 1.0, "False": 0.0}
OUTCOMES: Final = ("success", "partial", "failure", "unfinished")
"""The outcomes of rollouts."""


@dataclass(frozen=True, slots=True)
class Result:
    """The score of a rollout.

    Attributes:
        score: 0 to 1; None without a usable one.
        text: the stripped content of the file; None without a readable file.
    """

    score: float | None = None
    text: str | None = None

    @property
    def outcome(self) -> str:
        """The score as a word: "success", "partial", "failure", or "unfinished"."""
        if self.score is None:
            return "unfinished"
        return "success" if self.score == 1 else "partial" if self.score else "failure"


def read_score(text: str) -> float:
    """Return the score of a text: a number from 0 to 1, "True" or "False".

    The release takes any text that is no number for True, so there "False" counts as 1; here it is
    0. Nothing is evaluated.

    Raises:
        ValueError: the text is no score, or the score is not from 0 to 1.

    Examples:
        >>> read_score("0.25"), read_score("False"), read_score("True")
        (0.25, 0.0, 1.0)
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ValueError("it is not a score") from None
    if not 0 <= score <= 1:  # NaN too
        raise ValueError("the score is not from 0 to 1")
    return abs(score)  # -0.0


def read_result(rollout: Rollout, note: Note) -> Result:
    """Return the result of a rollout, and report a file that cannot be used."""
    text = None
    try:
        text = rollout.text(RESULT, budget=_BUDGET).decode("utf-8").strip()
    except MissingMediaError:
        return Result()
    except (MediaError, OSError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, OmnidataError) else "it cannot be read as text"
    else:
        try:
            return Result(read_score(text), text)
        except ValueError as error:
            what = f"{error}: {short(text)}"
    RowContext(rollout.name(RESULT), note).refuse(
        "result-broken",
        what,
        "a number from 0 to 1, True or False",
        "correct the file; the example counts as unfinished until then",
    )
    return Result(None, text)
