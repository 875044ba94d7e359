"""Servers that are broken or hostile: what they send is bounded, checked, and said in one error."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError, OmnidataError
from omnidata.loaders.data_place import local_place
from omnidata.loaders.fetch import fetch
from omnidata.loaders.fetch_plan import plan_fetch
from omnidata.loaders.hub import sending_token
from tests.hub_server import TOKEN, Answer, Hub, serving

NAME = "OmniGUI/OmniGUI"
BUCKET = "/storage/v1/b/gresearch/o"
MIB = 1024**2


def entry(**about: Any) -> dict[str, Any]:
    return {"type": "file", "path": "a.json", "size": 2, "oid": "0" * 40, **about}


@pytest.fixture
def tree(hub: Hub) -> str:
    """The path of the list of files of a dataset."""
    return f"/api/datasets/{NAME}/tree/{hub.add(NAME, {'a.json': b'[]'})}"


def refusal(hub: Hub) -> str:
    """Why the dataset is refused, whichever way it is asked for; no file of it is requested."""
    with pytest.raises(DataError) as planned:
        plan_fetch("omnigui")
    with pytest.raises(DataError) as read:
        local_place(f"hf://{NAME}")
    assert planned.value.what == read.value.what
    assert not any("/resolve/" in line for line in hub.seen)
    return read.value.what


@pytest.mark.parametrize(
    "listed",
    [
        entry(path=5),
        entry(path=None),
        entry(path=["a"]),
        entry(size="2"),
        entry(size=-1),
        entry(size=None),
        entry(size=1e300),
        entry(size=1 << 70),
        entry(size=[2]),
        entry(oid=7),
        entry(oid="../../x"),
        entry(lfs={"oid": 5, "size": 2}),
        entry(lfs={"oid": "0" * 63, "size": 2}),
        entry(lfs="0" * 64),
        entry(type="link"),
        {"path": "a.json"},
        "a.json",
        None,
        [[]],
    ],
)
def test_an_entry_of_another_type_or_size_is_one_refusal(
    hub: Hub, tree: str, listed: object
) -> None:
    hub.instead[tree] = Answer([json.dumps([listed]).encode()])
    assert refusal(hub).startswith("the Hub's answer cannot be used")


@pytest.mark.parametrize(
    "body", [b"{}", b"null", b"7", b"<html>", b"\xff", b"", b"[" * 100_000, b'[{"size": NaN}]']
)
def test_a_list_that_is_none_is_one_refusal(hub: Hub, tree: str, body: bytes) -> None:
    hub.instead[tree] = Answer([body])
    assert refusal(hub).startswith("the Hub's answer cannot be used")


@pytest.mark.parametrize(
    "paths",
    [
        ["."], [""], ["a/"], ["a//b"], ["d/" * 65 + "a"], ["./a"], ["a", "a/b"], ["A/b", "a"],
        ["a", "A"], ["../up.json"], ["a/../../b"], ["/etc/x"], [".git/config"],
    ],
)  # fmt: skip
def test_names_that_are_no_files_of_one_folder_are_one_refusal(
    hub: Hub, tree: str, paths: list[str]
) -> None:
    hub.instead[tree] = Answer([json.dumps([entry(path=path) for path in paths]).encode()])
    assert refusal(hub).startswith(repr(sorted(paths)[-1])[:100])


def test_names_that_would_fill_the_memory_are_one_refusal(
    hub: Hub, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.loaders.names._MOST_LETTERS", 100_000)
    paths = [f"{number}/{'a/' * 60}x" for number in range(30)]
    hub.instead[tree] = Answer([json.dumps([entry(path=path) for path in paths]).encode()])
    assert "names and folders have more than 100,000 letters" in refusal(hub)


@pytest.mark.parametrize("about", [{"sha": None}, {"sha": 5}, {"sha": "main"}, [], None, {}])
def test_a_commit_of_another_type_is_one_refusal(hub: Hub, tree: str, about: object) -> None:
    hub.instead[f"/api/datasets/{NAME}/revision/main"] = Answer([json.dumps(about).encode()])
    assert refusal(hub).startswith("the Hub's answer cannot be used: the commit is")


def test_a_list_without_an_end_ends(hub: Hub, tree: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidata.loaders.transfers._MOST_PAGES", 5)
    hub.instead[tree] = Answer([b"[]"], {"Link": f'<{hub.url}{tree}?cursor=1>; rel="next"'})
    assert "more than 5 pages" in refusal(hub)
    monkeypatch.setattr("omnidata.loaders.transfers._PAGE_BYTES", 10_000)
    hub.instead[tree] = Answer(Endless(b"[" * 1000))
    assert "a page has more than" in refusal(hub)


class Endless:
    """A body without an end.

    Attributes:
        sent: the number of pieces.
    """

    def __init__(self, piece: bytes, seconds: float = 0.0) -> None:
        self.sent, self._piece, self._seconds = 0, piece, seconds

    def __iter__(self) -> Iterator[bytes]:
        while True:
            time.sleep(self._seconds)
            self.sent += 1
            yield self._piece


TRICKLE = Endless(b" ", 0.02)


@pytest.mark.parametrize("link", ["http:////127.0.0.1:9/more", "////127.0.0.1:9/more"])
def test_a_next_page_elsewhere_is_one_refusal(hub: Hub, tree: str, link: str) -> None:
    hub.instead[tree] = Answer([b"[]"], {"Link": f'<{link}>; rel="next"'})
    assert refusal(hub).startswith("the Hub's answer cannot be used: the next page is at")


def test_a_byte_now_and_then_ends(
    hub: Hub, tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_fetch("omnigui")
    for name, seconds in (("STALL_S", 0.3), ("LISTING_S", 0.3), ("_JOIN_S", 0)):
        monkeypatch.setattr(f"omnidata.loaders.transfers.{name}", seconds)
    file = f"/datasets/{NAME}/resolve/{plan.commit}/a.json"
    about = {"ETag": '"0"', "X-Repo-Commit": plan.commit, "Content-Length": str(1 << 30)}
    hub.instead[file] = Answer(TRICKLE, about)
    with pytest.raises(DataError, match="next to nothing"):
        fetch(plan, tmp_path / "out")
    with pytest.raises(DataError, match="next to nothing"):
        local_place(f"hf://{NAME}")
    hub.seen.clear()
    hub.instead[tree] = Answer(TRICKLE)
    assert "no complete answer within" in refusal(hub)
    hub.instead[f"/api/datasets/{NAME}/revision/main"] = Answer(TRICKLE)
    assert "no complete answer within" in refusal(hub)


def test_a_file_that_is_longer_than_listed_is_not_read_to_its_end(
    hub: Hub, tree: str, tmp_path: Path
) -> None:
    plan, body = plan_fetch("omnigui"), Endless(bytes(MIB))
    about = {"ETag": '"0"', "X-Repo-Commit": plan.commit}
    hub.instead[f"/datasets/{NAME}/resolve/{plan.commit}/a.json"] = Answer(body, about)
    said = "longer than the 2 bytes that the server announced"
    with pytest.raises(DataError, match=said):
        fetch(plan, tmp_path / "out")
    with pytest.raises(DataError, match=said):
        local_place(f"hf://{NAME}")
    assert body.sent < 100


def test_the_token_goes_to_no_other_server(
    hub: Hub, tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    commit = tree.rpartition("/")[2]
    listing = json.dumps([entry(oid="e" * 40)]).encode()
    with serving() as other, sending_token():
        link = {"Link": f'<"{other.url}/more">; rel="next"'}
        hub.instead |= {tree: Answer([listing], link), "/more": Answer([b"[]"])}
        plan = plan_fetch("omnigui")
        hub.instead[f"/datasets/{NAME}/resolve/{commit}/a.json"] = Answer(
            headers={"Location": f"{other.url}/a.json", "Content-Length": "0"}, status=302
        )
        other.instead["/a.json"] = Answer([b"[]"])
        with pytest.raises(DataError, match="its git is"):
            fetch(plan, tmp_path / "out")
        assert [line for line in other.seen if "more" in line] == []
        assert other.seen and not other.tokens
        other.seen.clear()
        hub.seen.clear()
        monkeypatch.setattr("omnidata.loaders.hub.LARGE", 1)
        with suppress(OmnidataError):  # of a large dataset only the list is read
            local_place(f"hf://{NAME}")
        assert not other.tokens
    assert set(hub.tokens) == {f"Bearer {TOKEN}"}


def test_an_etag_that_is_a_path_writes_nothing_outside_the_cache(
    hub: Hub, tree: str, tmp_path: Path
) -> None:
    plan = plan_fetch("omnigui")
    about = {"ETag": '"../../../../evil"', "X-Repo-Commit": plan.commit, "Content-Length": "2"}
    hub.instead[f"/datasets/{NAME}/resolve/{plan.commit}/a.json"] = Answer([b"[]"], about)
    with pytest.raises(DataError):
        local_place(f"hf://{NAME}")
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize(
    "item",
    [
        {"name": 5, "size": "2", "crc32c": "AAAAAA=="},
        {"name": "a", "size": "x", "crc32c": "AAAAAA=="},
        {"name": "a", "size": "-1", "crc32c": "AAAAAA=="},
        {"name": "a", "size": None, "crc32c": "AAAAAA=="},
        {"name": "a", "size": "2", "crc32c": "A"},
        {"name": "a", "size": "2", "crc32c": 5},
        {"name": "a", "size": "2"},
        "a",
        None,
    ],
)
def test_an_object_of_another_type_or_size_is_one_refusal(hub: Hub, item: object) -> None:
    hub.instead[BUCKET] = Answer([json.dumps({"items": [item]}).encode()])
    with pytest.raises(DataError, match="the store's answer cannot be used"):
        plan_fetch("androidcontrol")


@pytest.mark.parametrize("body", [b"[]", b"null", b"7", b"<html>", b'{"items": 5}'])
def test_a_list_of_objects_that_is_none_is_one_refusal(hub: Hub, body: bytes) -> None:
    hub.instead[BUCKET] = Answer([body])
    with pytest.raises(DataError, match="the store's answer cannot be used"):
        plan_fetch("androidcontrol")


def test_a_bucket_without_an_end_ends(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.buckets["gresearch"] = {"android_control/a": b"ab"}
    plan, body = plan_fetch("androidcontrol"), Endless(bytes(MIB))
    hub.instead[f"{BUCKET}/android_control/a"] = Answer(body)
    with pytest.raises(DataError, match="longer than the 2 bytes"):
        fetch(plan, tmp_path / "out")
    assert body.sent < 100
    monkeypatch.setattr("omnidata.loaders.transfers._MOST_PAGES", 5)
    hub.instead[BUCKET] = Answer([b'{"nextPageToken": "1"}'])
    with pytest.raises(DataError, match="more than 5 pages"):
        plan_fetch("androidcontrol")
