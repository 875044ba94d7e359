"""A medium with an orientation tag is what viewers show, wherever it is read."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import datasets
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from omnidata import following, viewer
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.data.convert import convert
from omnidata.data.validate import validate
from omnidata.media import (
    encode_mp4,
    frames,
    hold,
    image,
    image_size,
    media_info,
    probe,
    read_bytes,
)
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.training.export import Options, export
from omnidata.types import (
    ByteRange,
    Completion,
    LoadedDataset,
    MediaRef,
    Message,
    ParquetLocation,
    Part,
    VideoSegment,
)
from tests.data.segment.films import turn
from tests.export.small import TAP, folder, load, rows, tree, written
from tests.loaders.agentstudio import ground
from tests.loaders.agentstudio import write as ground_rows
from tests.report.test_view import served
from tests.run.scripted import Scripted
from tests.trees import read_lines, write_lines

WIDTH, HEIGHT = 40, 64
TAG = 0x0112
BUTTON = (8, 16)
"""Where the middle of the red button is on the upright picture, in pixels."""
BACK = [2, 3, 4, 5, 8, 7, 6]
"""The tag that undoes 2, 3, ...: of what lies so, the picture is stored by it."""


def drawn() -> npt.NDArray[np.uint8]:
    """A screen without any symmetry, in blocks that a JPEG keeps."""
    pixels = np.full((HEIGHT, WIDTH, 3), 235, np.uint8)
    pixels[8:24, 0:16] = (200, 30, 30)
    pixels[48:56, 24:40] = (30, 30, 200)
    return pixels


def tag(number: int) -> Image.Exif:
    exif = Image.Exif()
    exif[TAG] = number
    return exif


def lying(number: int) -> Image.Image:
    """The screen as it lies in a file whose tag says that number."""
    flat = Image.fromarray(drawn())
    flat.getexif()[TAG] = dict(zip(range(2, 9), BACK, strict=True)).get(number, 1)
    found = ImageOps.exif_transpose(flat)
    assert found is not None
    return Image.fromarray(np.asarray(found))


def write(path: Path, number: int) -> MediaRef:
    fine: dict[str, Any] = {".jpg": {"quality": 95, "subsampling": 0}, ".webp": {"lossless": True}}
    lying(number).save(path, exif=tag(number), **fine.get(path.suffix, {}))
    return ref(path)


def ref(path: Path) -> MediaRef:
    return MediaRef("image", path.parent, path.name)


def is_upright(pixels: npt.NDArray[np.uint8]) -> bool:
    if pixels.shape != drawn().shape:
        return False
    return bool(np.abs(pixels.astype(int) - drawn()).mean() < 2)


def decoded(content: bytes) -> npt.NDArray[np.uint8]:
    """The pixels of a file as they lie there, by a reader that obeys no tag."""
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def put_into_png(path: Path, added: bytes, *, behind: bool) -> None:
    """Add a chunk before or behind the pixels."""
    content = path.read_bytes()
    at = content.rindex(b"IEND") - 4 if behind else content.index(b"IDAT") - 4
    path.write_bytes(content[:at] + added + content[at:])


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
@pytest.mark.parametrize("number", range(1, 9))
def test_all_orientations_of_all_formats_are_read_upright(
    tmp_path: Path, number: int, suffix: str
) -> None:
    shot = write(tmp_path / f"a.{suffix}", number)
    assert image_size(shot) == (WIDTH, HEIGHT)
    assert is_upright(image(shot).pixels)
    assert is_upright(decoded(read_bytes(shot)))
    assert (read_bytes(shot) == (tmp_path / shot.path).read_bytes()) == (number == 1)
    found = probe(shot)
    assert (found.width, found.height, found.turned) == (WIDTH, HEIGHT, number != 1)


def exif_behind(path: Path) -> None:
    put_into_png(path, chunk(b"eXIf", tag(6).tobytes()[6:]), behind=True)


def xmp_behind(path: Path) -> None:
    packet = b'XML:com.adobe.xmp\0\0\0\0\0<rdf tiff:Orientation="6"/>'
    put_into_png(path, chunk(b"iTXt", packet), behind=True)


def xmp_before(path: Path) -> None:
    packet = b"XML:com.adobe.xmp\0\0\0\0\0<tiff:Orientation>6</tiff:Orientation>"
    put_into_png(path, chunk(b"iTXt", packet), behind=False)


def profile(path: Path) -> None:
    block = tag(6).tobytes()
    text = f"\nexif\n{len(block):8}\n{block.hex()}\n".encode()
    data = b"Raw profile type exif\0\0" + zlib.compress(text)
    put_into_png(path, chunk(b"zTXt", data), behind=False)


@pytest.mark.parametrize("add", [exif_behind, xmp_behind, xmp_before, profile])
def test_a_png_may_keep_its_tag_anywhere(tmp_path: Path, add: Any) -> None:
    path = tmp_path / "a.png"
    lying(6).save(path)
    add(path)
    with Image.open(path) as picture:  # what others see
        assert ImageOps.exif_transpose(picture).size == (WIDTH, HEIGHT)
    assert image_size(ref(path)) == (WIDTH, HEIGHT)
    assert is_upright(image(ref(path)).pixels)
    assert is_upright(decoded(read_bytes(ref(path))))


def test_a_jpeg_may_have_the_tag_in_xmp_alone(tmp_path: Path) -> None:
    shot = ref(tmp_path / "a.jpg")
    packet = b'<x tiff:Orientation="8"/>'
    lying(8).save(tmp_path / shot.path, quality=95, subsampling=0, xmp=packet)
    assert is_upright(image(shot).pixels)
    assert is_upright(decoded(read_bytes(shot)))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # Pillow's own, of a JPEG
@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
@given(block=st.binary(max_size=40), cut=st.integers(0, 40), number=st.integers(0, 300))
def test_broken_tags_turn_nothing_and_never_raise(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, block: bytes, cut: int, number: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"broken.{suffix}"
    whole = tag(number % 65536 if number not in range(2, 9) else 9).tobytes()
    for exif in (b"Exif\0\0" + block, whole, whole[:cut]):
        Image.fromarray(drawn()).save(path, exif=exif)
        if image_size(ref(path)) == (WIDTH, HEIGHT):  # random bytes may be a tag
            assert image(ref(path)).pixels.shape == (HEIGHT, WIDTH, 3)
    Image.fromarray(drawn()).save(path, exif=whole[:cut])
    assert read_bytes(ref(path)) == path.read_bytes()


def test_marks_are_drawn_on_the_upright_picture(tmp_path: Path) -> None:
    shot = write(tmp_path / "a.png", 6)
    marked = replace(shot, marks=((0, 8, 16, 24),))
    apart = np.abs(image(marked).pixels.astype(int) - image(shot).pixels).sum(axis=2)
    rows, columns = np.nonzero(apart)
    assert (rows.min(), columns.min()) == (8, 0)
    assert rows.max() <= 24


def test_a_model_is_sent_the_upright_picture(tmp_path: Path) -> None:
    shot = write(tmp_path / "a.jpg", 6)
    prompt = (Message("user", (Part("image", media=shot, role="screenshot"),)),)
    messages, receipt = render(prompt, Capabilities())
    assert is_upright(decoded(messages[0].parts[0].data))
    (line,) = receipt["parts"]
    assert (line["width"], line["height"], line["mime"]) == (WIDTH, HEIGHT, "image/png")


def test_a_stamp_is_that_of_the_bytes_as_they_lie_there(tmp_path: Path) -> None:
    """A receipt of before the tag was obeyed goes on to hold."""
    content = write(tmp_path / "a.jpg", 6).root.joinpath("a.jpg").read_bytes()
    pq.write_table(pa.table({"shot": [{"bytes": content}]}), tmp_path / "s.parquet")
    (tmp_path / "all.bin").write_bytes(b"..." + content)
    cells = (None, ParquetLocation("s.parquet", "shot", 0), ByteRange("all.bin", 3, len(content)))
    shots = [MediaRef("image", tmp_path, "a.jpg", cell=cell) for cell in cells]
    assert all(is_upright(image(shot).pixels) for shot in shots)
    task, model = get_task("groundui"), Scripted(lambda name, attempt: Completion(text="[1, 1]"))
    model.accepts = frozenset({"image"})
    source = task.load(ground_rows(tmp_path / "rows.jsonl", *[ground()] * 3), check_media=False)
    pairs = zip(source.steps, shots, strict=True)
    steps = [replace(step, media=dict.fromkeys(step.media, shot)) for step, shot in pairs]
    evaluate(task, replace(source, steps=steps), model, tmp_path / "run")
    found = [line["receipt"]["media"] for line in read_lines(tmp_path / "run/predictions.jsonl")]
    hashes = [stamp["sha256"] for media in found for stamp in media.values()]
    assert hashes == [hashlib.sha256(content).hexdigest()] * 3


QUARTERS: dict[tuple[int, ...], list[str]] = {
    (1, 0, 0, 1): [],
    (0, 1, -1, 0): ["transpose", "left_right"],  # clockwise
    (-1, 0, 0, -1): ["left_right", "up_down"],
    (0, -1, 1, 0): ["transpose", "up_down"],
    (-1, 0, 0, 1): ["left_right"],
    (1, 0, 0, -1): ["up_down"],
    (0, 1, 1, 0): ["transpose"],
    (0, -1, -1, 0): ["transpose", "left_right", "up_down"],
}
"""What players do to a frame for a display matrix (ISO 14496-12, 8.3.2)."""


def turn_by_hand(pixels: npt.NDArray[np.uint8], matrix: tuple[int, ...]) -> Any:
    turns: dict[str, Any] = {
        "transpose": lambda each: each.swapaxes(0, 1),
        "left_right": lambda each: each[:, ::-1],
        "up_down": lambda each: each[::-1],
    }
    for name in QUARTERS[matrix]:
        pixels = turns[name](pixels)
    return pixels


@pytest.fixture(scope="module")
def clip_of_one_picture() -> bytes:
    """A second of it, with sound."""
    shown = np.repeat(drawn()[None], 30, 0)
    return encode_mp4(shown, fps=30, crf=1, sound=np.zeros(16_000, np.float32))


@pytest.mark.parametrize("matrix", QUARTERS)
def test_frames_of_a_clip_are_turned_as_players_turn_them(
    clip_of_one_picture: bytes, tmp_path: Path, matrix: tuple[int, ...]
) -> None:
    plain = MediaRef("video", tmp_path, "plain.mp4")
    for name in ("plain.mp4", "turned.mp4"):
        (tmp_path / name).write_bytes(clip_of_one_picture)
    turn(tmp_path / "turned.mp4", matrix)
    clip = MediaRef("video", tmp_path, "turned.mp4")
    before, after = frames(plain, num_frames=2).pixels, frames(clip, num_frames=2).pixels
    wanted = turn_by_hand(before[0], matrix)
    assert np.array_equal(after[0], wanted)
    found, about = probe(clip), media_info(hold(clip))
    size = wanted.shape[1], wanted.shape[0]
    assert (found.width, found.height, found.turned) == (*size, matrix != (1, 0, 0, 1))
    assert (about.width, about.height) == size
    content = read_bytes(clip)
    assert (content == (tmp_path / "turned.mp4").read_bytes()) == (matrix == (1, 0, 0, 1))
    with av.open(io.BytesIO(content), "r") as container:  # by a reader that obeys no matrix
        assert len(container.streams.audio) == 1
        assert container.streams.video[0].frames == 30
        first = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert np.abs(first.astype(int) - wanted).mean() < 3
    cut = MediaRef("image", tmp_path, "shot.png", cell=VideoSegment("turned.mp4", 0.5, 0.5))
    assert np.abs(image(cut).pixels.astype(int) - wanted).mean() < 3


def test_a_clip_that_is_turned_is_counted_and_exported_upright(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=[TAP])
    turn(folder(data) / "1.mp4", (-1, 0, 0, -1))
    found = validate(load(data), workers=0).findings[-1]
    assert (found.code, found.what[:6]) == ("media-turned", "1 clip")
    written(data, tmp_path / "out")
    (video,) = rows(tmp_path / "out")[0]["videos"]
    content = (tmp_path / "out" / video).read_bytes()
    assert content != (folder(data) / "1.mp4").read_bytes()
    wanted = frames(MediaRef("video", folder(data), "1.mp4"), num_frames=1).pixels[0]
    with av.open(io.BytesIO(content), "r") as container:
        first = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert np.abs(first.astype(int) - wanted).mean() < 8


@pytest.fixture
def source(tmp_path: Path) -> LoadedDataset:
    """Two steps: a picture with a tag, and one without."""
    (tmp_path / "data" / "images").mkdir(parents=True)
    write(tmp_path / "data" / "images" / "turned.jpg", 6)
    Image.fromarray(drawn()).save(tmp_path / "data" / "images" / "plain.png")
    click = {"action_type": "click", "x": BUTTON[0], "y": BUTTON[1]}
    own = {"goal": "Press the red button", "episode_id": 1, "action": click}
    names = enumerate(("turned.jpg", "plain.png"))
    lines = [{**own, "image_path": name, "step_id": number} for number, name in names]
    write_lines(tmp_path / "data" / "rows.jsonl", lines)
    return get_task("androidcontrol").load(tmp_path / "data")


def test_one_finding_counts_the_pictures(source: LoadedDataset) -> None:
    assert [step.screen for step in source.steps] == [(WIDTH, HEIGHT)] * 2
    for findings in (source.findings, validate(source, workers=0).findings[-1:]):
        (found,) = findings
        assert (found.code, found.severity) == ("media-turned", "warning")
        assert found.what == "1 picture with an orientation tag (EXIF, display matrix)"
        assert found.sample_ids == ("1/0",)


@pytest.mark.parametrize("copy", [False, True])
def test_an_export_holds_upright_pictures_without_a_tag(
    source: LoadedDataset, tmp_path: Path, copy: bool
) -> None:
    out, options = tmp_path / "out", Options(format="trl", shares={"train": 1.0}, copy=copy)
    export(get_task("androidcontrol"), source, out, options)
    found = rows(out)
    for row in found:
        assert is_upright(decoded((out / row["images"][0]).read_bytes()))
    assert found[0]["completion"] == found[1]["completion"]
    answer = json.loads(found[0]["completion"][0]["content"][0]["text"])
    sides = zip(BUTTON, (WIDTH, HEIGHT), strict=True)
    assert answer["coordinate"] == [round(1000 * place / side) for place, side in sides]


@pytest.mark.parametrize("embed", [True, False], ids=["embed", "link"])
def test_datasets_shows_a_converted_picture_in_the_size_of_its_screen(
    source: LoadedDataset, tmp_path: Path, embed: bool
) -> None:
    out, cache = tmp_path / "repo", str(tmp_path / "cache")
    convert(source, out, embed=embed)
    shown = datasets.load_dataset(str(out), split="test", cache_dir=cache)
    for row in shown.cast_column("screenshot", datasets.Image()):
        assert is_upright(np.asarray(row["screenshot"].convert("RGB")))
        assert (row["screen_width"], row["screen_height"]) == (WIDTH, HEIGHT)
    with following([source.root]):
        shots = [step.media["screenshot"] for step in get_task("androidcontrol").load(out).steps]
        assert all(shot and is_upright(image(shot).pixels) for shot in shots)


def test_pages_show_the_upright_picture_to_every_browser(
    source: LoadedDataset, tmp_path: Path
) -> None:
    evaluate(get_task("androidcontrol"), source, "baseline:oracle", tmp_path / "run")
    viewer.write(read_run(tmp_path / "run"), tmp_path / "pages")
    (copied,) = (tmp_path / "pages" / "media").iterdir()
    assert is_upright(decoded(copied.read_bytes()))
    page = (tmp_path / "pages" / "steps" / "0.html").read_text()
    assert f"media/{copied.name}" in page
    assert 'turned.jpg"' not in page
    assert "plain.png" in (tmp_path / "pages" / "steps" / "1.html").read_text()


def test_a_server_of_pages_gives_the_upright_picture(source: LoadedDataset) -> None:
    with served("androidcontrol", source.root) as server:
        status, headers, content = server.ask("/media/0")
        assert (status, headers["Content-Type"]) == (200, "image/png")
        assert is_upright(decoded(content))
        assert server.ask("/media/1")[2] == (source.root / "images" / "plain.png").read_bytes()


def test_pillow_does_not_warn_the_user_of_broken_tags(tmp_path: Path) -> None:
    Image.fromarray(drawn()).save(tmp_path / "a.jpg", exif=tag(3).tobytes()[:-8])
    program = (
        "import sys; from pathlib import Path; from omnidata.media import image_size\n"
        "from omnidata.types import MediaRef\n"
        "print(image_size(MediaRef('image', Path(sys.argv[1]), 'a.jpg')))"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"({WIDTH}, {HEIGHT})\n", "")
