"""Where OSWorld's rollouts lie below a folder of results, and what their folders' names say.

The release writes `<action_space>/<observation_type>/<model>/<domain>/<example_id>/`; others hand
on a part of it, from any level downwards, or have a folder per instruction below the example.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnidata.errors import Finding, MediaError
from omnidata.files import bounds, inside, real
from omnidata.loaders.file_search import check_depth, is_walked, refuse_far
from omnidata.loaders.json_lines import decoded
from omnidata.loaders.osworld_domains import group_of
from omnidata.loaders.place import Note
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef

TRAJECTORY: Final = "traj.jsonl"
RESULT: Final = "result.txt"
RECORDING: Final = "recording.mp4"
ACTION_SPACES: Final = ("pyautogui", "computer_13")
OBSERVATION_TYPES: Final = ("screenshot", "a11y_tree", "screenshot_a11y_tree", "som")

_SKIPPED: Final = "onboard"  # the release's own trials
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
        folders: those between `root` and the domain's.
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

    @property
    def run(self) -> str:
        """The run that it belongs to: action space, observation type and model.

        Folders that say none of these are a part of it: two runs side by side are never one.
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
    found = list(_walk(root, (), (real(root),), far, note)) if data.is_dir() else [()]
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
        if not entry.is_symlink():
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
        """Remember the place."""
        self._root = root
        self._above = root.resolve().parts[-5:]
        self._args: dict[str, Mapping[str, Any]] = {}

    def named(self, parts: tuple[str, ...]) -> Rollout:
        """The rollout in a folder."""
        known = (*self._above, *parts)
        at = _domain_at(known, len(self._above) if len(parts) >= 2 else 0)
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
            found = decoded(path.read_bytes())
        except (MediaError, OSError):
            return {}
        return found if isinstance(found, dict) else {}


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
