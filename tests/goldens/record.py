"""What is frozen of a world: steps, prompts, targets, verdicts, tables, files.

Everything is asked through `Asking` and the command line in this process. Nothing here knows in
which module a thing is defined.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from omnidata.actions import Box, Point
from omnidata.cli import main
from omnidata.errors import OmnidataError, UsageError
from omnidata.tasks.observation import OPTIONS
from omnidata.types import Conversation, LoadedDataset, MediaRef, Step
from tests.goldens.asking import Asking
from tests.goldens.worlds import WORLDS
from tests.metrics.mutations import mutants

ANSWERS = 1200
"""Mutated answers per world; each is judged by every profile in every unit."""

JUDGED = 40
"""Steps of a world that answers are spread over."""

EDGED = 6
"""Steps whose targets' edges are tried."""

FORMATS = ("trl", "llamafactory", "swift", "qwen-vl")
FEW_ANSWERS = 240
"""The same of worlds whose readers and rules other worlds already try at length."""

FEW = frozenset(
    ("gui-odyssey", "mind2web", "online-mind2web", "androidworld", "osworld-g", "cagui-grounding")
) | {"omnigui-idm", "omnigui-critic", "step-critic", "trajectory-critic"}

WRITTEN = frozenset(WORLDS) - {"omnigui"}
"""Worlds small enough to be converted (if the data are their own), exported and run."""

Record = dict[str, Any]
_BEFORE, _AFTER = 60, 160
_VOLATILE = frozenset(
    ("created", "finished", "started", "timings", "latency_s", "versions", "platform", "data")
)
FIXED = (
    '{"action_type": "TAP", "coordinate": [500, 500]}', '{"action_type": 7, "text": "hello"}',
    '```json\n{"action_type": "SWIPE_UP", "start_coordinate": [5, 9], "end_coordinate": [5, 1]}```',
    '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [50, 80]}}'
    "\n</tool_call>",
    "pyautogui.click(x=0.5, y=0.5)", "pyautogui.write('hello')", "pyautogui.hotkey(['ctrl', 's'])",
    "```python\npyautogui.click(100, 60)\n```", "```DONE```", "WAIT", "FAIL",
    "pyautogui.scroll(-3)",
    '{"POINT": [500, 500]}', '{"STATUS": "finish"}', '{"TYPE": "7:30"}', '{"PRESS": "BACK"}',
    '{"POINT": [500, 500], "to": "up"}', "click(0.5, 0.5)", "(0.5, 0.5)", "[0.1, 0.1, 0.9, 0.9]",
    "<|box_start|>(10, 20)<|box_end|>", "The answer is [500, 500].", "A", "Answer: B", "A, C, B",
    "Yes", "No", "True", "success", "I cannot tell.", "",
    '{"action_type": "click", "x": 45, "y": 100}', '{"action": "click", "rect": [10, 20, 30, 40]}',
    '{"function": "click_input", "args": {"button": "left", "double": false}, "rect": [1, 2, 3, 4]'
    "}",
)  # fmt: skip


def records(world: str, data: Path, old: Sequence[Record] = ()) -> Iterator[Record]:
    """Everything that is frozen of a world, in an order that does not change.

    Args:
        world: its name.
        data: its dataset.
        old: what was frozen, whose answers are tried again; without it answers are made.
    """
    name = WORLDS[world][0]
    asking = Asking(name)
    source = asking.load(data)
    yield from _steps(source, data)
    if not source.steps:
        return
    for options in _choices(asking):
        asked = Asking(name, options)
        try:
            read = asked.load(data, check_media=False)
        except OmnidataError as error:
            yield {"kind": "refused", "options": options, "error": type(error).__name__}
        else:
            yield from prompts(asked, read, options)
    yield from _right(asking, source)
    frozen = next((record["texts"] for record in old if record["kind"] == "answers"), None)
    given = _answers(world, asking, source) if frozen is None else frozen
    yield {"kind": "answers", "texts": given}
    yield from _verdicts(asking, source, given)
    yield from _tables(name, data, source, given)
    yield from _offline(name, data)
    yield from _edges(asking, source, old)
    if world in WRITTEN:
        if asking.has_own_data:
            yield from _repository(name, data)
        yield from _training_rows(name, data)
        yield from _run(name, data)


def call(*argv: str | Path) -> str:
    """What a verb prints on stdout; its exit code stands before it where it is not 0."""
    out = io.StringIO()
    code = 0
    kept, sys.argv = sys.argv, ["omnidata", *map(str, argv)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.argv = kept
    return out.getvalue() if not code else f"exit {code}\n{out.getvalue()}"


def _steps(source: LoadedDataset, data: Path) -> Iterator[Record]:
    codes = Counter(finding.code for finding in source.findings)
    yield {
        "kind": "source",
        "findings": dict(sorted(codes.items())),
        "skipped": source.skipped,
        "rows": len(source.row_ids),
        "tags": list(source.tags),
        "roles": dict(source.roles),
    }
    for step in source.steps:
        yield {
            "kind": "step",
            "id": step.sample_id,
            "episode": [step.episode_id, step.step_index, step.num_steps],
            "instruction": step.instruction,
            "screen": list(step.screen),
            "media": {role: _medium(ref, data) for role, ref in step.media.items()},
            "tags": dict(step.tags),
        }


def _medium(ref: MediaRef | None, data: Path) -> Any:
    return ref and [ref.kind, ref.path.replace(str(data), "DATA")]


def _choices(asking: Asking) -> Iterator[dict[str, str]]:
    """No option, then every other value of every option, one at a time.

    But for what is shown of accessibility trees, which these worlds do not have for every step.
    """
    yield {}
    for option, values in asking.allowed.items():
        if option in OPTIONS:
            continue
        yield from ({option: value} for value in values[1:])


def prompts(asking: Asking, source: LoadedDataset, options: Mapping[str, str]) -> Iterator[Record]:
    said: list[Any] = []
    found: dict[str, str] = {}
    for number, step in enumerate(source.steps):
        past = None
        if asking.shows_predictions:  # the right answers, read back
            target = asking.target(step)
            said = said[: step.step_index]
            past = list(said)
            said.append(asking.action(step, target.text) if target else None)
        shown = _shown(asking.conversation(step, past))
        found[step.sample_id] = _hash(shown)
        if number == 0:
            yield {"kind": "prompt", "options": dict(options), "id": step.sample_id, "is": shown}
    yield {
        "kind": "prompts",
        "options": dict(options),
        "hash": asking.prompt_hash,
        "shown": _hash(found),
        "each": dict(list(found.items())[:60]),
    }


def _shown(conversation: Conversation) -> list[Any]:
    return [
        [
            message.role,
            [
                part.text
                if part.media is None
                else [part.kind, part.role, Path(part.media.path).name]
                for part in message.parts
            ],
        ]
        for message in conversation
    ]


def _right(asking: Asking, source: LoadedDataset) -> Iterator[Record]:
    for space in (None, "px", "norm1000", "rel"):
        texts: dict[str, str | None] = {}
        with contextlib.suppress(UsageError):  # a task whose answers know no such unit
            for step in source.steps:
                target = asking.target(step, space=space)
                texts[step.sample_id] = target.text if target else None
        yield {"kind": "targets", "space": space, "texts": texts}
    for baseline in asking.baselines:
        yield {
            "kind": "baseline",
            "name": baseline,
            "texts": _hash(asking.baseline_answers(baseline, source.steps)),
        }


def _answers(world: str, asking: Asking, source: LoadedDataset) -> list[str]:
    """The right answers of the steps, answers in many dialects, and both bent out of shape."""
    right = {t.text for step in source.steps for t in [asking.target(step)] if t}
    known = sorted([*right, *FIXED])
    return [
        *known[:200],
        *mutants(known, FEW_ANSWERS if world in FEW else ANSWERS, seed=len(world)),
    ]


def _verdicts(asking: Asking, source: LoadedDataset, answers: Sequence[str]) -> Iterator[Record]:
    steps = _spread(source.steps)
    for space in asking.allowed.get("coordinates", ("",)):
        asked = Asking(asking.name, {"coordinates": space} if space else {})
        for rule in asked.rules:
            for number, text in enumerate(answers):
                step = steps[number % len(steps)]
                yield {
                    "kind": "verdict",
                    "as": [space, rule, number, step.sample_id],
                    "is": asked.verdict(step, text, rule),
                }


def _edges(asking: Asking, source: LoadedDataset, old: Sequence[Record]) -> Iterator[Record]:
    """Verdicts on taps at the corner of the screen, and on, in and beyond the edges of targets."""
    options = {"coordinates": "px"} if "coordinates" in asking.allowed else {}
    asked = Asking(asking.name, options)
    steps = {step.sample_id: step for step in source.steps}
    first = asked.rules[0]
    edges = [record["as"] for record in old if record["kind"] == "edge"]
    taps = (
        [(own, text) for own, rule, text in edges if rule == first] if old else _taps(asked, steps)
    )
    for own, text in taps:
        for rule in asked.rules:
            yield {
                "kind": "edge",
                "as": [own, rule, text],
                "is": asked.verdict(steps[own], text, rule),
            }


def _taps(asking: Asking, steps: Mapping[str, Step]) -> Iterator[tuple[str, str]]:
    """Answers that tap about the edges of targets, with the steps that they are to."""
    boxed = [step for step in steps.values() if step.action and _boxes(step)]
    for step in boxed[:EDGED]:
        box = _boxes(step)[0]
        middle = Point((box.left + box.right) / 2, (box.top + box.bottom) / 2, "px")
        places = [Point(0, 0, "px"), Point(0, middle.y, "px"), Point(middle.x, 0, "px")]
        for beyond in (-1, 0, 1):
            across = (box.left - beyond, box.right + beyond)
            down = (box.top - beyond, box.bottom + beyond)
            places += [Point(x, middle.y, "px") for x in across]
            places += [Point(middle.x, y, "px") for y in down]
        for place in places:
            text = asking.tap_answer(step, place)
            if text is None:
                return
            yield step.sample_id, text


def _boxes(step: Step) -> list[Box]:
    places = step.action.start if step.action else ()
    return [place for place in places if isinstance(place, Box) and place.space == "px"]


def _spread(steps: Sequence[Step]) -> Sequence[Step]:
    return random.Random(0).sample(list(steps), min(JUDGED, len(steps)))


def _tables(
    name: str, data: Path, source: LoadedDataset, answers: Sequence[str]
) -> Iterator[Record]:
    """The results of right answers and bent ones, by every profile, as `score` prints them."""
    asking = Asking(name)
    lines = data.parent / "outputs.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        for number, step in enumerate(source.steps):
            target = asking.target(step)
            right = target.text if target and number % 3 else answers[number % len(answers)]
            if number % 11 != 10:
                row = {"sample_id": step.sample_id, "output": right}
                file.write(json.dumps(row) + "\n")
    for profile in asking.rules:
        out = data.parent / f"scored-{profile}"
        printed = call("score", name, data, lines, "--profile", profile, "--out", out, "--json")
        printed = printed.removeprefix("exit 1\n")  # some steps have no answer
        yield {
            "kind": "results",
            "profile": profile,
            "printed": json.loads(printed) if printed.startswith("{") else printed,
            "scores": _hash((out / "scores.jsonl").read_text(encoding="utf-8")),
        }


def _repository(name: str, data: Path) -> Iterator[Record]:
    home = data.parent
    call("convert", name, data, home / "repository", "--embed")
    for path in sorted((home / "repository").rglob("*.parquet")):
        table = pq.read_table(path)
        rows = [_unbyted(row) for row in table.to_pylist()]
        yield {
            "kind": "parquet",
            "file": drop_hashes(path.relative_to(home / "repository").as_posix()),
            "schema": table.schema.remove_metadata().to_string(),
            "rows": _hash(rows),
        }
    again = Asking(name).load(home / "repository")
    yield {"kind": "reloaded", "ids": [step.sample_id for step in again.steps]}


def _training_rows(name: str, data: Path) -> Iterator[Record]:
    for form in FORMATS:
        out = data.parent / f"export-{form}"
        printed = call(
            "export", name, data, out, "--format", form, "--split", "train=1", "--workers", "1"
        )
        lines = {
            path.name: [drop_hashes(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for path in sorted(out.glob("*.jsonl"))
        }
        yield {
            "kind": "export",
            "format": form,
            "failed": printed.startswith("exit"),
            "rows": lines,
        }


def _run(name: str, data: Path) -> Iterator[Record]:
    run = data.parent / "run"
    call("evaluate", name, data, "--model", "baseline:oracle", "--out", run)
    yield {"kind": "run", "files": sorted(path.name for path in run.iterdir() if path.is_file())}
    yield {"kind": "run.json", "is": drop_volatile(json.loads((run / "run.json").read_text()))}
    for file in ("predictions.jsonl", "scores.jsonl"):
        found = [drop_volatile(json.loads(line)) for line in (run / file).read_text().splitlines()]
        yield {"kind": file, "is": sorted(found, key=lambda line: str(line["sample_id"]))}
    yield {"kind": "results.json", "is": json.loads((run / "results.json").read_text())}


def _offline(name: str, data: Path) -> Iterator[Record]:
    """The results of what is scored without a model's texts."""
    if name == "osworld":
        yield {"kind": "offline", "printed": call("score", "osworld", data, "--json")}
    if name == "omnibench":
        orders = data.parent / "orders.jsonl"
        lines = [{"task_id": "1", "executed": ["A", "E"]}, {"task_id": "1", "executed": ["E"]}]
        for line in lines:
            orders.write_text(json.dumps(line) + "\n")
            for profile in ("omnibench-paper", "omnibench-release"):
                printed = call("score", "omnibench", data, orders, "--profile", profile, "--json")
                yield {"kind": "offline", "profile": profile, "printed": printed}


def make_runs(name: str, data: Path, into: Path) -> None:
    """Two runs of a world, as this version writes them, without the place of the data."""
    into.mkdir(parents=True)
    models = [f"baseline:{known}" for known in Asking(name).baselines[:2]]
    for model in models:
        run = into / model.partition(":")[2]
        call("evaluate", name, data, "--model", model, "--out", run)
        info = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**info, "data": "data"}, indent=1))
        (run / ".lock").unlink()


def old_runs(name: str, data: Path, runs: Sequence[Path], folder: Path) -> Iterator[Record]:
    """What is made of runs that an earlier version left: tables, a comparison, a resumed run."""
    copies = [Path(shutil.copytree(run, folder / "old" / run.name)) for run in runs]
    yield {"kind": "old report", "is": _printed(call("report", *copies, "--json"))}
    if len(copies) == 2:
        yield {
            "kind": "old compare",
            "is": _printed(call("compare", *copies, "--data", data, "--json")),
        }
    for copy in copies:
        again = call("score", name, data, copy, "--out", folder / "again", "--json")
        yield {"kind": "old score", "run": copy.name, "is": _printed(again)}
        model = f"baseline:{copy.name}"
        resumed = call("evaluate", name, data, "--model", model, "--out", copy, "--json")
        yield {"kind": "old resumed", "run": copy.name, "is": _printed(resumed)}


def _printed(text: str) -> Any:
    """What was printed, without places that change."""
    text = re.sub(r"/[^\s\"]*/", "", text)
    try:
        return drop_volatile(json.loads(text))
    except ValueError:
        return text


def _unbyted(value: Any) -> Any:
    """A row without the bytes of its media and their number: encoders differ between machines."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if "sha256" not in key and key != "bytes"}
        return {key: _unbyted(item) for key, item in kept.items()}
    return [_unbyted(item) for item in value] if isinstance(value, list) else value


def drop_hashes(line: str) -> str:
    """A training row without the hashes in its media's names."""
    return re.sub(r"[0-9a-f]{16,64}", "HASH", line)


def drop_volatile(value: Any) -> Any:
    """A JSON value without what changes from run to run."""
    if isinstance(value, dict):
        return {key: drop_volatile(item) for key, item in value.items() if key not in _VOLATILE}
    return [drop_volatile(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def differences(old: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Return what differs between two lists of records, a record or a row of it each.

    A row is printed with what the record is of, its step and its answer; of a record without rows
    all that stands from a little before the first difference on.
    """
    found = []
    answers: dict[str, Sequence[Any]] = {}
    for before, after in zip_longest(old, new):
        if before and before["kind"] == "answers" and "rows" in before:
            answers[before["of"]] = before["rows"]
        one, two = encode(before), encode(after)
        if _read(one) == _read(two):
            continue
        record = before or after or {}
        rows = _row_pairs(before, after)
        if rows is None:
            same = sum(
                1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))
            )
            shown = slice(max(0, same - _BEFORE), same + _AFTER)
            found.append(f"  {record.get('kind')}\n- {one[shown]}\n+ {two[shown]}")
            continue
        about = answers.get(record.get("of", ""), ())[:: record.get("stride", 1)]
        for number, (was, now) in enumerate(rows):
            if _read(was) != _read(now):
                row = about[number] if number < len(about) else number
                head = f"  {record['kind']} {json.dumps(record.get('as'))} {row!r:.300}"
                found.append(f"{head}\n- {was:.400}\n+ {now:.400}")
    return found


def _row_pairs(before: Record | None, after: Record | None) -> list[tuple[str, str]] | None:
    """The rows of two records side by side; None where they have none, or differ in more.

    Of a history the prompts are compared: the action that they tell only explains a difference.
    """
    if not before or not after or before["kind"] == "answers":
        return None
    one, two = before.get("rows"), after.get("rows")
    if one is None or two is None or len(one) != len(two):
        return None
    if {**before, "rows": ()} != {**after, "rows": ()}:
        return None
    pairs = list(zip(one, two, strict=True))
    if before["kind"] == "history":
        pairs = [(a, a if a[-1] == b[-1] else b) for a, b in pairs]
    return [(json.dumps(a), json.dumps(b)) for a, b in pairs]


def _read(line: str) -> Any:
    """A record without the last digits of its floats, which are another processor's own."""
    return json.loads(line, parse_float=lambda text: float(f"{float(text):.13g}"))


def encode(record: Record | None) -> str:
    """A record as a line of JSON; lone surrogates are escaped."""
    return json.dumps(record, sort_keys=True, default=str)
