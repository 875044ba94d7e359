"""The mistakes, by the code of the finding that each is to make."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image

from omnidata.actions import NUMBERS
from tests.data.planted import CHINESE, ENGLISH, STEPS, Plant, Row, Spot
from tests.data.tiny import FPS, FRAMES, SIZE, bomb, mp4, png, wav


def _later(spot: Spot, first: int) -> None:
    """Choose a step that has so many before it."""
    spot.step = spot.rng.randrange(first, STEPS)


def _missing(spot: Spot) -> str:
    spot.any_file().unlink()
    return spot.sample


def _empty(spot: Spot) -> str:
    spot.any_file().write_bytes(b"")
    return spot.sample


def _truncated(spot: Spot) -> str:
    path = spot.any_file()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * spot.rng.uniform(0.3, 0.95))])
    return spot.sample


def _unreadable(spot: Spot) -> str:
    spot.any_file().write_bytes(b"no medium " + spot.rng.randbytes(3000))
    return spot.sample


def _refused(spot: Spot) -> str:
    path = spot.any_file()
    path.unlink()
    kind = spot.rng.choice(("pipe", "link", "device", "folder", "bomb"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        if path.suffix != ".png":
            path.write_bytes(mp4(0) if path.suffix == ".mp4" else wav(0))
            path = spot.file("png")
        path.write_bytes(bomb())
    return spot.sample


def _unnamed(spot: Spot) -> str:
    spot.row[spot.rng.choice(("video_path", "audio_path"))] = ""
    return spot.sample


def _other_size(spot: Spot) -> str:
    spot.file("png").write_bytes(png(99, (76, 160)))
    return spot.sample


def _other_shape(spot: Spot) -> str:
    spot.file("mp4").write_bytes(mp4(99, size=(80, 36)))
    return spot.sample


def _blank(spot: Spot) -> str:
    out = io.BytesIO()
    Image.new("RGB", SIZE, tuple(spot.rng.randbytes(3))).save(out, "PNG")
    spot.file("png").write_bytes(out.getvalue())
    return spot.sample


def _repeated(spot: Spot) -> str:
    _later(spot, 1)
    if spot.rng.random() < 0.5:
        spot.file("png").write_bytes(spot.file("png", spot.step - 1).read_bytes())
    else:
        spot.row["image_path"] = spot.rows[spot.rng.randrange(spot.step)]["image_path"]
    return spot.sample


def _frozen(spot: Spot) -> str:
    _later(spot, 1)
    spot.file("mp4").write_bytes(mp4(spot.step, moves=False))
    return spot.sample


def _silent(spot: Spot) -> str:
    spot.file("wav").write_bytes(wav(0, volume=0))
    return spot.sample


def _length(spot: Spot) -> str:
    seconds = FRAMES / FPS * spot.rng.choice((0.5, 1.5, 3))
    spot.file("wav").write_bytes(wav(1, seconds=seconds))
    return spot.sample


def _history(spot: Spot) -> str:
    _later(spot, 1)
    wrong = spot.rng.choice(("kind", "place", "missing", "later", "text"))
    entries: list[Row] = [
        {"step_index": number, "action_text": "TAP at [278, 188]"} for number in range(spot.step)
    ]
    entry = entries[at := spot.rng.randrange(spot.step)]
    if wrong == "kind":
        entry["action_text"] = "SWIPE_UP from [278, 188] to [278, 100]"
    elif wrong == "place":
        entry["action_text"] = "TAP at [188, 278]"
    elif wrong == "missing":
        entries.remove(entry)
    elif wrong == "later":
        entry["step_index"] = spot.step
    else:
        spot.rows[at]["action_text"] = "tap the heart"
        entry["action_text"] = "tap the star"
    spot.row["action_history"] = entries
    return spot.sample


def _history_screenshot(spot: Spot) -> str:
    spot.step = 2
    spot.row["history_screenshot_path"] = spot.rows[1]["image_path"]
    return spot.sample


def _language(spot: Spot) -> str:
    column = spot.rng.choice(("instruction_en", "instruction_zh"))
    text = {"instruction_en": CHINESE, "instruction_zh": ENGLISH}[column]
    if column in spot.row and spot.rng.random() < 0.5:
        spot.row[column] = text
        return spot.sample
    spot.metadata[column] = text
    return f"{spot.app}/{spot.episode}"


MEDIA: Mapping[str, Plant] = {
    "media-missing": _missing,
    "media-empty": _empty,
    "media-truncated": _truncated,
    "media-unreadable": _unreadable,
    "media-refused": _refused,
    "media-unnamed": _unnamed,
    "size-differs": _other_size,
    "aspect-differs": _other_shape,
    "screenshot-blank": _blank,
    "screenshot-repeated": _repeated,
    "clip-frozen": _frozen,
    "audio-silent": _silent,
    "length-mismatch": _length,
    "history-differs": _history,
    "history-screenshot-differs": _history_screenshot,
    "language-differs": _language,
}
"""Mistakes that show in a tree with media."""


def _set(column: str, *values: Any, **others: Any) -> Plant:
    """A row with another value in a column."""

    def plant(spot: Spot) -> str:
        spot.row.update({column: spot.rng.choice(values), **others})
        return spot.sample

    return plant


def _own_line(column: str, value: Any) -> Plant:
    def plant(spot: Spot) -> str:
        spot.metadata[column] = value
        return f"{spot.app}/{spot.episode}"

    return plant


def _new_line(line: Callable[[Spot], Any], where: str = "") -> Plant:
    """One more line in a metadata file; a finding names it unless `where` is given."""

    def plant(spot: Spot) -> str:
        name = spot.rng.choice(sorted(spot.lines))
        spot.lines[name].append(line(spot))
        place = f"{spot.tree / spot.app / name}:{len(spot.lines[name])}"
        return where.format(app=spot.app, episode=spot.episode) or place

    return plant


def _side_line(line: Callable[[Spot], Any]) -> Plant:
    """One more line in dependency.jsonl."""

    def plant(spot: Spot) -> str:
        spot.side.append(line(spot))
        return f"{spot.tree / 'dependency.jsonl'}:{len(spot.side)}"

    return plant


def _app(spot: Spot) -> str:
    spot.metadata["app"] = "Another"
    return str(spot.tree / spot.app)


def _unlisted(spot: Spot) -> str:
    lines = spot.lines["localization.jsonl"]
    lines[lines.index(spot.metadata)] = ""
    return f"{spot.app}/{spot.episode}"


def _copies(spot: Spot) -> str:
    spot.copies[spot.step]["result_touch_xy"] = "[1, 2]"
    return str(spot.trace)


def _unmatched(spot: Spot) -> str:
    spot.side.append({"app": spot.app, "ID": "nobody", "dependency": "present"})
    return f"{spot.app.lower()}/nobody"


def _partly(spot: Spot) -> str:
    spot.row["twins"] = "G1"
    return f"{spot.app}/{spot.episode}"


def _placeless(spot: Spot) -> str:
    spot.rows.append({**spot.row, "step_id": spot.rng.choice((None, -1, "one"))})
    return str(spot.trace)


def _twice(spot: Spot) -> str:
    spot.rows.append({**spot.row, "result_touch_xy": "[5, 5]"})
    return spot.sample


def _gap(spot: Spot) -> str:
    del spot.rows[spot.rng.randrange(STEPS - 1)]
    return f"{spot.app}/{spot.episode}"


def _shorter(spot: Spot) -> str:
    spot.rows.pop()
    return f"{spot.app}/{spot.episode}"


def _uninstructed(spot: Spot) -> str:
    spot.metadata["instruction_en"] = spot.row["instruction_en"] = ""
    return spot.sample


def _untold(spot: Spot) -> str:
    for column in [name for name in spot.row if name.startswith("result_")]:
        del spot.row[column]
    return spot.sample


_SWIPE = NUMBERS["SWIPE_UP"]
_INPUT = NUMBERS["INPUT"]

ANNOTATIONS: Mapping[str, Plant] = {
    "app-differs": _app,
    "episode-without-id": _new_line(lambda spot: {"ID": "", "app": spot.app}),
    "episode-repeated": _new_line(lambda spot: {"ID": spot.episode, "app": spot.app}),
    "episode-without-steps": _new_line(
        lambda spot: {"ID": f"{spot.episode}-gone", "app": spot.app}, "{app}/{episode}-gone"
    ),
    "episode-without-metadata": _unlisted,
    "json-invalid": _new_line(lambda spot: '{"ID": '),
    "copies-differ": _copies,
    "dependency-unreadable": _side_line(lambda spot: {"app": spot.app, "ID": spot.episode}),
    "dependency-contradicts": _side_line(
        lambda spot: {"app": spot.app, "ID": spot.episode, "dependency": "critical"}
    ),
    "dependency-unmatched": _unmatched,
    "twins-differ": _partly,
    "label-unknown": _own_line("dependency", "high"),
    "language-unknown": _own_line("language", None),
    "instruction-missing": _uninstructed,
    "step-without-place": _placeless,
    "step-repeated": _twice,
    "step-gap": _gap,
    "length-differs": _shorter,
    "size-unknown": _set("image_width", None, 0, "wide"),
    "path-unsafe": _set("image_path", "../1.png", "/etc/passwd", "http://host/1.png"),
    "action-unknown": _set("result_action_type", None, 12, "TAP"),
    "target-absent": _untold,
    "text-missing": _set("result_action_text", None, 5, result_action_type=_INPUT),
    "text-empty": _set("result_action_text", "", result_action_type=_INPUT),
    "target-missing": _set("result_touch_xy", "", None, []),
    "target-unreadable": _set("result_touch_xy", "[[1, 2", "[1, 2, 3]", {"x": 1}),
    "target-outside": _set("result_touch_xy", "[[10, 20], [30, 161]]", "[73, 20]", "[-1, 5]"),
    "lift-unreadable": _set("result_lift_xy", "[1, 2, 3]", "here", result_action_type=_SWIPE),
}
"""Mistakes that show in annotations alone."""
