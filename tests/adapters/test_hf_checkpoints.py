"""Which folders load, by which class, and what is said of those that do not."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import CallError, PlatformError, UsageError
from tests.adapters.local_models import (
    QWEN,
    Family,
    Parts,
    Spy,
    ask,
    checkpoint,
    conversation,
    local,
    torch,
)
from tests.cli.running import here
from tests.conftest import Once
from tests.export.small import tree
from tests.full import in_gate

ROLES = ("history_screenshot", "video", "audio", "screenshot")


def full_checkpoint(tiny: Path, folder: Path) -> Path:
    """The thinker inside a checkpoint that could also speak, without what it speaks with.

    As in the published folders, its weights have a prefix, and only the class around it knows where
    an answer ends.
    """
    import safetensors.torch
    from transformers import AutoConfig, Qwen2_5OmniConfig, Qwen3OmniMoeConfig

    shutil.copytree(tiny, folder)
    thinker = AutoConfig.from_pretrained(tiny)
    wholes: dict[str, Any] = {
        "qwen2_5_omni_thinker": Qwen2_5OmniConfig,
        "qwen3_omni_moe_thinker": Qwen3OmniMoeConfig,
    }
    inner = thinker.to_dict()
    inner["text_config"]["eos_token_id"] = None
    wholes[thinker.model_type](thinker_config=inner).save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    renamed = {f"thinker.{name}": values for name, values in weights.items()}
    renamed["talker.codec_head.weight"] = torch.zeros(4, 4)
    safetensors.torch.save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("family", in_gate(QWEN, 1, "a second Qwen"))
def test_the_thinker_of_a_full_checkpoint_answers_like_the_thinker_alone(
    once: Once, tmp_path: Path, spy: Spy, family: Family, parts: Parts
) -> None:
    tiny = checkpoint(once, family)
    full = full_checkpoint(tiny, tmp_path / "full")
    assert json.loads((full / "config.json").read_text())["model_type"] in hf_types(family)
    asked = conversation(parts, ROLES)
    alone = ask(local(tiny), asked)
    within = ask(local(full), asked)
    assert within[0].text == alone[0].text
    assert type(spy.models[0]) is type(spy.models[1])
    assert "Thinker" in type(spy.models[1]).__name__
    first, second = (dict(model.state_dict()) for model in spy.models)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def hf_types(family: Family) -> set[str]:
    return {"qwen2_5_omni"} if family == "qwen2.5-omni" else {"qwen3_omni_moe"}


def test_an_answer_ends_where_the_tokenizer_says_if_nobody_else_does(
    once: Once, tmp_path: Path, spy: Spy, parts: Parts
) -> None:
    full = full_checkpoint(checkpoint(once, "qwen2.5-omni"), tmp_path / "full")
    ask(local(full), conversation(parts, ("screenshot",)))
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(full)
    assert words.convert_tokens_to_ids("<|im_end|>") in spy.inputs[0]["eos_token_id"]


@pytest.mark.parametrize(
    "dtype", in_gate(["auto", "bfloat16", "float16", "float32"], 2, "a type for others")
)
def test_weights_and_media_have_the_type_that_is_asked_for(
    once: Once, parts: Parts, spy: Spy, dtype: str
) -> None:
    model = local(checkpoint(once, "qwen2.5-omni"), dtype=dtype, attention="eager")
    [answer] = ask(model, conversation(parts, ROLES))
    assert answer.delivery in ("ok", "truncated"), answer.error
    wanted = "float32" if dtype == "auto" else dtype
    assert spy.models[0].dtype == getattr(torch, wanted)
    assert spy.inputs[0]["pixel_values"].dtype == getattr(torch, wanted)
    assert spy.models[0].config._attn_implementation == "eager"
    assert model.run_metadata()["dtype"] == wanted
    assert set(model.run_metadata()["versions"]) == {"torch", "transformers"}


def test_a_folder_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match="no checkpoint") as caught:
        local("/nowhere/at-all")
    assert "hf:/nowhere/at-all" in str(caught.value)


def test_an_unknown_type_is_named_beside_those_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(UsageError, match='"gpt2"') as caught:
        local(tmp_path)
    assert "qwen3_omni_moe" in str(caught.value) and "vLLM" in str(caught.value)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (None, "no chat template"),
        ("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}", "TypeError"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "no lists of parts"),
        ("{{ raise_exception('not today') }}", "not today"),
    ],
)
def test_a_checkpoint_that_cannot_be_talked_to_is_refused_before_the_first_step(
    once: Once, tmp_path: Path, template: str | None, said: str
) -> None:
    folder = shutil.copytree(checkpoint(once, "qwen2.5-omni"), tmp_path / "copy")
    if template is None:
        (folder / "chat_template.jinja").unlink()
    else:
        (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(UsageError, match=said):
        local(folder)


def test_missing_weights_end_the_run_and_name_the_folder(
    once: Once, tmp_path: Path, parts: Parts
) -> None:
    folder = shutil.copytree(checkpoint(once, "qwen2.5-omni"), tmp_path / "copy")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CallError, match="weights cannot be loaded") as caught:
        ask(local(folder), conversation(parts, ("screenshot",)))
    assert caught.value.hopeless and str(folder) in str(caught.value)


def test_code_of_a_checkpoint_runs_only_when_asked_for_and_that_is_said(
    once: Once, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(checkpoint(once, "qwen2.5-omni"), tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoConfig": "strange.Strange"}}
    (folder / "config.json").write_text(json.dumps(config))
    mark = tmp_path / "ran"
    (folder / "strange.py").write_text(
        "from pathlib import Path\n"
        "from transformers import PretrainedConfig\n"
        f"Path({str(mark)!r}).touch()\n"
        "class Strange(PretrainedConfig):\n"
        "    model_type = 'strange'\n"
    )
    with pytest.raises(UsageError):
        local(folder)
    assert not mark.exists() and "trust_remote_code" not in caplog.text
    with pytest.raises(UsageError, match="strange"):
        local(folder, trust_remote_code="true")
    assert mark.exists()
    assert f"Python code in {folder} runs on this machine, with your rights" in caplog.text


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("dtyp=float32", "dtype"),
        ("dtype=float64", "bfloat16"),
        ("batch_size=0", ">= 1"),
        ("batch_size=many", "batch_size=1 is the default"),
        ("video=film", "native, frames"),
        ("quantization=3bit", "8bit, 4bit"),
        ("audio_in_video=perhaps", "audio_in_video=false is the default"),
        ("fps=0", "fps=2.0 is the default"),
    ],
)
def test_an_option_that_does_not_exist_is_answered_with_those_that_do(
    once: Once, option: str, said: str
) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(UsageError) as caught:
        local(checkpoint(once, "qwen2.5-omni"), **{name: value})
    assert said in str(caught.value) and f"-M {option}" in str(caught.value)


def test_sound_inside_clips_is_refused_by_a_family_that_cannot(once: Once) -> None:
    with pytest.raises(UsageError, match="interleave") as caught:
        local(checkpoint(once, "gemma4"), audio_in_video="true")
    assert "next to the clip" in str(caught.value)


def test_quantisation_without_its_library_is_refused_before_the_first_step(once: Once) -> None:
    with pytest.raises(PlatformError, match="bitsandbytes"):
        local(checkpoint(once, "qwen2.5-omni"), quantization="4bit")


def test_a_missing_extra_ends_the_command_with_2_and_the_line_that_mends_it(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = checkpoint(once, "qwen2.5-omni"), tmp_path / "run"
    monkeypatch.setitem(sys.modules, "transformers", None)
    data = tree(tmp_path / "data")
    ask = ("evaluate", "omnigui", data, "--model", f"hf:{folder}", "--out", run)
    assert "pip install 'omnidata[local]'" in here(*ask, code=2).stderr
    assert not (tmp_path / "run").exists()
