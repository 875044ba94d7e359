"""`omnidata push`: repositories and runs, to a server that speaks the Hub's protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from omnidata.analysis.publish import push_run
from omnidata.data.convert import convert
from omnidata.data.push import push
from omnidata.errors import DataError, RunError, UsageError
from omnidata.loaders.data_place import local_place
from omnidata.loaders.hub import sending_token
from omnidata.run.asker import Recipe
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.run.run_info import read_info
from omnidata.tasks import get_task
from tests.cli.running import here
from tests.hub_server import TOKEN, Hub, files_of
from tests.loaders.desk import screenspot, spot
from tests.loaders.phones import cagui, zoo_episode

# Of `huggingface_hub` itself, where it sends a large file.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

NAME = "me/spots"
FREE = "apache-2.0"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository, whose README gives a licence."""
    data = screenspot(tmp_path / "data", spot(), spot(instruction="Open it"))
    convert(get_task("screenspot").load(data), tmp_path / "made", embed=True)
    return licensed(tmp_path / "made", FREE)


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def licensed(folder: Path, licence: str) -> Path:
    readme = folder / "README.md"
    text = readme.read_text("utf-8").replace("license: unknown", f"license: {licence}")
    readme.write_text(text, "utf-8")
    return folder


def test_what_is_pushed_is_there_in_one_commit_and_plain_datasets_opens_it(
    hub: Hub, repository: Path, tmp_path: Path
) -> None:
    (repository / "LICENSE").write_text("the text of the licence")
    done = push(repository, NAME, private=True)
    repo = hub.repos[NAME]
    assert repo.private and done.new
    assert repo.files == files_of(repository)
    assert len(repo.messages) == 1
    with sending_token():
        place = local_place(f"hf://{NAME}")
    assert len(get_task("screenspot").load(place).steps) == 2
    loaded = datasets.load_dataset(NAME, split="test", token=TOKEN, cache_dir=str(tmp_path / "c"))
    assert {*loaded["instruction"]} == {spot()["instruction"], "Open it"}


def test_again_there_is_nothing_to_do_and_a_change_is_all_that_is_sent(
    hub: Hub, repository: Path
) -> None:
    push(repository, NAME)
    again = push(repository, NAME)
    assert (again.sent, again.url, len(hub.repos[NAME].messages)) == ({}, "", 1)
    with (repository / "README.md").open("a") as file:
        file.write("\nMore words.\n")
    hub.repos[NAME].commit({**hub.repos[NAME].files, "data/a/old-1.parquet": b"old"})
    changed = push(repository, NAME)
    assert list(changed.sent) == ["README.md"]
    assert changed.removed == ["data/a/old-1.parquet"]
    assert hub.repos[NAME].files == files_of(repository)


def test_an_interrupted_push_sends_no_large_file_twice(
    hub: Hub, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    with monkeypatch.context() as patch:
        patch.setattr(HfApi, "create_commit", interrupted(HfApi.preupload_lfs_files))
        with pytest.raises(KeyboardInterrupt):
            push(repository, NAME)
    assert hub.repos[NAME].files == {}
    assert len(hub.blobs) == 1
    puts = sum(line.startswith("PUT") for line in hub.seen)
    push(repository, NAME)
    assert sum(line.startswith("PUT") for line in hub.seen) == puts
    assert hub.repos[NAME].files == files_of(repository)


def interrupted(preupload: Any) -> Any:
    """Uploads large files, and is interrupted before the commit."""

    def create_commit(self: Any, name: str, operations: Any, **options: Any) -> None:
        preupload(self, name, list(operations), repo_type="dataset", revision="main")
        raise KeyboardInterrupt

    return create_commit


def test_a_pull_request_leaves_the_branch_and_is_gone_on_with(hub: Hub, repository: Path) -> None:
    hub.add(NAME, {"README.md": b"somebody's", "thesis.pdf": b"x"})
    with pytest.raises(UsageError, match="the Hub has another dataset of this name"):
        push(repository, NAME)
    done = push(repository, NAME, pull_request=True)
    assert done.url.endswith("/discussions/1")
    repo = hub.repos[NAME]
    assert repo.files == {"README.md": b"somebody's", "thesis.pdf": b"x"}
    assert files_of(repository).items() <= repo.commits[repo.refs["refs/pr/1"]].items()
    assert push(repository, NAME, pull_request=True).sent == {}
    assert len(repo.requests) == 1


def test_a_dry_run_makes_and_sends_nothing(hub: Hub, repository: Path) -> None:
    told = here("push", repository, NAME, "--dry-run")
    assert "omnidata.json" in told.stdout and "nothing was sent" in told.stdout
    assert f"to {hub.url}/datasets/{NAME}" in told.stderr
    assert NAME not in hub.repos
    assert TOKEN not in told.stdout + told.stderr


def test_without_a_token_that_is_said(
    hub: Hub, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="no token found") as told:
        push(repository, NAME)
    assert "log in with `hf auth login`" in str(told.value)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(DataError, match="the token is invalid"):
        push(repository, NAME)


# What is not pushed.


def test_nothing_but_the_repository_is_pushed(hub: Hub, repository: Path, tmp_path: Path) -> None:
    (repository / "notes.txt").write_text("private")
    with pytest.raises(DataError, match="does not belong to the repository"):
        push(repository, NAME)
    (repository / "notes.txt").unlink()
    shard = next((repository / "data").rglob("*.parquet"))
    shard.rename(tmp_path / "secret")
    shard.symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="this is a link"):
        push(repository, NAME)
    shard.unlink()
    with pytest.raises(DataError, match="a file of the repository is missing"):
        push(repository, NAME)
    with pytest.raises(DataError, match="not a repository made by omnidata"):
        push(tmp_path, NAME)
    with pytest.raises(UsageError, match="not a name of a dataset"):
        push(repository, "spots")
    assert not hub.repos


def test_a_repository_that_cannot_be_read_is_not_pushed(hub: Hub, repository: Path) -> None:
    shard = next((repository / "data").rglob("*.parquet"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-20] + bytes(20))
    with pytest.raises(DataError):
        push(repository, NAME, i_may=True)
    shard.write_bytes(whole)
    manifest = json.loads((repository / "omnidata.json").read_text())
    manifest["shards"] = {name: rows + 1 for name, rows in manifest["shards"].items()}
    (repository / "omnidata.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError):
        push(repository, NAME, i_may=True)
    assert not hub.repos


def test_a_linked_repository_is_not_pushed(hub: Hub, tmp_path: Path) -> None:
    data = screenspot(tmp_path / "data", spot())
    convert(get_task("screenspot").load(data), tmp_path / "made", embed=False)
    with pytest.raises(DataError, match="the media are linked"):
        push(tmp_path / "made", NAME)


def test_a_licence_must_be_given_and_be_one_that_may_be(
    hub: Hub, repository: Path, tmp_path: Path
) -> None:
    text = (repository / "README.md").read_text("utf-8")
    (repository / "README.md").write_text(text.replace(f"license: {FREE}", "license: unknown"))
    with pytest.raises(UsageError, match="names no licence"):
        push(repository, NAME)
    licensed(repository, "mit")
    with pytest.raises(UsageError, match=r"under apache-2\.0, and the README says mit"):
        push(repository, NAME)
    assert push(repository, NAME, i_may=True, dry_run=True).sent
    data = zoo_episode(tmp_path / "cagui" / "domestic", cagui(), name="77").parents[1]
    convert(get_task("aitw").load(data), tmp_path / "chinese", embed=True)
    with pytest.raises(UsageError, match=r"cc-by-nc-4\.0, which has conditions"):
        push(licensed(tmp_path / "chinese", "cc-by-nc-4.0"), NAME)
    (repository / "README.md").write_text("---\nlicense: [\n---\n")
    with pytest.raises(DataError, match="the README cannot be read"):
        push(repository, NAME)
    assert not hub.repos


# Runs.

RUN = "me/run"


@pytest.fixture
def run(hub: Hub, tmp_path: Path) -> Path:
    """A run on a dataset of the Hub."""
    folder = screenspot(tmp_path / "here", spot(), spot(instruction="Open it"))
    hub.add("org/spots", files_of(folder))
    task = get_task("screenspot")
    source = task.load(local_place("hf://org/spots"))
    evaluate(task, source, Recipe("baseline:oracle", {}), tmp_path / "run")
    return tmp_path / "run"


def test_a_run_goes_without_media_and_without_folders_of_this_machine(
    hub: Hub, run: Path, tmp_path: Path
) -> None:
    push_run(run, RUN)
    files = hub.repos[RUN].files
    assert set(files) == {
        "README.md", "run.json", "predictions.jsonl", "scores.jsonl", "results.json",
        ".eval_results/screenspot.yaml",
    }  # fmt: skip
    assert str(tmp_path).encode() not in b"".join(files.values())
    sha = hub.repos["org/spots"].refs["main"]
    assert json.loads(files["run.json"])["data"] == f"hf://org/spots@{sha}"
    assert str(tmp_path) in read_info(run)["data"]  # the run itself stays as it is
    front = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"]["type"] == "org/spots"
    (entry,) = yaml.safe_load(files[".eval_results/screenspot.yaml"])
    assert (entry["dataset"]["id"], entry["value"]) == ("org/spots", 1.0)
    from huggingface_hub import ModelCardData

    assert ModelCardData(**front).eval_results
    assert push_run(run, RUN).sent == {}


def test_a_run_goes_without_paths_of_options_and_the_servers_address(
    hub: Hub, run: Path, tmp_path: Path
) -> None:
    info, server = json.loads((run / "run.json").read_text()), "http://10.0.0.7:8000/v1"
    info["options"]["system"] = str(tmp_path / "system.txt")
    info["model_options"] = {"layout": "paper", "chat_template": str(tmp_path / "chat.jinja")}
    info["model_settings"] = {"wire": "openai", "base_url": server}
    (run / "run.json").write_text(json.dumps(info))
    first, second = (run / "predictions.jsonl").read_text().splitlines()
    failed = {"delivery": "api_error", "output": None, "error": f"{server}: 10.0.0.7:8000 is away"}
    line = json.dumps(json.loads(second) | failed, separators=(",", ":"))
    (run / "predictions.jsonl").write_text(f"{first}\n{line}\n")
    push_run(run, RUN)
    files = hub.repos[RUN].files
    told = b"".join(files.values())
    assert str(tmp_path).encode() not in told and server.encode() not in told
    shown = json.loads(files["run.json"])
    assert shown["options"]["system"] == "system.txt"
    assert shown["model_options"] == {"layout": "paper", "chat_template": "chat.jinja"}
    assert shown["model_settings"] == {"wire": "openai"}
    assert b"SERVER: SERVER is away" in files["predictions.jsonl"]


def test_somebody_elses_run_is_verified(hub: Hub, run: Path) -> None:
    push_run(run, RUN)
    said = here("score", f"hf://{RUN}").stderr
    assert "the published results follow from the published answers" in said
    files = hub.repos[RUN].files
    results = json.loads(files["results.json"])
    results["overall"] = dict.fromkeys(results["overall"], 0.5)
    hub.repos[RUN].commit({**files, "results.json": json.dumps(results).encode()})
    assert "published 0.5, computed 1.0" in here("score", f"hf://{RUN}", code=1).stderr
    other = next(name for name in get_task("screenspot").profiles if name != read_run(run).profile)
    told = here("score", f"hf://{RUN}", "--profile", other).stderr
    assert "not compared: the published results" in told and "follow from" not in told


@pytest.mark.parametrize(
    ("name", "old", "new", "code", "said"),
    [
        ("results.json", b'"steps": 2', b'"steps": 3', 1, "counts.steps: published 3, computed 2"),
        ("results.json", b'"ci95"', b'"ci94"', 1, "ci95: published nothing, computed something"),
        ("results.json", b'"outcomes"', b'"endings"', 1, "outcomes: published nothing"),
        ("results.json", b'": 1.0', b'": 1' + b"0" * 400, 2, "results.json"),
        ("results.json", b'e": "screenspot",\n "o', b'e": "all",\n "o', 2, 'has no profile "all"'),
        ("scores.jsonl", b"true", b"false", 1, "the score of "),
        ("run.json", b'"options": {', b'"options": {"fancy": "1", ', 0,
         "options of the run, not checked: fancy"),
    ],
)  # fmt: skip
def test_whatever_was_published_otherwise_is_said(
    hub: Hub, run: Path, name: str, old: bytes, new: bytes, code: int, said: str
) -> None:
    push_run(run, RUN)
    files = hub.repos[RUN].files
    assert old in files[name]
    hub.repos[RUN].commit({**files, name: files[name].replace(old, new)})
    assert said in here("score", f"hf://{RUN}", code=code).stderr


def test_a_hostile_run_opens_nothing_here(hub: Hub, run: Path, tmp_path: Path) -> None:
    push_run(run, RUN)
    info = json.loads(hub.repos[RUN].files["run.json"])
    info["data"] = str(tmp_path / "here")
    hub.repos[RUN].commit({**hub.repos[RUN].files, "run.json": json.dumps(info).encode()})
    told = here("score", f"hf://{RUN}", code=2).stderr
    assert "its data: auto" in told and "--source" in told


def test_a_folder_with_a_link_is_no_run(hub: Hub, run: Path, tmp_path: Path) -> None:
    (run / "scores.jsonl").rename(tmp_path / "scores")
    (run / "scores.jsonl").symlink_to(tmp_path / "scores")
    with pytest.raises(RunError, match="a link"):
        push_run(run, RUN)


@pytest.mark.parametrize("name", ["predictions.jsonl", "scores.jsonl"])
def test_a_run_without_one_of_its_files_is_not_pushed(hub: Hub, run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(RunError, match="a file of the run is missing") as error:
        push_run(run, RUN)
    assert error.value.where == str(run / name)
    assert RUN not in hub.repos
