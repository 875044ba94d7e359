"""Where OSWorld's rollouts lie below a folder of results, and what their folders' names say.

The release writes `<action_space>/<observation_type>/<model>/<domain>/<example_id>/`; others hand
on a part of it, from any level downwards, or have a folder per instruction below the example.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from omnidata import mirror
from omnidata.errors import Finding, MediaError, MissingMediaError
from omnidata.files import bounds, inside, real
from omnidata.jsontext import decode_utf8, is_integer
from omnidata.loaders.files import check_depth, is_walked, refuse_far
from omnidata.loaders.load import Note, RowContext, short
from omnidata.loaders.row_files import read_rows
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef

# OSWorld's domains: how many examples each has, and the groups of Table 5.


@cache
def sets() -> Mapping[str, Mapping[str, int]]:
    """The sets of examples: by domain, how many there are (Tables 8 and 9).

    Examples:
        >>> {name: sum(found.values()) for name, found in sets().items()}
        {'osworld': 369, 'osworld-windows': 43}
    """
    return MappingProxyType(_file()["sets"])


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """The groups of Table 5 and their domains, in the paper's order.

    Examples:
        >>> groups()["Professional"]
        ('vs_code', 'gimp')
    """
    return MappingProxyType({name: tuple(found) for name, found in _file()["groups"].items()})


@cache
def group_of() -> Mapping[str, str]:
    """The group of every domain.

    Examples:
        >>> group_of()["libreoffice_calc"]
        'Office'
    """
    return MappingProxyType({one: name for name, found in groups().items() for one in found})


@cache
def infeasible() -> frozenset[str]:
    """The tasks that cannot be done, `<domain>/<id>`, as the release's evaluation has them.

    Examples:
        >>> len(infeasible())
        30
    """
    listed = _file()["infeasible"]
    return frozenset(f"{domain}/{one}" for domain, ids in listed.items() for one in ids)


def _file() -> Any:
    path = resources.files("omnidata.tasks.osworld").joinpath("domains.json")
    return json.loads(path.read_text(encoding="utf-8"))


TRAJECTORY: Final = "traj.jsonl"
RESULT: Final = "result.txt"
RECORDING: Final = "recording.mp4"
ACTION_SPACES: Final = ("pyautogui", "computer_13")
OBSERVATION_TYPES: Final = ("screenshot", "a11y_tree", "screenshot_a11y_tree", "som")

_SKIPPED: Final = "onboard"  # the release's own trials
_ATTEMPT: Final = re.compile(r"(attempt|trial|repeat|seed)[-_ ]?\d+", re.IGNORECASE | re.ASCII)
"""What folders are called that hold one of several attempts of the same agent."""
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
        action_space: one of `ACTION_SPACES`, or empty where nothing says it.
        observation_type: one of `OBSERVATION_TYPES`, or empty.
        model: the agent's name, or empty.
        folders: those between `root` and the domain's, but for that of an attempt.
        attempt: the folder of one of several attempts of the agent; empty where there is none.
        max_steps: the turns that the agent was given; None where nothing says it.
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
        """The agent that it is of: action space, observation type and model.

        Folders that say none of these are a part of it: two agents side by side are never one.
        Attempts are those of one agent where their folders say so.
        """
        named = (self.action_space, self.observation_type, self.model)
        told = (name for name in named if name and name not in self.folders)
        return "/".join((*told, *self.folders)) or "."

    def name(self, file: str) -> str:
        """A file of the folder, relative to `root`."""
        return file if self.path == "." else f"{self.path}/{file}"

    def text(self, file: str, *, budget: Budget = _SMALL) -> bytes:
        """The content of a small file of the folder.

        Raises:
            MediaError: it is missing, too large, or outside the folder of results.
            OSError: it cannot be read.
        """
        return resolve(MediaRef("image", self.root, self.name(file)), budget=budget).read_bytes()


def find(data: Path, note: Note) -> list[Rollout]:
    """The rollouts below a folder, sorted by path.

    A folder counts that has a trajectory or a result, and every folder of a known domain, for the
    release makes it before it begins. `onboard` and what begins with a dot are passed over, and so
    are links to folders of the tree.

    Args:
        data: the folder, or a trajectory's file.
        note: takes the findings.

    Raises:
        DataError: folders lie too deep in one another.
        FileError: a link to a folder leads outside.
        OSError: a folder cannot be read.
    """
    root = data if data.is_dir() else data.parent
    namer = _Namer(root)
    far: list[Path] = []
    found = list(_walk(root, (), mirror.trees(root), far, note)) if data.is_dir() else [()]
    refuse_far(far, data)
    return sorted(map(namer.named, found), key=lambda rollout: rollout.path)


def _walk(
    root: Path, parts: tuple[str, ...], trees: tuple[str, ...], far: list[Path], note: Note
) -> Iterator[tuple[str, ...]]:
    check_depth(root.joinpath(*parts), len(parts))
    with os.scandir(root.joinpath(*parts)) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    has_files = any(entry.name in (TRAJECTORY, RESULT) for entry in listed)
    below: list[tuple[str, ...]] = []
    for entry in listed:
        path, inner = Path(entry.path), (*parts, entry.name)
        if entry.name.startswith(".") or entry.name == _SKIPPED or not path.is_dir():
            continue
        if not mirror.is_link(path):
            below += _walk(root, inner, trees, far, note)
        elif is_walked(leads := real(path), trees):
            note(_link(entry.path))
        elif inside(leads, bounds() or trees):
            below += _walk(root, inner, (*trees, leads), far, note)
        else:
            far.append(path)
    above = (root.resolve().name, *parts)[-2:-1]
    if has_files or (not below and not group_of().keys().isdisjoint(above)):
        yield parts
    yield from below


def _link(path: str) -> Finding:
    return Finding(
        "link-skipped",
        "warning",
        path,
        "the folder is a link to another one of the tree",
        "folders",
        "copy that folder if it is a rollout of its own; the link is passed over until then",
    )


class _Namer:
    """Says what the names of folders say; setting files beside them fill in what they do not.

    Args:
        root: the folder that was named; its own place counts too.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._above, _ = _without_attempts(root.resolve().parts[-5:])
        self._args: dict[str, Mapping[str, Any]] = {}

    def named(self, parts: tuple[str, ...]) -> Rollout:
        """The rollout in a folder."""
        inner, attempt = _without_attempts(parts)
        known = (*self._above, *inner)
        at = _domain_at(known, len(self._above) if len(inner) >= 2 else 0)
        before = known[: max(at, 0)]
        space = next((part for part in before[-3:] if part in ACTION_SPACES), "")
        observed = next((part for part in before[-2:] if part in OBSERVATION_TYPES), "")
        args = self._settings(parts)
        return Rollout(
            self._root,
            "/".join(parts) or ".",
            known[at] if at >= 0 else "",
            known[at + 1] if at + 1 < len(known) else "",
            "/".join(known[at + 2 :]),
            space or _one_of(args.get("action_space"), ACTION_SPACES),
            observed or _one_of(args.get("observation_type"), OBSERVATION_TYPES),
            before[-1] if observed and before[-1] != observed else _text(args.get("model")),
            before[len(self._above) :],
            attempt,
            limit if is_integer(limit := args.get("max_steps")) and limit > 0 else None,
        )

    def _settings(self, parts: tuple[str, ...]) -> Mapping[str, Any]:
        """The nearest `args.json` above a rollout."""
        for length in range(len(parts), -1, -1):
            name = "/".join((*parts[:length], "args.json"))
            if name not in self._args:
                self._args[name] = self._read(name)
            if self._args[name]:
                return self._args[name]
        return {}

    def _read(self, name: str) -> Mapping[str, Any]:
        try:
            path = resolve(MediaRef("image", self._root, name), budget=_SMALL)
            found = decode_utf8(path.read_bytes())
        except (MediaError, OSError):
            return {}
        return found if isinstance(found, dict) else {}


def _without_attempts(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The folders but for those of attempts, and these; what lies in a domain is an example."""
    named = [
        bool(_ATTEMPT.fullmatch(part)) and (not place or parts[place - 1] not in group_of())
        for place, part in enumerate(parts)
    ]
    both = list(zip(parts, named, strict=True))
    kept = tuple(part for part, is_attempt in both if not is_attempt)
    return kept, "/".join(part for part, is_attempt in both if is_attempt)


def _domain_at(parts: tuple[str, ...], lowest: int) -> int:
    """The place of the domain: a known one before the example, or as the release lays it out."""
    last = len(parts) - 1
    for at in (last - 1, last - 2):
        if at >= lowest and parts[at] in group_of():
            return at
    for at in range(last - 3, lowest - 3, -1):
        if at >= 0 and parts[at] in OBSERVATION_TYPES:
            return at + 2
    return last - 1


def _one_of(value: object, allowed: tuple[str, ...]) -> str:
    return value if isinstance(value, str) and value in allowed else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# Whether some data are OSWorld's results, by a look at a few files.

FOUND: Final = (
    "<action_space>/<observation_type>/<model>/<domain>/<example_id>/ with "
    f"{TRAJECTORY} and {RESULT}, or a part of it from any level downwards"
)
_DEEPEST_LOOK: Final = 7
_LOOKS: Final = 5
_LINES: Final = 5


def recognises(data: Path) -> bool:
    """Whether a trajectory of OSWorld is there, or a result in the folder of a known domain.

    Raises:
        OSError: a file cannot be read.
    """
    if data.is_file():
        return data.suffix == ".jsonl" and _is_trajectory(data)
    files = list(islice(_files(data), _LOOKS))
    for path in files:
        if path.name == TRAJECTORY and _is_trajectory(path):
            return True
    domains = (path.parent.parent.name for path in files if path.name == RESULT)
    return not group_of().keys().isdisjoint(domains)


def _files(data: Path, depth: int = 0) -> Iterator[Path]:
    """Trajectories and results, the first ones of the tree first; no link is followed."""
    below = []
    for path in sorted(data.iterdir()):
        if path.name in (TRAJECTORY, RESULT) and path.is_file() and not mirror.is_link(path):
            yield path
        elif path.is_dir() and not mirror.is_link(path) and not path.name.startswith("."):
            below.append(path)
    for path in below if depth < _DEEPEST_LOOK else ():
        yield from _files(path, depth + 1)


def _is_trajectory(path: Path) -> bool:
    return any(is_line(line.row) for line in islice(read_rows(path), _LINES))


def is_line(row: Any) -> bool:
    """Whether a row is a line of a trajectory.

    Examples:
        >>> is_line({"step_num": 1, "action": "DONE", "screenshot_file": "a.png"})
        True
    """
    if not isinstance(row, Mapping):
        return False
    acts = "step_num" in row and not row.keys().isdisjoint(("action", "actions"))
    marks = ("action_timestamp", "screenshot_file", "screenshot_file_before_exec", "response")
    return acts and not row.keys().isdisjoint(marks)


# What the agents of OSWorld's rollouts were asked, which the release does not keep with them.

INSTRUCTION: Final = "instruction.txt"
"""What forks call the file of the task."""


@dataclass(slots=True)
class Instructions:
    """The tasks: as a fork's line or file says them, or as OSWorld's own examples do.

    Attributes:
        examples: the release's folder `evaluation_examples/examples`, with `<domain>/<id>.json`;
            None where there is none.
        missing: rollouts whose task nobody says.
    """

    examples: Path | None = None
    missing: set[str] = field(default_factory=set)
    _known: dict[str, str] = field(default_factory=dict)

    def row(self, rollout: Rollout) -> Mapping[str, Any]:
        """What the release's examples say of a rollout's; empty where they say nothing."""
        if self.examples is None or not rollout.domain or not rollout.example_id:
            return {}
        name = f"{rollout.domain}/{rollout.example_id}.json"
        try:
            path = resolve(MediaRef("image", self.examples, name), budget=_SMALL)
            found = decode_utf8(path.read_bytes())
        except (MediaError, OSError):
            return {}
        return found if isinstance(found, dict) else {}

    def of(self, rollout: Rollout, row: Mapping[str, Any]) -> str:
        """What an agent was asked; empty where nobody says.

        Args:
            rollout: the folder.
            row: one of its lines.
        """
        own = row.get("instruction")
        if isinstance(own, str) and own:
            return own
        if rollout.path not in self._known:
            self._known[rollout.path] = _beside(rollout) or self._listed(rollout)
        found = self._known[rollout.path]
        if not found:
            self.missing.add(rollout.path)
        return found

    def _listed(self, rollout: Rollout) -> str:
        text = self.row(rollout).get("instruction")
        return text if isinstance(text, str) else ""


def _beside(rollout: Rollout) -> str:
    try:
        return rollout.text(INSTRUCTION).decode("utf-8").strip()
    except (MediaError, OSError, UnicodeDecodeError):
        return ""


# `result.txt`: what OSWorld's evaluation said of a rollout.

_BUDGET: Final = Budget(max_bytes=4096)
_WORDS: Final = {"True": 1.0, "False": 0.0}
_EXPECTED: Final = "a number from 0 to 1, True or False"


@dataclass(frozen=True, slots=True)
class Result:
    """The score of a rollout.

    Attributes:
        score: 0 to 1; None where there is none, or none that can be used.
        text: what the file holds, stripped; None where there is no file that can be read.
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
    """A score as it is written: a number, or else True or False to the letter.

    The release scores what is no number by the truth of its text, so that "False" counts as 1; here
    it is 0. Nothing is evaluated.

    Raises:
        ValueError: it is none of these, or not from 0 to 1.

    Examples:
        >>> read_score("0.25"), read_score("False"), read_score("True")
        (0.25, 0.0, 1.0)
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ValueError("it is no score") from None
    if not 0 <= score <= 1:  # NaN too
        raise ValueError("the score is not from 0 to 1")
    return abs(score)  # -0.0


def read_result(rollout: Rollout, note: Note) -> Result:
    """The result of a rollout, with a finding where the file cannot be used.

    Args:
        rollout: the folder.
        note: takes the findings.
    """
    place = RowContext(rollout.name(RESULT), note)
    try:
        text = rollout.text(RESULT, budget=_BUDGET).decode("utf-8").strip()
    except MissingMediaError:
        return Result()
    except (MediaError, OSError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, MediaError) else "it cannot be read as text"
        _refuse(place, what)
        return Result()
    try:
        return Result(read_score(text), text)
    except ValueError as error:
        _refuse(place, f"{error}: {short(text)}")
        return Result(None, text)


def _refuse(place: RowContext, what: str) -> None:
    place.refuse(
        "result-broken", what, _EXPECTED, "mend the file; the example counts as unfinished"
    )
