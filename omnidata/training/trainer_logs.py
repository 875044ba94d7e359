"""Predictions that trainers write on an export, paired with its rows.

LLaMA-Factory (`do_predict`, `scripts/vllm_infer.py`) writes `prompt`, `predict` and `label`,
ms-swift (`swift infer --result_path`) `response`, `labels`, `messages` and the media. Neither keeps
the ids of the rows: the n-th line is the answer to the n-th row, and is checked against it. verl
(`trainer.validation_data_dir`) writes `gts`, which is the id in rows of ours, and the table of
TRL's `GRPOTrainer` (`log_completions`) has the column `sample_id`, which our reward adds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from omnidata.adapters.media_budget import parts_of
from omnidata.errors import DataError, MediaError, PredictionError, UsageError, plural
from omnidata.files import WHOLE
from omnidata.jsontext import encode, json_file
from omnidata.loaders.row_files import Line
from omnidata.loaders.steps import Positions, select_steps
from omnidata.media import image_size
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import BadLines, answer_rows, kind_of, row_of, sift
from omnidata.run.logs import recognise
from omnidata.run.selection import SPLITS
from omnidata.tasks.asking import Asking
from omnidata.training.examples import read
from omnidata.training.export_files import REPORT
from omnidata.training.formats import Format, formats, get_format
from omnidata.types import PLACE, LoadedDataset, Step

_ROWS: Final = "rows of `omnidata export`, a file or its folder"
_TOKEN: Final = re.compile(r"<\|[^<>|]*\|>|</s>|<eos>|<end_of_turn>|<think>\s*</think>")
"""Tokens that chat templates write around an answer."""
_ROLES: Final = {"human": "user", "gpt": "assistant"}
_LISTS: Final = ("images", "videos", "audios")
_MEDIUM: Final = re.compile("<(?:image|video|audio)>")
_FOUND: Final = 3
"""The number of mismatched prompts whose right row is looked up for the message."""


def trainers() -> dict[str, Format]:
    """Return the formats whose trainers' predictions can be scored, by the name for `--from`."""
    return {form.log.trainer: form for form in formats().values() if form.log}


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    sample_id: str
    label: str | None  # the right answer; None where the row has a prompt alone
    texts: Sequence[str]  # of the last turn of the prompt, without blanks
    media: Sequence[str]  # names of the files, without folders
    own: Mapping[str, Any]

    def is_prompt_of(self, texts: str | None, media: Sequence[str] | None) -> bool:
        return (texts is None or all(text in texts for text in self.texts)) and (
            media is None or [*media] == [*self.media]
        )


class TrainerLog:
    """Predictions of a trainer on an export.

    Args:
        trainer: one of `trainers()`.
        path: of the predictions.
        rows: the file of rows that the trainer predicted on, or the folder of the export, whose
            split is found by the predictions.

    Raises:
        UsageError: no rows are named, or several files fit.
        PredictionError: a file cannot be read, or the predictions are not of these rows.
    """

    def __init__(self, trainer: str, path: Path, rows: Path | None) -> None:
        if rows is None:
            raise UsageError(
                f"predictions of {trainer} have no ids",
                where=f"--from {trainer}",
                expected=f"--rows EXPORT: {_ROWS}",
                remedy="add --rows with the file that the trainer predicted on",
            )
        self._trainer, self._path = trainer, path
        form = trainers()[trainer]
        assert form.log
        self._suffix, self._columns = form.suffix, form.log
        folder = rows if rows.is_dir() else rows.parent
        report = json_file(folder / REPORT, WHOLE) if (folder / REPORT).is_file() else None
        self.report: Mapping[str, Any] = report if isinstance(report, dict) else {}
        self.rows = self._find_rows(rows)
        if path.exists() and self.rows.samefile(path):
            raise UsageError(
                "these are the rows themselves, with the targets as answers",
                where=str(path),
                expected=f"predictions of {trainer} on them",
            )

    def settings(self, task: str) -> Mapping[str, Any]:
        """Return the task options of the export, as in `run.json`.

        Raises:
            PredictionError: the export is of another task.
        """
        made = self.report.get("task")
        if made not in (None, task):
            raise PredictionError(
                f"the export is of {made}",
                where=str(self.rows),
                expected=f"an export of {task}",
                remedy=f"omnidata score {made} DATA ...",
            )
        return {"task": task, "options": dict(self.report.get("task_options") or {})}

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        """Return the steps of the rows, in the order of the data.

        Raises:
            PredictionError: the export was made of other data.
        """
        places = Positions(source.steps)
        ids = {row.sample_id for row in self._read_rows(self.rows)}
        unknown = min((name for name in ids if name not in places), default=None)
        fingerprint = self.report.get("dataset_fingerprint", source.fingerprint)
        if unknown is not None or fingerprint != source.fingerprint:
            what = "has other annotations" if unknown is None else f"has the step {unknown}"
            raise PredictionError(
                f"the export was made of other data: it {what}",
                where=str(self.rows),
                expected="the data that were exported",
                remedy="score against the exported data, or export again and predict on the "
                "new rows",
            )
        return select_steps(source.steps, sorted(places[name] for name in ids))

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        """Yield the answers; lines without one are passed to `bad`."""
        found: Iterator[tuple[str, str | None, Mapping[str, Any]]]
        rows = self._read_rows(self.rows)
        if self._columns.sample_id:
            receipts = {row.sample_id: _receipt_of(row.own) for row in rows}
            answers = sift(self._lines(), self._answer, bad)
            found = ((name, text, receipts.get(name, {})) for name, text in answers)
        else:
            found = (
                (row.sample_id, text, self._receipt(row))
                for line, row in zip(self._lines(), rows, strict=True)
                for _, text in sift([line], self._answer, bad)
            )
        for sample_id, text, receipt in found:
            yield Prediction(
                sample_id=sample_id,
                output=text,
                delivery="ok" if text is not None else "api_error",
                error="" if text is not None else f"{self._trainer} wrote no answer",
                receipt=dict(receipt),
            )

    # The file of rows that the predictions belong to.

    def _find_rows(self, rows: Path) -> Path:
        by_id = bool(self._columns.sample_id)
        if not rows.is_dir():
            if not by_id:
                self._check(rows)
            return rows
        faults: dict[Path, PredictionError] = {}
        files: list[Path] = []
        for path in (rows / f"{split}{self._suffix}" for split in SPLITS):
            if path.is_file():
                files.append(path)
                try:
                    (self._check_ids if by_id else self._check)(path)
                except PredictionError as error:
                    faults[path] = error
        if not files:
            raise UsageError(
                "the folder has no rows",
                where=f"--rows {rows}",
                expected=_ROWS,
                remedy="name the folder that `omnidata export` wrote",
            )
        fit = [path for path in files if path not in faults] or (files[:1] if by_id else [])
        if len(fit) > 1:
            raise UsageError(
                "the predictions may be of several files of rows: "
                + ", ".join(path.name for path in fit),
                where=f"--rows {rows}",
                expected="the file that the trainer predicted on",
                remedy=f"--rows {fit[0]}",
            )
        if fit:
            return fit[0]
        if len(files) == 1:
            raise faults[files[0]]
        reasons = "; ".join(f"{path.name}: {error.what}" for path, error in faults.items())
        raise PredictionError(
            f"the predictions are of none of the files of rows: {reasons}",
            where=str(self._path),
            expected="a line for each row of one of them, in its order",
            remedy="name the file that the trainer predicted on: --rows EXPORT/FILE",
        )

    def _check_ids(self, path: Path) -> None:
        names = {row.sample_id for row in self._read_rows(path)}
        line = next(self._lines(), None)
        row = line.row if line and isinstance(line.row, dict) else {}
        if str(row.get(self._columns.sample_id)) not in names:
            raise PredictionError("the first prediction is of no row", where=str(path))

    def _check(self, rows: Path) -> None:
        looked = 0
        lines = places = 0
        for line, row in zip_longest(self._lines(), self._read_rows(rows)):
            lines, places = lines + (line is not None), places + (row is not None)
            if line is None or row is None or not isinstance(line.row, dict):
                continue
            self._check_label(line, row)
            if not row.is_prompt_of(*_prompt_of(line.row)) and looked < _FOUND:
                looked += 1
                self._check_prompt(line, row, rows)
        if lines != places:
            raise PredictionError(
                f"there are {plural(lines, 'prediction')} and {plural(places, 'row')}: "
                f"line {min(lines, places) + 1} has no partner",
                where=f"{self._path} and {rows}",
                expected="a prediction for each row, in the order of the rows",
                remedy="predict on all rows of the file without max_samples, or name the file that "
                "the trainer predicted on; after max_samples a file beside it of its first rows",
            )

    def _check_label(self, line: Line, row: _Row) -> None:
        name = next((one for one in self._columns.label if line.row.get(one) is not None), "")
        label = line.row.get(name)
        if row.label is None or label is None or _is_label(label, row.label):
            return
        raise PredictionError(
            f"{name} is {str(label).strip():.100}, and the answer of the row is {row.label:.100}",
            where=f"{line.where} and {row.where}",
            expected="predictions in the order of the rows",
            remedy="name the file that the trainer predicted on; predict without shuffling, and "
            "with a cutoff_len that cuts no label",
        )

    def _check_prompt(self, line: Line, row: _Row, rows: Path) -> None:
        said = _prompt_of(line.row)
        for other in self._read_rows(rows):
            differs = other.texts != row.texts or other.media != row.media
            if differs and other.is_prompt_of(*said):
                raise PredictionError(
                    "the prompt of the prediction is that of another row",
                    where=f"{line.where} and {row.where}; it is {other.where}",
                    expected="predictions in the order of the rows",
                    remedy="predict again without shuffling",
                )

    # Lines and rows.

    def _lines(self) -> Iterator[Line]:
        return answer_rows(self._path, f"predictions as {self._trainer} writes them")

    def _read_rows(self, path: Path) -> Iterator[_Row]:
        for line in answer_rows(path, _ROWS):
            yield _row(row_of(line, _ROWS), line.where)

    def _answer(self, line: Line) -> tuple[str, str | None]:
        """Return the row's id, which is empty where rows are paired by place, and the text."""
        column, name = self._columns.answer, self._columns.sample_id
        expected, remedy = f"{column}: the model's text", ""
        row = row_of(line, expected)
        text, sample_id = _text_of(row.get(column)), row.get(name, "")
        if column not in row:
            what, remedy = f"there is no {column}", recognise(row)
        elif not isinstance(text, str | None):
            what = f"{column} is {kind_of(text)}, not a text"
        elif name and not (sample_id and isinstance(sample_id, str)):
            what, expected = f"there is no {name}", f"{name}: the id of the row"
            remedy = "predict on rows of `omnidata export`, with the reward beside them"
        else:
            return sample_id, text
        raise PredictionError(what, where=line.where, expected=expected, remedy=remedy)

    def _receipt(self, row: _Row) -> dict[str, Any]:
        chosen = self.report.get("options") or {}
        unit = (self.report.get("task_options") or {}).get("coordinates")
        if not any((chosen.get("sizing") or {}).values()) or unit in ("norm1000", "rel"):
            return {}
        try:
            form = get_format(chosen["format"]).answers
            example = read(encode(row.own), form, self.rows.parent)
            shown = (part for part in parts_of(example.prompt) if part.role == "screenshot")
            ref = next(part.media for part in shown if part.media)
            width, height = image_size(ref)
        except StopIteration:
            return {}
        except (MediaError, DataError) as error:
            raise PredictionError(
                f"the export has resized its pictures, and one cannot be opened: {error.what}",
                where=row.where,
                expected="the folder of the export, with its media",
                remedy="name the rows in the folder that `omnidata export` wrote",
            ) from None
        part = {"role": "screenshot", "kind": "image", "width": width, "height": height}
        return {"parts": [part]}


def _row(row: Mapping[str, Any], where: str) -> _Row:
    extra = row.get("extra_info")
    held = {**(extra if isinstance(extra, dict) else {}), **row}
    sample_id = held.get("sample_id") or held.get("ground_truth")
    turns = _turns(row)
    if not isinstance(sample_id, str) or not turns:
        raise PredictionError(
            "this is not a row of an export with a sample_id",
            where=where,
            expected=_ROWS,
            remedy="name the file that `omnidata export` wrote",
        )
    said = turns.pop() if turns[-1][0] == "assistant" else None
    last = next((text for role, text in reversed(turns) if role == "user"), "")
    texts = [squeezed for part in _MEDIUM.split(last) if (squeezed := _without_spaces(part))]
    return _Row(where, sample_id, said and said[1], texts, _media(row), held)


def _turns(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for column in ("messages", "prompt", "conversations", "completion"):
        listed = row.get(column)
        for turn in listed if isinstance(listed, list) else ():
            if isinstance(turn, dict):
                role = _ROLES.get(str(turn.get("from")), turn.get("role"))
                text = _text_of(turn.get("value", turn.get("content"))) or ""
                found.append((str(role), str(text)))
    return found


def _text_of(content: Any) -> Any:
    if isinstance(content, list) and content and all(isinstance(each, dict) for each in content):
        parts = [each.get("text", each.get("content")) for each in content]
        return "".join(part if isinstance(part, str) else "<image>" for part in parts)
    return content


def _media(row: Mapping[str, Any]) -> list[str]:
    found = []
    for name in _LISTS:
        for each in row.get(name) or ():
            path = each.get("path") if isinstance(each, dict) else each
            found.append(str(path).replace("\\", "/").rpartition("/")[2])
    return found


def _prompt_of(row: Mapping[str, Any]) -> tuple[str | None, Sequence[str] | None]:
    prompt = row.get("prompt", row.get("query"))
    if isinstance(row.get("messages"), list) and row["messages"]:
        prompt = "".join(text for _, text in _turns({"messages": row["messages"]}))
    media = _media(row) if any(row.get(name) for name in _LISTS) else None
    return _without_spaces(prompt) if isinstance(prompt, str) else None, media


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _is_label(said: Any, own: str) -> bool:
    text = said if isinstance(said, str) else json.dumps(said)
    plain = _without_spaces(_TOKEN.sub("", text))
    parts = [re.escape(_without_spaces(_TOKEN.sub("", part))) for part in own.split(PLACE)]
    return re.fullmatch(".*".join(parts), plain) is not None


def _receipt_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    with suppress(KeyError, TypeError, ValueError, RecursionError):
        found = json.loads(row["receipt"])
        return found if isinstance(found, dict) else {}
    return {}
