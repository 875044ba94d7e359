"""What trainers write when they predict on an export, scored by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.running import EXPORT, as_json, omnidata
from tests.trees import read_lines, write_lines

Line = dict[str, Any]
Writer = Callable[[Sequence[Line]], list[Line]]
Command = tuple[str | Path, ...]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight episodes of AndroidControl: a click on a place of its own, and a way back."""
    folder = tmp_path_factory.mktemp("control")
    rows = []
    for episode in range(8):
        for step in range(2):
            name = f"{episode}_{step}.png"
            Image.new("RGB", (108, 240), (episode * 20, step * 100, 7)).save(folder / name)
            click = {"action_type": "click", "x": 50 + episode, "y": 100}
            row = {"image_path": name, "goal": f"Go back {episode}", "episode_id": episode}
            row |= {"step_id": step, "width": 108, "height": 240}
            rows.append(row | {"action": {"action_type": "navigate_back"} if step else click})
    return write_lines(folder / "rows.jsonl", rows)


def export(data: Path, out: Path, form: str, *options: str) -> Path:
    split = ("--split", "train=1")
    omnidata(*EXPORT, "androidcontrol", data, out, "--format", form, *split, *options)
    return out


def llamafactory(rows: Sequence[Line]) -> list[Line]:
    """As `vllm_infer.py` decodes them: the template's tokens are gone, its line break is not."""
    lines = []
    for row in rows:
        *asked, said = row["messages"]
        prompt = "".join(f"{turn['role']}\n{turn['content']}\n" for turn in asked)
        prompt = prompt.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")
        lines.append(
            {"prompt": prompt, "predict": said["content"], "label": said["content"] + "\n"}
        )
    return lines


def swift(rows: Sequence[Line]) -> list[Line]:
    """As `swift infer --result_path` writes them: the answer is in the conversation too."""
    lines = []
    for row in rows:
        *asked, said = row["messages"]
        answer = {"role": "assistant", "content": said["content"]}
        images = [{"bytes": None, "path": f"/there/{name}"} for name in row["images"]]
        line = {"response": said["content"], "labels": said["content"], "logprobs": None}
        lines.append({**line, "messages": [*asked, answer], "images": images})
    return lines


WRITERS: dict[str, Writer] = {"llamafactory": llamafactory, "swift": swift}
LABELS = {"llamafactory": "label", "swift": "labels"}
ANSWERS = {"llamafactory": "predict", "swift": "response"}


@pytest.fixture(params=WRITERS)
def trainer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def exported(data: Path, tmp_path: Path, trainer: str) -> Path:
    return export(data, tmp_path / "export", trainer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "said.jsonl"


@pytest.fixture
def lines(exported: Path, trainer: str, path: Path) -> list[Line]:
    """Right answers to all rows of the export, which stand in the file."""
    made = WRITERS[trainer](read_lines(exported / "train.jsonl"))
    write_lines(path, made)
    return made


@pytest.fixture
def command(data: Path, exported: Path, trainer: str, path: Path) -> Command:
    return ("score", "androidcontrol", data, path, "--from", trainer, "--rows", exported)


def test_right_answers_on_an_export_are_right(
    lines: list[Line], command: Command, trainer: str, path: Path
) -> None:
    lines[3][ANSWERS[trainer]] = "no idea"
    write_lines(path, lines)
    *start, exported = command
    for rows in (exported, Path(exported) / "train.jsonl"):
        found = as_json(omnidata(*start, rows, "--json"))
        assert found["outcomes"] == {"ok": 15, "unparsed": 1}
        assert found["overall"]["EM"] == pytest.approx(15 / 16)


def test_only_the_rows_of_the_split_are_scored(data: Path, tmp_path: Path, trainer: str) -> None:
    omnidata(*EXPORT, "androidcontrol", data, tmp_path / "out", "--format", trainer,
             "--split", "train=0.5,test=0.5")  # fmt: skip
    rows = read_lines(tmp_path / "out" / "test.jsonl")
    assert 0 < len(rows) < 16
    path = write_lines(tmp_path / "said.jsonl", WRITERS[trainer](rows))
    command = ("score", "androidcontrol", data, path, "--from", trainer, "--rows")
    found = as_json(omnidata(*command, tmp_path / "out", "--json"))
    assert found["outcomes"] == {"ok": len(rows)}
    assert found["counts"]["steps"] == len(rows)


def test_predictions_in_another_order_are_refused_with_the_place(
    lines: list[Line], command: Command, trainer: str, path: Path, exported: Path
) -> None:
    write_lines(path, [lines[1], lines[0], *lines[2:]])
    done = omnidata(*command, code=2)
    assert f"{path}:1 and {exported / 'train.jsonl'}:1" in done.stderr
    assert f"{LABELS[trainer]} is" in done.stderr


def test_a_prompt_of_another_row_is_refused_where_the_labels_are_equal(
    lines: list[Line], command: Command, path: Path
) -> None:
    lines[1], lines[3] = lines[3], lines[1]  # two ways back, of different episodes
    write_lines(path, lines)
    done = omnidata(*command, code=2)
    assert "the prompt of the prediction is that of another row" in done.stderr
    assert f"{path}:2" in done.stderr


def test_labels_alone_pair_predictions_whose_prompts_nobody_knows(
    lines: list[Line], command: Command, trainer: str, path: Path
) -> None:
    keys = (ANSWERS[trainer], LABELS[trainer])
    write_lines(path, [{key: line[key] for key in keys} | {"prompt": "cut"} for line in lines])
    assert as_json(omnidata(*command, "--json"))["overall"]["EM"] == 1


def test_too_few_and_too_many_predictions_are_refused(
    lines: list[Line], command: Command, path: Path
) -> None:
    for some, says in ((lines[:5], "5 predictions and 16 rows: line 6"),
                       ([*lines, lines[0]], "17 predictions and 16 rows: line 17")):  # fmt: skip
        write_lines(path, some)
        assert says in " ".join(omnidata(*command, code=2).stderr.split())


def test_a_broken_line_is_refused_or_counts_as_missing(
    lines: list[Line], command: Command, trainer: str, path: Path
) -> None:
    texts = [json.dumps(line) for line in lines]
    del lines[4][ANSWERS[trainer]]
    texts[2], texts[4] = texts[2][:-9], json.dumps(lines[4])
    path.write_text("\n".join(texts))
    done = omnidata(*command, code=2)
    assert "2 lines cannot be scored" in done.stderr
    assert f"there is no {ANSWERS[trainer]}" in done.stderr
    found = as_json(omnidata(*command, "--skip-bad", "--json", code=1))
    assert found["outcomes"] == {"ok": 14, "missing": 2}


def test_an_answer_that_the_trainer_left_out_is_a_failure(
    lines: list[Line], command: Command, trainer: str, path: Path
) -> None:
    lines[0][ANSWERS[trainer]] = None
    write_lines(path, lines)
    assert as_json(omnidata(*command, "--json", code=1))["outcomes"] == {"ok": 15, "api_error": 1}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--from", "swift"), "--rows EXPORT"),
        (("--rows", "{rows}"), "--from llamafactory|swift|trl|verl"),
        (("--from", "lmms-eval", "--rows", "{rows}"), "--from llamafactory|swift|trl|verl"),
        (("--from", "swift", "--rows", "{data}"), "not a row of an export"),
        (("--from", "swift", "--rows", "{empty}"), "the folder has no rows"),
        (("--from", "axolotl"), "one of lmms-eval"),
        ((), "--from swift --rows EXPORT"),
    ],
)
def test_what_is_lacking_is_said(
    data: Path, tmp_path: Path, arguments: Sequence[str], says: str
) -> None:
    exported = export(data, tmp_path / "export", "swift")
    path = write_lines(tmp_path / "said.jsonl", swift(read_lines(exported / "train.jsonl")))
    (tmp_path / "empty").mkdir()
    places = {"rows": exported, "data": data, "empty": tmp_path / "empty"}
    given = [argument.format(**places) for argument in arguments]
    done = omnidata("score", "androidcontrol", data, path, *given, code=2)
    assert says in " ".join(done.stderr.split())


def test_an_export_is_no_file_of_predictions_and_other_data_are_refused(
    data: Path, tmp_path: Path
) -> None:
    exported = export(data, tmp_path / "export", "swift")
    rows = exported / "train.jsonl"
    command = ("score", "androidcontrol", data, rows, "--from", "swift", "--rows", rows)
    assert "the rows themselves" in omnidata(*command, code=2).stderr
    path = write_lines(tmp_path / "said.jsonl", swift(read_lines(rows)))
    lines = read_lines(data)
    lines[0]["goal"] = "Something else"
    other = write_lines(data.with_name("other.jsonl"), lines)
    command = ("score", "androidcontrol", other, path, "--from", "swift", "--rows", rows)
    assert "has other annotations" in omnidata(*command, code=2).stderr


def test_the_prompts_unit_and_the_size_of_the_exports_pictures_are_the_exports(
    data: Path, tmp_path: Path
) -> None:
    options = ("--coordinates", "px", "--image-size", "120")
    exported = export(data, tmp_path / "export", "llamafactory", *options)
    rows = read_lines(exported / "train.jsonl")
    clicks = [json.loads(row["messages"][-1]["content"]).get("coordinate") for row in rows]
    assert max(x for x, _ in filter(None, clicks)) <= 54  # of 54 x 120, not of 108 x 240
    path = write_lines(tmp_path / "said.jsonl", llamafactory(rows))
    command = ("score", "androidcontrol", data, path, "--from", "llamafactory", "--rows", exported)
    assert as_json(omnidata(*command, "--json"))["overall"]["EM"] == 1


def test_verls_validation_is_found_by_the_ids_that_our_rows_have(
    data: Path, tmp_path: Path
) -> None:
    exported = export(data, tmp_path / "export", "verl")
    back = json.dumps({"action_type": "navigate_back"})
    lines = [
        {"input": "", "output": back, "gts": row["extra_info"]["sample_id"], "score": 0, "step": 9}
        for row in reversed(read_lines(exported / "train.json"))
    ]
    path = write_lines(tmp_path / "9.jsonl", lines)
    command = ("score", "androidcontrol", data, path, "--from", "verl", "--rows", exported)
    assert as_json(omnidata(*command, "--json"))["overall"]["EM"] == 0.5
    write_lines(path, [*lines, lines[0]])  # two samples of one prompt
    assert "answered twice" in omnidata(*command, code=2).stderr


def test_trls_table_is_found_by_the_ids_that_the_reward_adds(data: Path, tmp_path: Path) -> None:
    exported = export(data, tmp_path / "export", "trl-grpo")
    ids = [row["sample_id"] for row in read_lines(exported / "train.jsonl")]
    back = json.dumps({"action_type": "navigate_back"})
    table = {"step": [5] * 16, "prompt": ["..."] * 16, "completion": [back] * 16}
    path = tmp_path / "completions_00005.parquet"
    pq.write_table(pa.table(table), path)
    command = ("score", "androidcontrol", data, path, "--from", "trl", "--rows", exported)
    assert "there is no sample_id" in omnidata(*command, code=2).stderr
    pq.write_table(pa.table({**table, "sample_id": ids}), path)
    assert as_json(omnidata(*command, "--json"))["overall"]["EM"] == 0.5


def test_lines_of_an_older_swift_are_held_against_the_rows_too(data: Path, tmp_path: Path) -> None:
    out = export(data, tmp_path / "export", "swift")
    lines = [
        {"query": row["messages"][-2]["content"], "response": row["messages"][-1]["content"],
         "label": row["messages"][-1]["content"]}
        for row in read_lines(out / "train.jsonl")
    ]  # fmt: skip
    path = write_lines(tmp_path / "said.jsonl", lines)
    command = ("score", "androidcontrol", data, path, "--from", "swift", "--rows", out)
    assert as_json(omnidata(*command, "--json"))["overall"]["EM"] == 1
    write_lines(path, [lines[1], lines[0], *lines[2:]])
    assert "label is" in omnidata(*command, code=2).stderr
    for line in lines:
        del line["label"]
    write_lines(path, [lines[2], lines[1], lines[0], *lines[3:]])
    assert (
        "the prompt of the prediction is that of another row" in omnidata(*command, code=2).stderr
    )


@pytest.mark.parametrize(
    ("columns", "option"),
    [
        (("prompt", "predict", "label"), "--from llamafactory"),
        (("response", "labels", "messages"), "--from swift"),
        (("input", "output", "gts", "score"), "--from verl"),
        (("prompt", "completion", "advantage", "sample_id"), "--from trl"),
    ],
)
def test_the_option_for_a_trainers_file_is_named(
    data: Path, tmp_path: Path, columns: tuple[str, ...], option: str
) -> None:
    path = write_lines(tmp_path / "said.jsonl", [dict.fromkeys(columns, "x")])
    told = omnidata("score", "androidcontrol", data, path, code=2).stderr
    assert f"{option} --rows EXPORT" in told
