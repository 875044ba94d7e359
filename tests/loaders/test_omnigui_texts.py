"""Instructions stand in the column of their language; histories say what the targets say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks.omnigui.load import load
from tests.trees import codes, load_rows, row, write_app


def differing(tmp_path: Path, texts: Sequence[str], column: str) -> list[str]:
    """The texts that are reported as not in the language of their column."""
    rows = [row(f"E{n}", 0, **{column: text}) for n, text in enumerate(texts)]
    found = [f for f in load_rows(tmp_path, *rows).findings if f.code == "language-differs"]
    assert all(column in finding.what for finding in found)
    return [texts[int(finding.where.split("/")[1].removeprefix("E"))] for finding in found]


def test_english_may_quote_chinese_and_chinese_is_not_english(tmp_path: Path) -> None:
    right = ["Tap Share", "Search for 周杰伦", "Open 微信 and tap “发现”, then scroll down",
             "Find “这里有一家非常好吃的火锅店” and save it", "Café", "", "42",
             "微信: open the chat with Anna", "[微信] Open settings", "'打开' the app",
             "Search 蓝牙耳机 on 淘宝", "Play '周杰伦的晴天和稻香' in QQ",
             "Don't open Anna's 微信"]  # fmt: skip
    wrong = ["设定を開く", "カメラ", "Откройте YouTube", "설정 열기", "点击分享", "“搜索”",
             "打开 Paper Lanterns and Night Ferry", "Open 然后点击右上角的分享按钮"]  # fmt: skip
    assert differing(tmp_path, [*right, *wrong], "instruction_en") == wrong


def test_chinese_may_name_english_apps_and_is_not_another_language(tmp_path: Path) -> None:
    right = ["点击分享", "打开 YouTube", "Spotify 搜索音乐", "", "42", "𠮷",
             "QQ", "WeChat", "打开“カメラ”", "鲜の每日"]  # fmt: skip
    wrong = ["設定を開いて共有をタップ", "한국어 設定", "Tap Share", "Нажмите", "タップ", "탭"]
    assert differing(tmp_path, [*right, *wrong], "instruction_zh") == wrong


def test_a_text_in_the_wrong_column_is_reported_once_per_episode(tmp_path: Path) -> None:
    app = write_app(
        tmp_path / "TED", [row("A", n, instruction_en="点击分享") for n in range(3)] + [row("B")]
    )
    found = [f for f in load(app).findings if f.code == "language-differs"]
    assert [finding.where.split(" ")[0] for finding in found] == ["TED/A/0"]
    assert "instruction_en" in found[0].what


def test_the_released_instruction_of_an_english_app_may_be_english(tmp_path: Path) -> None:
    assert codes(load_rows(tmp_path, row(app="ted", instruction="Tap Share"))) == {}
    wrong = load_rows(tmp_path, row(app="bilibili", instruction="Tap Share", instruction_en="Tap"))
    assert codes(wrong) == {"language-differs": 1}


def history(*texts: str) -> list[dict[str, Any]]:
    return [{"step_index": n, "action_text": text} for n, text in enumerate(texts)]


def episode(tmp_path: Path, said: object, **changes: Any) -> dict[str, int]:
    """Findings for an episode whose second row brings a history."""
    source = load_rows(tmp_path, row(**changes), row(step=1, action_history=said))
    return dict(codes(source))


@pytest.mark.parametrize(
    "text",
    ["TAP at [390, 511]", "TAP at [292, 495]", "TAP", "tap the heart", "点击", "",
     "TAPPING at [1, 2]", "BACK to the start screen by touching the arrow",
     "TAP at [1, 2] and hold", "HOME, sweet home"],
)  # fmt: skip
def test_a_history_that_may_be_said_of_the_target_passes(tmp_path: Path, text: str) -> None:
    assert episode(tmp_path, history(text)) == {}


@pytest.mark.parametrize("text", ["TAP at [10, 511]", "TAP at [390, 800]", "LONG_PRESS", "BACK"])
def test_a_history_of_another_action_is_found(tmp_path: Path, text: str) -> None:
    assert episode(tmp_path, history(text)) == {"history-differs": 1}


def test_the_ends_and_the_text_of_a_history_are_compared(tmp_path: Path) -> None:
    swipe = {"result_action_type": 3, "result_lift_xy": "[[210,100],[351,150]]"}
    right, wrong = (f"SWIPE_UP from [390, 511] to [390, {end}]" for end in (78, 500))
    assert episode(tmp_path, history(right), **swipe) == {}
    assert episode(tmp_path, history(wrong), **swipe) == {"history-differs": 1}
    typing = {"result_action_type": 7, "result_action_text": 'say "hi"'}
    assert episode(tmp_path, history('INPUT text: "say "hi""'), **typing) == {}
    assert episode(tmp_path, history('INPUT text: "bye"'), **typing) == {"history-differs": 1}


def test_the_rows_own_words_are_compared(tmp_path: Path) -> None:
    assert episode(tmp_path, history("tap  the heart "), action_text="tap the heart") == {}
    found = episode(tmp_path, history("TAP at [390, 511]"), action_text="tap the heart")
    assert found == {"history-differs": 1}


@pytest.mark.parametrize(
    "said",
    [[], history("TAP", "TAP"), [{"step_index": 1, "action_text": "TAP"}],
     [{"step_index": [0], "action_text": "TAP"}], [{"step_index": None, "action_text": None}],
     ["TAP"], [1], [{"step": 0}], [{"step_index": 0}], [None]],
)  # fmt: skip
def test_a_list_that_is_no_history_or_of_other_steps_is_found(tmp_path: Path, said: object) -> None:
    assert episode(tmp_path, said) == {"history-differs": 1}


@pytest.mark.parametrize("said", [None, "TAP", 5, {}])
def test_what_is_no_history_is_built_from_the_targets(tmp_path: Path, said: object) -> None:
    assert episode(tmp_path, said) == {}


def test_a_wrong_entry_that_later_rows_carry_on_is_reported_once(tmp_path: Path) -> None:
    texts = ["BACK", "TAP", "TAP", "HOME"]
    rows = [row(step=n, action_history=history(*texts[:n])) for n in range(5)]
    found = [f for f in load_rows(tmp_path, *rows).findings if f.code == "history-differs"]
    assert [finding.where.split(" ")[0] for finding in found] == ["unknown/T1/1", "unknown/T1/4"]
