"""Errata on the Hub: pushed with a card, and read from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.data.push import push_errata
from omnidata.errors import UsageError
from omnidata.run.errata import read_errata
from tests.cli.running import here
from tests.hub_server import TOKEN, Hub

HEAD = '{"errata": "ours", "version": "2", "benchmark": "omnigui", "licence": "%s"}\n'
DROP = '{"sample_id": "a", "kind": "drop", "reason": "another app"}\n'


def test_what_is_pushed_has_a_card_and_is_read_from_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    file = tmp_path / "ours.jsonl"
    file.write_text(HEAD % "cc-by-4.0" + DROP, "utf-8")
    here("push", file, "me/ours")
    sent = hub.repos["me/ours"].files
    assert sent["errata.jsonl"] == file.read_bytes()
    assert b"license: cc-by-4.0" in sent["README.md"]
    assert b"| `drop` | 1 |" in sent["README.md"]
    there = read_errata("hf://me/ours/errata.jsonl")
    assert there.hash == read_errata(file).hash


def test_errata_without_a_licence_are_not_published(tmp_path: Path) -> None:
    file = tmp_path / "ours.jsonl"
    file.write_text(HEAD % "" + DROP, "utf-8")
    with pytest.raises(UsageError, match="no licence"):
        push_errata(file, "me/ours")
