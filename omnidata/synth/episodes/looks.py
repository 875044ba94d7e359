"""The made-up apps: names, colours, type, arrangement and language, each by its number."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from omnidata.actions import Screen
from omnidata.data.sample.canvas import Rect, Theme
from omnidata.data.sample.icons import ICONS
from omnidata.loaders.omnigui_apps import Language
from omnidata.synth.episodes.vocabulary import CODES, WORDS

_FIRST = (
    "Ara",
    "Belo",
    "Ciro",
    "Dova",
    "Elki",
    "Fino",
    "Gala",
    "Hilo",
    "Juno",
    "Kavi",
    "Luma",
    "Miro",
)
_LAST = ("ly", "tor", "nest", "wave", "dash", "mint", "hub", "pad")

Arrangement = Literal["grid", "column", "row", "stairs"]
_ARRANGEMENTS: tuple[Arrangement, ...] = ("grid", "column", "row", "stairs")
Style = Literal["filled", "tinted", "outlined"]
_STYLES: tuple[Style, ...] = ("filled", "tinted", "outlined")
Type = Literal["plain", "bold", "pixel"]
_TYPES: tuple[Type, ...] = ("plain", "bold", "pixel")


@dataclass(frozen=True, slots=True)
class Look:
    """How an app looks.

    Attributes:
        name: of the app.
        language: of its instructions.
        words: the language of its screens, a key of `WORDS`.
        theme: its colours.
        arrangement: how four buttons lie.
        style: of the buttons.
        type: of the texts.
        radius: of corners, in [0, 0.5] of the shorter side.
        stage_first: whether the stage, where signs and motions are, lies above the buttons.
        title, navigation: whether there is a bar at the top, at the bottom.
        icons: whether the buttons have one.
    """

    name: str
    language: Language
    words: str
    theme: Theme
    arrangement: Arrangement
    style: Style
    type: Type
    radius: float
    stage_first: bool
    title: bool
    navigation: bool
    icons: bool


@lru_cache(maxsize=128)
def look(seed: int, number: int) -> Look:
    """The app of a number from 0 on; it does not depend on how many there are."""
    rng = random.Random(f"{seed}/app/{number}")
    numbers = list(range(len(_FIRST) * len(_LAST)))
    random.Random(f"{seed}/names").shuffle(numbers)
    name = _FIRST[numbers[number] // len(_LAST)] + _LAST[numbers[number] % len(_LAST)]
    theme = (Theme.light, Theme.dark)[rng.random() < 0.4](name, hue=rng.random())
    language: Language = "zh" if rng.random() < 0.4 else "en"
    return Look(
        name=name,
        language=language,
        words="en" if rng.random() < 0.4 else rng.choice(tuple(WORDS)),
        theme=theme,
        arrangement=rng.choice(_ARRANGEMENTS),
        style=rng.choice(_STYLES),
        type=rng.choice(_TYPES),
        radius=rng.choice((0.0, 0.12, 0.25, 0.5)),
        stage_first=rng.random() < 0.7,
        title=rng.random() < 0.8,
        navigation=rng.random() < 0.6,
        icons=rng.random() < 0.7,
    )


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are on a screen of an app, in pixels.

    Attributes:
        title, navigation: the bars; None where there is none.
        progress: a line that tells how far the episode has come.
        stage: for signs and motions.
        panel: for what is touched.
        options: four buttons in the panel.
        unit: a hundredth of the width of a phone's screen, for the size of texts.
    """

    title: Rect | None
    navigation: Rect | None
    progress: Rect
    stage: Rect
    panel: Rect
    options: tuple[Rect, ...]
    unit: float


def places(look: Look, size: Screen) -> Places:
    """Lay out a screen of any size."""
    width, height = size
    top = round(height * 0.1) if look.title else round(height * 0.03)
    bottom = height - (round(height * 0.08) if look.navigation else round(height * 0.02))
    edge = round(width * 0.04)
    gap = max(1, round(min(2 * width, height) * 0.02))
    split = 0.42 if look.arrangement != "row" else 0.6
    high = bottom - top - 3 * gap
    stage_high = round(high * split)
    first = (edge, top + gap)
    if look.stage_first:
        stage_top, panel_top = first[1], first[1] + stage_high + gap
    else:
        panel_top, stage_top = first[1], first[1] + high - stage_high + gap
    panel = (edge, panel_top, width - edge, panel_top + high - stage_high)
    return Places(
        title=(0, 0, width, top) if look.title else None,
        navigation=(0, bottom, width, height) if look.navigation else None,
        progress=(edge, top, width - edge, top + max(1, gap // 2)),
        stage=(edge, stage_top, width - edge, stage_top + stage_high),
        panel=panel,
        options=_options(look.arrangement, panel, gap),
        unit=min(width, height * 0.6) / 100,
    )


def _options(arrangement: Arrangement, panel: Rect, gap: int) -> tuple[Rect, ...]:
    left, top, right, bottom = panel
    columns = {"grid": 2, "column": 1, "row": CODES, "stairs": 1}[arrangement]
    rows = CODES // columns
    wide = (right - left - gap * (columns - 1)) / columns
    high = (bottom - top - gap * (rows - 1)) / rows
    boxes = []
    for number in range(CODES):
        x = left + (number % columns) * (wide + gap)
        y = top + (number // columns) * (high + gap)
        if arrangement == "stairs":  # every second one keeps to the right
            half = wide * 0.6
            x, reach = (x, half) if number % 2 == 0 else (right - half, half)
        else:
            reach = wide
        boxes.append((round(x), round(y), round(x + reach), round(y + high)))
    return tuple(boxes)


ICON_NAMES = tuple(sorted(ICONS))
"""What buttons may show."""
