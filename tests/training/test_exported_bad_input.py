"""An export that is not as it was written is refused by name before anything is trained."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import DataError, MediaError, MissingMediaError, UsageError
from omnidata.tasks import get_task
from tests.conftest import Once
from tests.training.exporting import collator, examples, open_rows, written


@pytest.fixture
def out(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "out"))


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the JSON of a file, or of the second line of one with rows."""
    lines = path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else []
    whole = json.loads(lines[1] if lines else path.read_text("utf-8"))
    change(whole)
    if lines:
        lines[1] = json.dumps(whole, ensure_ascii=False)
    path.write_text("\n".join(lines) + "\n" if lines else json.dumps(whole), "utf-8")


def test_what_is_no_whole_export_is_refused(out: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="this is no export"):
        open_rows(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no validation rows") as error:
        open_rows(out, "validation")
    assert "train" in error.value.expected
    (tmp_path / ".new.unfinished").mkdir()
    with pytest.raises(DataError, match="the export is unfinished"):
        open_rows(tmp_path / "new")
    (out / "export.json").rename(out / ".plan.json")
    with pytest.raises(DataError, match="the export is unfinished"):
        open_rows(out)
    (out / "export.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        open_rows(out)


def test_an_unknown_format_is_refused(out: Path) -> None:
    edited(out / "export.json", lambda report: report["options"].update(format="axolotl"))
    with pytest.raises(DataError, match="axolotl"):
        open_rows(out)


def test_a_file_with_other_rows_than_were_written_is_refused(out: Path) -> None:
    rows = (out / "train.jsonl").read_bytes().splitlines(keepends=True)
    (out / "train.jsonl").write_bytes(b"".join(rows[:-1]))
    with pytest.raises(DataError, match="there are 7 rows") as error:
        open_rows(out)
    assert error.value.expected.startswith("8")
    (out / "train.jsonl").write_bytes(b"".join(rows)[:-5])
    with pytest.raises(DataError, match=r"train\.jsonl:8: the row cannot be read"):
        open_rows(out)
    (out / "train.jsonl").unlink()
    with pytest.raises(DataError, match="the rows cannot be read"):
        open_rows(out)


def append(row: dict[str, Any], text: str) -> None:
    row["messages"][1]["content"] += text


BAD: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "one more placeholder": ("2 <image> in the texts, 1 in", lambda row: append(row, "<image>")),
    "one more medium": ("1 <audio> in the texts, 2 in", lambda row: row["audios"].append("x")),
    "one more role": ("3 media, 4 roles", lambda row: row["roles"].append("voice")),
    "no roles": ("roles", lambda row: row.pop("roles")),
    "a path out of it": ("no medium of an export", lambda row: row.update(images=["../a.png"])),
    "an absolute path": ("no medium", lambda row: row.update(images=["/etc/passwd"])),
    "a number for a text": ("`str`", lambda row: row["messages"][1].update(content=1)),
    "an unknown role": ("tool", lambda row: row["messages"][1].update(role="tool")),
    "no answer": ("not the assistant's", lambda row: row["messages"].pop()),
    "a medium in the answer": (
        "the answer holds <video>",
        lambda row: row["messages"][2].update(content="<video>"),
    ),
    "places apart": ("places of the answer", lambda row: row.update(objects={"bbox": [[0, 1]]})),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named_by_file_and_line(out: Path, case: str) -> None:
    what, change = BAD[case]
    edited(out / "train.jsonl", change)
    with pytest.raises(DataError, match=what) as error:
        open_rows(out)
    assert error.value.where == f"{out / 'train.jsonl'}:2"
    assert error.value.remedy


@pytest.fixture(scope="module")
def rewritten(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export whose first row is written anew, over and over."""
    return Path(shutil.copytree(good, tmp_path_factory.mktemp("export") / "out"))


@given(
    name=st.sampled_from(["messages", "images", "videos", "audios", "roles", "sample_id"]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    cut=st.none() | st.integers(0, 400),
    form=st.sampled_from(["trl", "llamafactory", "swift", "qwen-vl"]),
)
def test_whatever_a_line_holds_is_an_example_or_an_error_with_a_name(
    good: Path, rewritten: Path, name: str, value: Any, cut: int | None, form: Any
) -> None:
    edited(rewritten / "export.json", lambda report: report["options"].update(format=form))
    rows = (good / "train.jsonl").read_text("utf-8").splitlines()
    rows[0] = json.dumps({**json.loads(rows[0]), name: value})[:cut]
    (rewritten / "train.jsonl").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    try:
        found = open_rows(rewritten)
    except DataError:
        return
    assert form in ("llamafactory", "swift") and found[0]["example"].answer


@pytest.mark.parametrize("suffix", [".png", ".mp4", ".wav"])
def test_a_medium_that_is_not_what_was_written_is_found_before_training(
    once: Once, out: Path, suffix: str
) -> None:
    """Though it decodes: training would go on with something else."""
    from omnidata.torch import check

    one, other = [path for path in sorted((out / "media").iterdir()) if path.suffix == suffix][:2]
    collate = collator(once)
    content = other.read_bytes()
    one.unlink()
    with pytest.raises(MissingMediaError, match="is missing") as missing:
        open_rows(out)
    assert "train.jsonl:" in missing.value.where
    one.write_bytes(content)
    with pytest.raises(MediaError, match="changed") as changed:
        check(open_rows(out), collate)
    assert one.name in changed.value.where and "App/" in changed.value.where
    one.write_bytes(content[:100])
    with pytest.raises(MediaError, match="changed"):
        check(open_rows(out), collate)


def test_a_link_out_of_the_export_is_not_followed(once: Once, out: Path, tmp_path: Path) -> None:
    from omnidata.torch import check

    shutil.move(out / "media", tmp_path / "elsewhere")
    (out / "media").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MediaError, match="outside"):
        check(open_rows(out), collator(once))


def test_rows_behind_a_link_or_in_a_pipe_are_not_read(out: Path, tmp_path: Path) -> None:
    rows = out / "train.jsonl"
    shutil.move(rows, tmp_path / "rows")
    rows.symlink_to(tmp_path / "rows")
    with pytest.raises(DataError, match="not a regular file"):
        open_rows(out)
    rows.unlink()
    os.mkfifo(rows)
    with pytest.raises(DataError, match="not a regular file"):
        open_rows(out)


def test_a_row_without_an_end_is_not_read_whole(out: Path) -> None:
    with (out / "train.jsonl").open("r+b") as file:
        file.truncate(2**32)  # takes no room on the disk
    with pytest.raises(DataError, match="the row is too long") as error:
        open_rows(out)
    assert error.value.where == f"{out / 'train.jsonl'}:9"
    with (out / "train.jsonl").open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(DataError, match="the file has 1,099,511,627,776 bytes or more"):
        open_rows(out)


def test_answers_in_pixels_of_a_picture_that_is_gone_are_named_by_their_step(
    once: Once, data: Path, tmp_path: Path
) -> None:
    from omnidata.torch import check

    out = tmp_path / "out"
    [first, *_] = written(get_task("omnigui", {"coordinates": "px"}), data, out, "swift")
    table = open_rows(out)
    [name] = json.loads((out / "train.jsonl").read_text("utf-8").splitlines()[0])["images"]
    (out / name).unlink()  # it is a link to the data's own file
    (out / name).write_bytes(b"garbage")
    with pytest.raises(MediaError, match=f"^{first.sample_id}"):
        check(table, collator(once))


def test_objects_of_swift_are_refused_with_the_remedy(data: Path, tmp_path: Path) -> None:
    written(get_task("omnigui"), data, tmp_path / "out", "swift", objects="norm1")
    with pytest.raises(DataError, match="places of the answer stand apart") as error:
        open_rows(tmp_path / "out")
    assert "--objects" in error.value.remedy


def test_a_row_that_the_model_cannot_take_whole_is_refused(once: Once, good: Path) -> None:
    """The label of a picture that is left out could not be told from other texts."""
    history = [e for e in examples(good).values() if len(e.prompt[1].parts) > 5]
    assert history
    with pytest.raises(UsageError, match="at most 1 picture"):
        collator(once, max_images="1", degrade="true")(history[:1])


def test_a_collator_without_a_task_takes_no_steps(once: Once, data: Path) -> None:
    step = get_task("omnigui").load(data).steps[0]
    with pytest.raises(UsageError, match="only its task"):
        collator(once)([step])
