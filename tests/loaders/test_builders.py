"""OmniGUI through `datasets.load_dataset`, with the installed version of `datasets`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest

import omnidata
from omnidata import registry
from omnidata.actions import NUMBERS
from omnidata.errors import DataError, UsageError
from omnidata.tasks.omnigui.load import load
from omnidata.types import Step
from tests.conftest import Once
from tests.data.converting import small
from tests.full import FULL
from tests.trees import row, write_app, write_rows


@pytest.fixture(autouse=True)
def _registered() -> None:
    omnidata.register()


@pytest.fixture
def few(once: Once, sample: Path) -> Path:
    """Episodes of two apps: `datasets` walks through all files many times to open a subset."""
    episodes = ("C001", "P002", "P007")
    labels = (sample / "dependency.jsonl").read_text().splitlines(keepends=True)

    def write(folder: Path) -> None:
        small(folder, sample, *episodes)
        kept = [label for label in labels if json.loads(label)["ID"] in episodes]
        (folder / "dependency.jsonl").write_text("".join(kept))

    return once("two-apps", write)


def open_plainly(data: Path, name: str | None = None, **options: Any) -> Any:
    return datasets.load_dataset("omnigui", name, data_dir=str(data), split="test", **options)


def count(steps: list[Step], tag: str, value: str) -> int:
    return sum(step.tags.get(tag) == value for step in steps)


def test_all_is_the_default_and_holds_every_step_once(few: Path) -> None:
    steps = load(few).steps
    data = open_plainly(few)
    assert data["sample_id"] == [step.sample_id for step in steps]
    assert len(open_plainly(few, "all")) == len(steps)
    assert [json.loads(text) for text in data["source"]] == [dict(step.source) for step in steps]


def test_a_row_is_the_step(few: Path) -> None:
    step = next(s for s in load(few).steps if s.step_index == 2 and s.action and s.action.start)
    data = open_plainly(few)
    (found,) = [item for item in data if item["sample_id"] == step.sample_id]
    assert step.action and found["action"]["kind"] == step.action.label
    assert found["action"]["number"] == NUMBERS[step.action.label]
    assert [past["kind"] for past in found["history"]] == [
        past.label for past in step.history if past
    ]
    for role in ("screenshot", "history_screenshot", "video", "audio"):
        ref = step.media[role]
        assert ref and Path(found[role]["path"]) == (ref.root / ref.path).resolve()
        assert found[role]["bytes"] is None
    assert data.features["screenshot"] == datasets.Image(decode=False)
    assert data.features["audio"] == datasets.Audio(decode=False)


def test_every_label_is_a_subset(few: Path) -> None:
    steps = list(load(few).steps)
    for tag in ("app", "dimension", "dependency", "language"):
        for value in sorted({step.tags[tag] for step in steps})[: None if FULL else 1]:
            assert len(open_plainly(few, value)) == count(steps, tag, value)


def test_table7s_apps_are_listed_and_found_under_every_spelling(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # without data_dir, `datasets` searches the working directory
    assert len(open_plainly(few, "chirp")) == len(open_plainly(few, "CHIRP")) > 0
    data = write_app(tmp_path / "googletranslate", [row("A")])
    assert len(open_plainly(data, "GTrans")) == len(open_plainly(data, "Google_Translate")) == 1
    names = datasets.get_dataset_config_names("omnigui")
    assert (len(names), names[0]) == (1 + 5 + 3 + 2 + 29, "all")


def test_streaming_gives_the_same_rows(few: Path) -> None:
    stream = open_plainly(few, "critical", streaming=True)
    assert list(stream) == list(open_plainly(few, "critical"))
    assert stream.num_shards > 1


def test_two_processes_give_the_same_rows(few: Path, tmp_path: Path) -> None:
    one = open_plainly(few, "zh", cache_dir=str(tmp_path / "one"))
    two = open_plainly(few, "zh", cache_dir=str(tmp_path / "two"), num_proc=2)
    assert two.to_list() == one.to_list()
    assert len(two.cache_files) == 2


@pytest.mark.parametrize("own", [False, True])
def test_an_edit_of_the_annotations_is_noticed(tmp_path: Path, own: bool) -> None:
    data = write_app(tmp_path / "TED", [row("A")])

    def kinds() -> list[str]:
        opened = omnidata.load_dataset("omnigui", data, split="test") if own else open_plainly(data)
        return [action["kind"] for action in opened["action"]]

    assert kinds() == ["TAP"]
    write_app(data, [row("A", result_action_type=8), row("B")])
    assert kinds() == ["BACK", "TAP"]


def test_our_own_function_opens_the_same(few: Path, tmp_path: Path) -> None:
    plain = open_plainly(few, "en")
    assert omnidata.load_dataset("omnigui", few, "en", split="test").to_list() == plain.to_list()
    stream = omnidata.load_dataset("omnigui", few, "en", split="test", streaming=True)
    assert list(stream) == plain.to_list()
    whole = omnidata.load_dataset("omnigui", few, cache_dir=tmp_path)
    assert list(whole) == ["test"]
    with pytest.raises(UsageError, match="one of the two"):
        omnidata.load_dataset("omnigui", few, streaming=True, num_proc=2)
    with pytest.raises(UsageError, match="omnigui"):
        omnidata.load_dataset("windows", few)


def test_a_json_file_is_opened_by_our_own_function(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "steps.json", [row("A"), row("B")])
    opened = omnidata.load_dataset("omnigui", path, split="test")
    assert opened["episode_id"] == ["A", "B"]


@pytest.mark.parametrize("task", registry.names())
def test_a_missing_data_dir_is_named_at_once(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "test.json", [row("A")])  # a stray file is no answer
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f'{task}"(.|\n)*data_dir is missing(.|\n)*data_dir=FOLDER'):
        datasets.load_dataset(task, split="test")


@pytest.mark.parametrize("options", [{}, {"data_dir": "."}])
def test_data_files_are_refused_and_not_ignored(options: dict[str, str], few: Path) -> None:
    file = str(few / "dependency.jsonl")
    with pytest.raises(UsageError, match=r"data_files is not used(.|\n)*data_dir=FOLDER"):
        datasets.load_dataset("omnigui", data_files=file, **options)


def run(code: str, **env: str) -> list[str]:
    """The lines that a process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, **env},
    )  # fmt: skip
    assert not done.stderr
    return done.stdout.splitlines()


def test_importing_omnidata_makes_its_names_known(few: Path, tmp_path: Path) -> None:
    code = f"""import datasets, omnidata
datasets.disable_progress_bars()
print(len(datasets.load_dataset("omnigui", "Chirp", data_dir={str(few)!r}, split="test")))
try:
    datasets.load_dataset("omnigui", "localization")
except omnidata.OmnidataError as error:
    print(error.what)
"""
    steps, what = run(code, HF_DATASETS_CACHE=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    assert int(steps) == count(list(load(few).steps), "app", "Chirp") > 0
    assert what.startswith("data_dir is missing")


FAILED_IMPORT = """import importlib.util, sys
import omnidata
importlib.util.find_spec("datasets")  # as transformers does
sys.path.insert(0, {folder!r})
try: import datasets
except ImportError: sys.path.pop(0)"""
BROKEN = "import omnidata, omnidata.registry\nomnidata.registry.names = None"


@pytest.mark.parametrize(("before", "known"), [(FAILED_IMPORT, "True"), (BROKEN, "False")])
def test_datasets_can_be_imported_later_whatever_has_failed(
    tmp_path: Path, before: str, known: str
) -> None:
    """The names are known unless omnidata is broken."""
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").write_text("raise ImportError")
    is_known = "print('omnigui' in datasets.packaged_modules._PACKAGED_DATASETS_MODULES)"
    code = f"{before.format(folder=str(tmp_path))}\nimport datasets\n{is_known}"
    assert run(code) == [known]


def test_omnidata_can_be_imported_where_datasets_is_blocked() -> None:
    code = "import sys\nsys.modules['datasets'] = None\nimport omnidata\nprint(omnidata.Action)"
    assert len(run(code)) == 1


@pytest.mark.parametrize("name", ["Nobody", "TED"])
def test_a_subset_that_the_data_lacks_is_refused_with_those_it_has(few: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"all, Chirp, .*zh"):
        open_plainly(few, name)


def test_no_path_leads_outside_the_dataset(few: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    data = shutil.copytree(few, tmp_path / "copy")
    app = min(path for path in data.iterdir() if path.is_dir())
    episode = min((app / "media").iterdir())
    trace = episode / f"{episode.name}.json"
    rows = json.loads(trace.read_text())
    rows[0]["image_path"] = "../../../secret.png"
    rows[0]["audio_path"] = str(secret)
    trace.write_text(json.dumps(rows))
    (episode / "2.png").unlink()
    (episode / "2.png").symlink_to(secret)
    found = [item for item in open_plainly(data) if item["episode_id"] == episode.name]
    assert found[0]["screenshot"] is None
    assert found[0]["audio"] is None
    assert found[1]["screenshot"] is None
    assert found[0]["video"] is not None


def test_unusable_targets_and_holes_in_histories_are_null(tmp_path: Path) -> None:
    rows = [row(step=0, result_action_type=12), row(step=2), row(step=1, result_touch_xy="")]
    data = open_plainly(write_app(tmp_path / "TED", rows))
    assert [action and action["kind"] for action in data["action"]] == [None, None, "TAP"]
    assert [past and past["kind"] for past in data["history"][2]] == [None, "TAP"]


def test_lone_surrogates_are_spelled_out_where_arrow_refuses_them(tmp_path: Path) -> None:
    typed = row("A", result_action_type=7, result_action_text="\ud800")
    (found,) = open_plainly(write_app(tmp_path / "TED", [typed]))
    assert found["action"]["text"] == r"\ud800"
    assert json.loads(found["source"])["result_action_text"] == "\ud800"
