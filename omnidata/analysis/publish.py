"""Push a run to the Hub as a dataset of results: its answers, scores and settings, and a card.

Media and folders of this machine are not sent. `omnidata score hf://ORG/NAME` scores the answers
again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from omnidata.analysis.model_card import card_text, eval_results
from omnidata.errors import RunError
from omnidata.loaders.fetch_plan import SOURCE
from omnidata.loaders.upload import Upload, check_name, upload
from omnidata.run.run_files import Run, read_run
from omnidata.run.run_info import ANSWERS, INFO, RESULTS, SCORES, read_info
from omnidata.storage import open_own, read_json

_SNAPSHOT: Final = re.compile(r"/datasets--([\w.-]+?)--([\w.-]+)/snapshots/([0-9a-f]{40})(/.*)?$")
_HUB: Final = re.compile(r"hf://([\w.-]+/[\w.-]+)@[0-9a-f]{40}")
_OK: Final = b'"delivery":"ok"'

_INTRO: Final = """# {model} on {task}

A run of [omnidata](https://pypi.org/project/omnidata/) on {task}: the answers of the model
(`{answers}`), their scores by the profile `{profile}` (`{scores}`, `{results}`), and the settings
(`{info}`). The media are not included. Data: {data}; SHA-256 of the annotations: `{fingerprint}`.

Score the answers again: `omnidata score hf://{name}`"""


def push_run(
    folder: Path,
    name: str,
    *,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> Upload:
    """Push a run folder of `omnidata evaluate`.

    Args:
        folder: of a finished and scored run.
        name: "ORG/NAME" on the Hub.
        private: create a private dataset.
        pull_request: open a pull request.
        dry_run: send nothing.

    Raises:
        UsageError: the name is invalid, or another repository has it.
        RunError: there is no run, or a file is missing, broken or a link.
        DataError: see `omnidata.loaders.upload.upload`.
    """
    check_name(name)
    recorded = read_info(folder)
    data = str(recorded.get("data") or "")
    public = place_of(data)
    info = {**_without_places(recorded), "data": public or None}
    if merged := info.get("merged"):
        info["merged"] = [Path(part).name for part in merged]
    run = replace(read_run(folder), settings=info)
    files = {name: _read_file(folder / name) for name in (ANSWERS, SCORES, RESULTS)}
    server = str((recorded.get("model_settings") or {}).get("base_url") or "")
    places = {data: b"DATA", server: b"SERVER", urlsplit(server).netloc: b"SERVER"}
    files[ANSWERS] = _hide_places(files[ANSWERS], places)
    files[INFO] = json.dumps(info, indent=1).encode() + b"\n"
    hub = _HUB.match(public)
    card = _card(run, name, public, {run.task: hub[1]} if hub else {})
    files["README.md"] = card.encode("utf-8", "backslashreplace")
    if hub:
        files[f".eval_results/{run.task}.yaml"] = eval_results(run, hub[1]).encode()
    return upload(
        name,
        files,
        f"{run.task}: {run.name}, by omnidata push",
        is_ours=lambda paths: {INFO, RESULTS} <= set(paths) or set(paths) <= {"README.md"},
        stale=lambda path: False,
        private=private,
        pull_request=pull_request,
        dry_run=dry_run,
    )


def _read_file(path: Path) -> bytes:
    try:
        with open_own(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise RunError(
            "a file of the run is missing",
            where=str(path),
            expected=f"{ANSWERS}, {SCORES} and {RESULTS}",
            remedy="restore the file, or evaluate again",
        ) from None


def place_of(data: str) -> str:
    """Return the public address of the data in a folder; empty if it is unknown.

    Examples:
        >>> sha = "0" * 40
        >>> place_of(f"/c/hub/datasets--openbmb--CAGUI/snapshots/{sha}/CAGUI_agent")[-22:]
        '0000000000/CAGUI_agent'
        >>> place_of("/home/me/data")
        ''
    """
    if found := _SNAPSHOT.search(data):
        return f"hf://{found[1]}/{found[2]}@{found[3]}{found[4] or ''}"
    source = read_json(Path(data).parent / SOURCE) if data else {}
    place = f"{source.get('id')}@{source.get('commit')}"
    # The folder of a snapshot has no unpacked archives, and all files.
    files = source.get("files") or []
    differs = source.get("only") or any("state" in each for each in files)
    return place if _HUB.fullmatch(place) and not differs else ""


def _without_places(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the server's address and without folders of files in options."""
    shown = {name: value for name, value in info.items() if name != "prompt_texts"}
    for key in ("options", "model_options"):
        if options := info.get(key):
            shown[key] = {name: _name_of(value) for name, value in options.items()}
    if settings := info.get("model_settings"):
        shown["model_settings"] = {k: v for k, v in settings.items() if k != "base_url"}
    return shown


def _name_of(value: Any) -> Any:
    """Return the file name of a path, and any other value as it is.

    Examples:
        >>> _name_of("/home/me/system.txt"), _name_of("~/system.txt"), _name_of("norm1000")
        ('system.txt', 'system.txt', 'norm1000')
    """
    if not isinstance(value, str) or not value:
        return value
    is_path = Path(value).is_absolute() or value.startswith(("~", "./", "../"))
    return Path(value).name if is_path or (os.sep in value and Path(value).exists()) else value


def _hide_places(answers: bytes, places: Mapping[str, bytes]) -> bytes:
    """Return the lines of answers without folders and addresses in messages of errors.

    Args:
        answers: the lines.
        places: folder or address -> its replacement.
    """
    hidden = {
        json.dumps(place)[1:-1].encode(): shown
        for place, shown in places.items()
        if len(place) > len(os.sep)
    }
    lines = answers.split(b"\n")
    for number, line in enumerate(lines):
        if _OK not in line:
            for place, shown in hidden.items():
                line = line.replace(place, shown)
            lines[number] = line
    return b"\n".join(lines)


def _card(run: Run, name: str, public: str, datasets: Mapping[str, str]) -> str:
    metadata = {
        "tags": ["omnidata", run.task],
        "configs": [
            {"config_name": config, "data_files": path}
            for config, path in (("answers", ANSWERS), ("scores", SCORES))
        ],
    }
    intro = _INTRO.format(
        model=run.name,
        task=run.task,
        answers=ANSWERS,
        scores=SCORES,
        results=RESULTS,
        info=INFO,
        profile=run.profile,
        data=public or "not published, or unknown",
        fingerprint=run.fingerprint,
        name=name,
    )
    return card_text([run], datasets, metadata=metadata, intro=intro)
