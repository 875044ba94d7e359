"""Models are rows: the paper's, the user's, and those of other distributions."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters import get_adapter
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.types import Adapter, GenerationParams
from tests.adapters.asking import ask
from tests.adapters.servers import ChatCompletions, running
from tests.adapters.shown import Shown
from tests.cli.running import as_json, omnidata
from tests.trees import NO_SHARED, SHARED

URL = "http://127.0.0.1:9"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/models.md"
OF_TABLE_6 = {
    "Gemini 3.0 Pro": "gemini-3-pro",
    "Gemini 3.0 Flash": "gemini-3-flash",
    "Gemini 2.5 Pro": "gemini-2.5-pro",
    "Gemini 2.5 Flash": "gemini-2.5-flash",
    "Qwen3-Omni": "qwen3-omni",
    "MiniCPM-o 4.5": "minicpm-o-4.5",
    "VITA-1.5": "vita-1.5",
    "Baichuan-Omni-1.5": "baichuan-omni-1.5",
}


def get(
    spec: str, options: Mapping[str, str] = {}, *, base_url: str | None = URL, **how: Any
) -> Adapter:
    """A model that is not asked, so it needs no key."""
    task = get_task("omnigui")
    return get_adapter(spec, task, [], options=options, base_url=base_url, asks=False, **how)


def options_of(spec: str) -> list[str]:
    """The options of a model, as it names them where one does not exist."""
    with pytest.raises(UsageError) as caught:
        get(spec, {"no-such": "1"})
    return caught.value.expected.removeprefix("one of ").split(", ")


def wires_of(folder: Path) -> list[str]:
    """The wire formats, as a row of none of them names them."""
    with pytest.raises(UsageError) as caught:
        get("m", models=write(folder / "models.toml", '[m]\nwire = "no-such"\nmodel = "x"'))
    return caught.value.expected.removeprefix("one of ").split(", ")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
def test_presets_decode_as_table_6_says() -> None:
    tables = json.loads((SHARED / "tables/omnigui.json").read_text(encoding="utf-8"))
    rows = {row["model"]: row for row in tables["table6"]}
    assert rows.keys() == OF_TABLE_6.keys()
    for model, name in OF_TABLE_6.items():
        printed = [rows[model][column] for column in ("temperature", "max_tokens", "seed")]
        heat, most, seed = (None if value == "Server Default" else value for value in printed)
        assert GenerationParams(heat, most, seed) == get(name).params, name


def test_every_row_makes_a_model_in_both_layouts() -> None:
    names = as_json(omnidata("info", "--json"))["presets"]
    assert {*OF_TABLE_6.values(), "gemini-3.1-pro"} == {*names}
    for name in names:
        for layout in ("paper", "release"):
            adapter = get(name, {"layout": layout})
            assert adapter.name == name
            assert adapter.settings["layout"] == layout
            assert sorted(adapter.accepts or ()) == ["audio", "image", "video"]
            assert json.loads(json.dumps(adapter.settings)) == adapter.settings


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "qwen3-omni"])
def test_the_release_sends_four_frames_where_the_paper_has_the_clip(name: str) -> None:
    assert get(name).settings["capabilities"]["video"] == "native"
    release = get(name, {"layout": "release"}).settings["capabilities"]
    assert (release["video"], release["frames"], release["frame_times"]) == ("frames", 4, False)


def test_the_command_line_has_the_last_word() -> None:
    adapter = get(
        "qwen3-omni",
        {
            "layout": "release",
            "frames": "7",
            "temperature": "none",
            "max_new_tokens": "16",
            "seed": "3",
            "image_size": "640",
            "max_images": "5",
            "accepts": "image, video",
            "extra_body": '{"reasoning_effort": "none"}',
        },
    )
    assert adapter.params == GenerationParams(None, 16, 3)
    taken = adapter.settings["capabilities"]
    assert (taken["frames"], taken["image_size"], taken["max_images"]) == (7, 640, 5)
    assert taken["accepts"] == ["image", "video"]
    assert adapter.settings["extra_body"] == {"reasoning_effort": "none"}
    assert adapter.settings["audio_part"] == "audio_url"  # still the release's


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("frame", "4", "no option"),
        ("fps", "2", "no option"),  # Gemini's
        ("frames", "0", ">= 1"),
        ("frames", "many", "int"),
        ("frames", "none", "int"),
        ("temperature", "-1", ">= 0"),
        ("temperature", "nan", ">= 0"),
        ("temperature", "inf", "<= 100"),
        ("layout", "papre", "paper, release"),
        ("video", "", "native, frames"),
        ("degrade", "maybe", "bool"),
        ("accepts", "image,smell", "image, video, audio"),
        ("extra_body", "{", "truncated"),
        ("extra_body", "[1]", "object"),
        ("extra_body", "\ud800", "surrogates"),
    ],
)
def test_options_that_do_not_exist_are_refused(option: str, value: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        get("openai:m", {option: value})
    assert f"-M {option}=" in str(caught.value)


@given(data=st.data(), value=st.text() | st.sampled_from(["[" * 9999, "1e999"]))
def test_no_text_of_an_option_does_worse_than_to_be_refused(
    data: st.DataObject, value: str
) -> None:
    option = data.draw(st.sampled_from(options_of("openai:m")))
    with contextlib.suppress(UsageError):
        json.dumps(get("openai:m", {option: value}).settings, allow_nan=False)


@given(st.text(alphabet="[]\"'=m\n.,{}1e", max_size=40) | st.sampled_from(["a=" + "[" * 9999]))
def test_no_file_of_models_does_worse_than_to_be_refused(text: str) -> None:
    with TemporaryDirectory() as folder, contextlib.suppress(UsageError):
        get("m", models=write(Path(folder) / "models.toml", text))


def test_options_are_those_of_the_wire_format() -> None:
    every = {"layout", "video", "frames", "temperature", "extra_body", "accepts"}
    assert every | {"fps"} <= {*options_of("gemini-2.5-pro")}
    assert every | {"audio_part"} <= {*options_of("qwen3-omni")}
    assert not {"fps"} & {*options_of("qwen3-omni")}
    assert not {"audio_part"} & {*options_of("gemini-2.5-pro")}


@pytest.mark.parametrize(
    ("spec", "body", "name"),
    [
        *(
            ("openai:m", {name: 1}, name)
            for name in ("model", "messages", "stream", "temperature", "max_tokens", "n")
        ),
        ("gemini:m", {"contents": []}, "contents"),
        ("gemini:m", {"generationConfig": {"temperature": 1}}, "generationConfig.temperature"),
        ("anthropic:m", {"tools": []}, "tools"),
        ("openai-responses:m", {"tools": []}, "tools"),
        ("minicpm-o-4.5", {"messages": "x"}, "messages"),
        ("minicpm-o-4.5", {"temperature": "x"}, "temperature"),
        ("minicpm-o-4.5", {"images": "x"}, "images"),
        ("vita-1.5", {"question": "x"}, "question"),
        ("vita-1.5", {"image": "x"}, "image"),
        ("baichuan-omni-1.5", {"text_query": "x"}, "text_query"),
        ("baichuan-omni-1.5", {"video_file": "x"}, "video_file"),
    ],
)
def test_extra_body_cannot_say_what_has_an_option(
    spec: str, body: dict[str, Any], name: str
) -> None:
    with pytest.raises(UsageError, match=f'"{name}" is not for extra_body'):
        get(spec, {"extra_body": json.dumps(body)})


def test_four_lines_make_a_model(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(ChatCompletions()) as server:
        row = f'[my-model]\nwire = "openai"\nmodel = "some/model"\nbase_url = "{server.url}/v1"\n'
        file = write(tmp_path / "models.toml", row)
        monkeypatch.setenv("OMNIDATA_MODELS", str(file))
        text = ask(get("my-model", base_url=None), shown.request).text
        assert server.asked[0].payload["model"] == "some/model"
    assert text.split("\n")[-3] == shown.seen()[-2]
    monkeypatch.delenv("OMNIDATA_MODELS")
    assert get("my-model", models=file).settings["model"] == "some/model"
    with pytest.raises(UsageError, match='no model is called "my-model"') as caught:
        get("my-model", base_url=None)
    assert "qwen3-omni" in caught.value.expected
    with pytest.raises(UsageError, match="No such file"):
        get("m", models=tmp_path / "absent.toml")


ROW = '[m]\nwire = "openai"\nmodel = "x"\n'


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("[m", "", "Expected"),
        ("m = 1", ": [m]", "object"),
        ('[m]\nmodel = "x"', ": [m]", "wire"),
        ('[m]\nwire = "openai"', ": [m]", "model"),
        (ROW.replace("openai", "opnai"), ": [m] wire", "gemini, minicpm, openai"),
        (f"{ROW}frame = 4", ": [m]", "frames"),
        (f'{ROW}frames = "4"', ": [m] frames", "int"),
        (f"{ROW}fps = 2", ": [m] fps", "gemini"),
        (f'{ROW}base_url = "http://u:p@h"', ": [m] base_url", "password"),
        (f'{ROW}base_url = "localhost:8000"', ": [m] base_url", "HTTP"),
        (f"{ROW}release = {{frames = 0}}", ": [m] release.frames", ">= 1"),
        (ROW.replace("[m]", '["a:b"]'), ": [a:b]", "name"),
        (ROW.replace("[m]", "[qwen3-omni]"), ": [qwen3-omni]", "built-in"),
        ("\udcff", "", "UTF-8"),
        ("[m]\nseed = " + "9" * 5000, "", "digits"),
    ],
)
def test_a_wrong_row_is_named_with_its_file_and_key(
    tmp_path: Path, text: str, where: str, said: str
) -> None:
    file = tmp_path / "models.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=said) as caught:
        get("m", models=file)
    assert caught.value.where.endswith(f"models.toml{where}")


def test_a_mark_at_the_head_of_the_file_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_bytes(b'\xef\xbb\xbf[m]\r\nwire = "openai"\r\nmodel = "x"\r\n')
    assert get("m", models=file).settings["model"] == "x"


def test_info_lists_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "models.toml", '[mine]\nwire = "openai"\nmodel = "x"')
    monkeypatch.setenv("OMNIDATA_MODELS", str(file))
    said = omnidata("info").stdout
    assert "gemini-3.1-pro" in said
    assert "mine" in said
    found = as_json(omnidata("info", "--json"))
    assert {"qwen3-omni", "mine"} <= set(found["presets"])
    assert found["plugins"] == []
    file.write_text("[mine")
    assert "models.toml" in omnidata("info", code=2).stderr


def test_the_word_none_is_no_value_but_not_within_extra_body(tmp_path: Path) -> None:
    row = f'{ROW}temperature = "none"\nextra_body = {{effort = "none"}}'
    adapter = get("m", models=write(tmp_path / "models.toml", row))
    assert adapter.params.temperature is None
    assert adapter.settings["extra_body"] == {"effort": "none"}


def test_a_server_is_named_by_option_before_environment_before_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def url(base_url: str | None = None) -> Any:
        return get("openai:m", base_url=base_url).settings["base_url"]

    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert url() == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env/v1/")
    assert url() == "http://env/v1"
    assert url("http://option/v1") == "http://option/v1"
    monkeypatch.delenv("GEMINI_BASE_URL", raising=False)
    assert get("gemini:m", base_url=None).settings["base_url"] == ""  # the provider's own


def test_a_preset_without_a_server_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QWEN3_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=r"--base-url.*QWEN3_BASE_URL"):
        get("qwen3-omni", base_url=None)


def test_a_row_without_a_release_has_no_such_layout() -> None:
    with pytest.raises(UsageError, match="no released adapter"):
        get("openai:m", {"layout": "release"})
    assert get("gemini:any", {"layout": "release"}).settings["release"]["system"] == "twice"


def test_flags_of_servers_are_refused_where_there_is_none(tmp_path: Path) -> None:
    task = get_task("omnigui")
    with pytest.raises(UsageError, match="--base-url"):
        get_adapter("baseline:center", task, [], base_url=URL)
    with pytest.raises(UsageError, match="--key-file"):
        get_adapter("replay:x", task, [], key_file=tmp_path)


def test_presets_are_read_without_any_sdk() -> None:
    code = (
        "import sys\n"
        "from omnidata.cli import main\n"
        "try:\n"
        "    main(['info'])\n"
        "finally:\n"
        "    print([name for name in ('openai', 'google.genai', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(not DOCUMENT.is_file(), reason="needs a checkout: the sdist has no docs")
def test_every_preset_and_option_is_documented(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = tomllib.loads((files("omnidata.adapters") / "presets.toml").read_text("utf-8"))
    for name, row in rows.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| `{name}` | `"))
        assert f"`{row['wire']}` | `{row['model']}`" in line
        for key in ("base_url_env", "key_env"):
            assert key not in row or f"`{row[key]}`" in text
    for wire in wires_of(tmp_path):
        assert f"`{wire}`" in text
        row = f'[m]\nwire = "{wire}"\nno-such = 1'
        with pytest.raises(UsageError) as caught:
            get("m", models=write(tmp_path / "models.toml", row))
        keys = caught.value.expected.removeprefix("one of ").split(", ")
        assert "base_url_env" in keys
        if f"{wire}:MODEL" in as_json(omnidata("info", "--json"))["models"]:
            assert {*options_of(f"{wire}:m")} <= {*keys}
        for name in keys:
            assert f"`{name}`" in text or name in ("model", "release"), name


@pytest.mark.skipif(not DOCUMENT.is_file(), reason="needs a checkout: the sdist has no docs")
def test_the_documents_four_lines_are_a_model(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    block = text.split("```toml\n")[1].split("```")[0]
    assert len(block.splitlines()) == 4
    models = write(tmp_path / "models.toml", block)
    adapter = get("my-model", base_url=None, models=models)
    assert adapter.settings["base_url"] == "http://localhost:8000/v1"
