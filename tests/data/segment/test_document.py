"""docs/segment.md says what is so."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from omnidata.data.segment import segment
from tests.data.segment.films import film

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "segment.md"
pytestmark = pytest.mark.skipif(
    not DOCUMENT.is_file(), reason="needs a checkout: the sdist has no docs"
)


def test_the_example_gives_the_spans_that_the_text_names(tmp_path: Path) -> None:
    log = tmp_path / "actions.jsonl"
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text("utf-8"), re.S)
    head, *rows = blocks[0].splitlines()
    head = json.dumps({**json.loads(head), "screen": [720, 1600]})  # the film's is smaller
    log.write_text("\n".join((head, *rows)), encoding="utf-8")
    recording = film(tmp_path / "talk.mp4", count=115, fps=Fraction(5), size=(72, 160))
    made = segment(recording, log, tmp_path / "data")
    spans = [(span.clip_s, span.start_s, span.screenshot_s) for span in made.spans]
    assert spans == [(0.0, 4.2, 3.7), (9.5, 19.5, 19.0), (19.5, 22.0, 21.5)]
    assert [finding.code for finding in made.findings] == ["sound-missing"]


def test_every_finding_of_the_segmenter_is_documented() -> None:
    package = DOCUMENT.parents[1] / "omnidata"
    recorder = package / "tasks" / "agentnet" / "recordings.py"
    text = DOCUMENT.read_text("utf-8")
    codes = {
        code
        for path in (*(package / "data" / "segment").glob("*.py"), recorder)
        for code in re.findall(r'"([a-z]+-[a-z]+)",\s+"(?:error|warning)"', path.read_text("utf-8"))
    }
    assert len(codes) == 14
    assert {code for code in codes if f"`{code}`" not in text} == set()
