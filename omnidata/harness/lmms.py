"""Every task as a task of lmms-eval: `omnidata harness lmms TASK DATA DIR` writes its files.

`lmms_eval --include_path DIR --tasks omnidata_TASK` finds them. The prefix `omnidata_` keeps names
apart from built-in tasks, which would silently win. The rows that lmms-eval reads are ids; prompts,
media and verdicts are made here, in its process. Each metric of a row holds the id of its step, so
`omnidata score --from lmms-eval` can pair the log's answers with steps.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from PIL import Image

from omnidata import media
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import RATE, RenderedPart, render
from omnidata.errors import DataError, RunError, UsageError
from omnidata.files import read_settings
from omnidata.harness.bench import Bench, Judged
from omnidata.jsontext import encode
from omnidata.run.logs.lmms_eval import FAILED
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.types import OUTCOMES, Delivery, GenerationParams, Step

PREFIX: Final = "omnidata_"
_WHOLE: Final = Capabilities(video="native")
_SUFFIXES: Final = {"video/quicktime": ".mov", "video/x-matroska": ".mkv"}
_FUNCTIONS: Final = (
    *("doc_to_visual", "doc_to_text", "doc_to_messages", "doc_to_target", "process_results"),
)


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a task of lmms-eval.

    Attributes:
        name: name of lmms-eval's task.
        folder: for `--include_path`.
        steps: number of rows.
        metrics: names of the metrics.
    """

    name: str
    folder: Path
    steps: int
    metrics: Sequence[str]


def write(
    name: str, data: Path, out: Path, *, profile: str | None, options: Mapping[str, str]
) -> Written:
    """Write the files of a task of lmms-eval.

    Args:
        name: of the task.
        data: its data, which stay where they are.
        out: the folder for `--include_path`; files of other tasks in it are left alone.
        profile: the scoring rules; the task's default if None.
        options: as given with `-T key=value`.

    Raises:
        UsageError: no such task, option or profile, or answers that lmms-eval cannot ask for.
        DataError: the data cannot be read.
        RunError: the folder cannot be written.
    """
    bench = Bench.load(name, str(data), profile, options)
    task, steps = bench.task, bench.source.steps
    if not steps:
        raise DataError("there is no step", where=str(data), expected=f"data of {name}")
    if task.special_tokens or task.conversation(steps[0], [])[-1].role == "assistant":
        raise UsageError(
            "the answer begins in the prompt, or is made of special tokens",
            where=f"omnidata harness lmms {name}",
            expected="prompts that lmms-eval can send",
            remedy="drop -T dialect, or use `omnidata evaluate`",
        )
    stem = PREFIX + name.replace("-", "_").replace(".", "_")
    metrics = list(bench.profile.columns)
    setup = {
        "task": name,
        "data": str(data.absolute()),
        "profile": bench.profile.name,
        "options": dict(options),
        "prompt_hash": task.prompt_hash,
        "dataset_fingerprint": bench.source.fingerprint,
    }
    rows = out / f"{stem}.jsonl"
    files = {
        rows: b"".join(encode({"sample_id": step.sample_id}) + b"\n" for step in steps),
        out / f"{stem}.json": encode(setup) + b"\n",
        out / f"{stem}.py": _code(name, stem, metrics).encode(),
        out / f"{stem}.yaml": _yaml(stem, rows.absolute(), metrics, task.stop).encode(),
    }
    with wrap_os_error(out):
        out.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            with atomic_write(path) as file:
                file.write(content)
    return Written(stem, out, len(steps), metrics)


def _code(name: str, stem: str, metrics: Sequence[str]) -> str:
    lines = [
        f'"""The task {name} of omnidata for lmms-eval; `omnidata harness lmms` wrote it."""',
        "from pathlib import Path",
        "from omnidata.harness.lmms import LmmsTask",
        f'_task = LmmsTask(Path(__file__).with_name("{stem}.json"))',
        *(f"{function} = _task.{function}" for function in _FUNCTIONS),
        *(f"total_{number} = _task.total({metric!r})" for number, metric in enumerate(metrics)),
    ]
    return "\n".join(lines) + "\n"


def _yaml(stem: str, rows: Path, metrics: Sequence[str], stop: Sequence[str]) -> str:
    """Return the YAML for lmms-eval as JSON, which needs no quoting rules."""
    usual = GenerationParams()
    generation = {
        "max_new_tokens": usual.max_new_tokens,
        "temperature": usual.temperature,
        "do_sample": False,
        "until": list(stop),  # else lmms-eval ends answers at a blank line
    }
    lines = [
        f"task: {stem}",
        "dataset_path: json",
        f"dataset_kwargs: {json.dumps({'data_files': {'test': str(rows)}})}",
        "test_split: test",
        "output_type: generate_until",
        *(f"{function}: !function {stem}.{function}" for function in _FUNCTIONS),
        f"generation_kwargs: {json.dumps(generation)}",
        "metric_list:",
    ]
    for number, metric in enumerate(metrics):
        lines += [
            f"  - metric: {json.dumps(metric)}",
            f"    aggregation: !function {stem}.total_{number}",
            "    higher_is_better: true",
        ]
    return "\n".join([*lines, "metadata:", "  version: 1.0"]) + "\n"


@cache
def _bench(setup: Path) -> Bench:
    said = json.loads(read_settings(setup))
    bench = Bench.load(said["task"], said["data"], said["profile"], said["options"])
    for key, value, what in (
        ("prompt_hash", bench.task.prompt_hash, "prompts"),
        ("dataset_fingerprint", bench.source.fingerprint, "data"),
    ):
        if said[key] != value:
            raise RunError(
                f"the {what} have changed",
                where=str(setup),
                expected=f"the {key} {said[key][:12]}; it is {value[:12]}",
                remedy=f"write the files again: omnidata harness lmms {said['task']} DATA "
                f"{setup.parent}",
            )
    return bench


@cache
def _clips() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="omnidata-lmms-")


@dataclass(frozen=True, slots=True)
class LmmsTask:
    """The functions of a task of lmms-eval; nothing is read before one is called.

    Attributes:
        setup: the file that `write` wrote.
    """

    setup: Path

    def _step(self, doc: Mapping[str, Any]) -> Step:
        return _bench(self.setup).steps[doc["sample_id"]]

    def _parts(self, doc: Mapping[str, Any]) -> list[tuple[str, RenderedPart]]:
        conversation = _bench(self.setup).task.conversation(self._step(doc), [])
        messages, _ = render(conversation, _WHOLE)
        return [(message.role, part) for message in messages for part in message.parts]

    def doc_to_messages(self, doc: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the prompt for models that take a conversation: parts in the task's order."""
        messages: list[dict[str, Any]] = []
        for role, part in self._parts(doc):
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": []})
            if part.kind == "text":
                content = {"type": "text", "text": part.text}
            else:
                content = {"type": part.kind, "url": _decode(part)}
            messages[-1]["content"].append(content)
        return messages

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        """Return the media, for models that take them before the text."""
        return [_decode(part) for _, part in self._parts(doc) if part.kind != "text"]

    def doc_to_text(self, doc: Mapping[str, Any]) -> str:
        """Return all texts of the prompt, for models that take media apart."""
        return "\n\n".join(part.text for _, part in self._parts(doc) if part.kind == "text")

    def doc_to_target(self, doc: Mapping[str, Any]) -> str:
        """Return the right answer; empty where there is none."""
        right = _bench(self.setup).task.target(self._step(doc))
        return right.text if right else ""

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Return the verdict on an answer, the same under every metric, for `total`."""
        bench, step = _bench(self.setup), self._step(doc)
        text: Any = results
        while isinstance(text, list | tuple):
            text = text[0] if text else ""
        failed = text.startswith(FAILED)
        delivery: Delivery = "api_error" if failed else "ok"
        verdict = bench.profile.judge(step, text, self._receipt(step), delivery)
        values = dict(zip(bench.profile.values, verdict.values, strict=True))
        record = {"sample_id": step.sample_id, "outcome": verdict.outcome, **values}
        return dict.fromkeys(bench.profile.columns, record)

    def _receipt(self, step: Step) -> Mapping[str, Any]:
        conversation = _bench(self.setup).task.conversation(step, [])
        if not any(part.size for message in conversation for part in message.parts):
            return {}
        return render(conversation, _WHOLE)[1]

    def total(self, metric: str) -> Callable[[Sequence[Mapping[str, Any]]], float | None]:
        """Return the function that computes a metric from the records of all answers."""

        def aggregate(records: Sequence[Mapping[str, Any]]) -> float | None:
            bench = _bench(self.setup)
            judged = {
                record["sample_id"]: Judged(
                    record["outcome"], {name: record[name] for name in bench.profile.values}
                )
                for record in records
                if record["outcome"] in OUTCOMES
            }
            return bench.overall(judged).get(metric)

        return aggregate


def _decode(part: RenderedPart) -> Any:
    if part.kind == "image":
        with Image.open(io.BytesIO(part.data)) as picture:
            return picture.convert("RGB")
    if part.kind == "audio":
        held = media.InMemoryMedia("audio", Path(), part.role, content=part.data)
        return {"array": media.samples(held, rate=RATE), "sampling_rate": RATE}
    path = Path(_clips().name) / (part.sha256 + _SUFFIXES.get(part.mime, ".mp4"))
    if not path.exists():
        path.write_bytes(part.data)
    return str(path)
