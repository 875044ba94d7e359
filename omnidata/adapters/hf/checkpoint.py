"""From the name of a checkpoint to its processor and model, and to what its chat template does."""

from __future__ import annotations

import logging
import re
import sys
from importlib.util import find_spec
from typing import Any

from omnidata.adapters.hf.options import Family, LocalOptions, family
from omnidata.errors import CallError, PlatformError, UsageError

# torchvision beside a torch without CUDA.
#
# transformers asks only whether torchvision is installed, and imports it. The usual Linux build is
# linked against CUDA: beside a CPU-only torch its compiled operators stay away, and the import ends
# in `operator torchvision::nms does not exist`. What processors need of torchvision is Python.

MISSING_OPERATOR = "operator torchvision::nms does not exist"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_libraries: list[Any] = []
"""Operators live as long as the library that declares them."""


def prepare_imports() -> bool:
    """Make a CUDA build of torchvision importable beside a CPU-only torch.

    Call it before the first import of transformers, peft or trl. It does nothing if torchvision
    works or is not installed. Otherwise it declares the two operators that torchvision needs at
    import, without an implementation: torchvision's Python code works, its compiled functions raise
    an error.

    Returns:
        True if operators were declared, now or before.

    Raises:
        PlatformError: torchvision is installed and cannot be loaded.
    """
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return bool(_libraries)
    try:
        _import()
    except (ImportError, OSError, RuntimeError) as error:
        if not (MISSING_OPERATOR in str(error) and _cpu_only()):
            raise _unusable(error) from error
        _declare()
        try:
            _import()
        except (ImportError, OSError, RuntimeError) as again:
            raise _unusable(again) from again
    return bool(_libraries)


def _import() -> None:
    try:
        import torchvision  # noqa: F401  # whether it loads is the question
    except BaseException:
        # A failed import leaves the submodules that came before the failure.
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        raise


def _cpu_only() -> bool:
    """Return whether torch has no GPU code; a missing operator then means a wrong torchvision."""
    import torch

    return torch.version.cuda is None and torch.version.hip is None


def _declare() -> None:
    import torch

    if not _libraries:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # theirs has no types
        for name in ("nms", "qnms"):
            library.define(name + _SCHEMA)  # type: ignore[no-untyped-call]  # theirs has no types
        _libraries.append(library)


def _unusable(error: Exception) -> PlatformError:
    return PlatformError(
        f"torchvision cannot be loaded ({type(error).__name__}: {error}), and transformers "
        "imports it where it is installed",
        expected="the build of torchvision that was made for this torch",
        remedy="run `omnidata doctor`: it prints the command that fixes this",
    )


# The processor and the weights.

_log = logging.getLogger(__name__)


def _transformers() -> Any:
    try:
        prepare_imports()
        import transformers
    except (ImportError, OSError, RuntimeError) as error:
        raise PlatformError(
            f"transformers cannot be loaded ({type(error).__name__}: {error})",
            expected="the libraries of the extra `local`",
            remedy="pip install 'omnidata[local]'; `omnidata doctor` shows the cause",
        ) from error
    return transformers


def recognise(path: str, options: LocalOptions) -> tuple[str, Family]:
    """Return the type of a checkpoint, and what is known of it.

    Raises:
        PlatformError: the libraries do not load.
        UsageError: there is no such checkpoint, nobody knows its type, or an option is not for it.
    """
    if options.trust_remote_code:
        _log.warning(
            "trust_remote_code: Python code in %s runs on this machine, with your rights; "
            "read it first",
            path,
        )
    try:
        config = _transformers().AutoConfig.from_pretrained(
            path, trust_remote_code=options.trust_remote_code
        )
    except (OSError, ValueError, KeyError) as error:
        raise _unknown(path, error) from None
    found = family(config.model_type, f"--model hf:{path}")
    if options.audio_in_video and not found.audio_in_video:
        raise UsageError(
            f'a model of type "{config.model_type}" does not interleave sound and clips',
            where="-M audio_in_video=true",
            expected="a model of the Qwen-Omni families",
            remedy="drop the option: the sound is sent next to the clip",
        )
    least, most = options.min_video_pixels, options.max_video_pixels
    if (least or most) and not found.video_pixels:
        raise UsageError(
            f'the size of frames cannot be set for a model of type "{config.model_type}"',
            where="-M min_video_pixels, max_video_pixels",
            expected="a model of the Qwen-Omni families",
            remedy="drop the options; fps= or video=frames shorten prompts",
        )
    if least and most and least > most:
        raise UsageError(
            "the minimum exceeds the maximum",
            where=f"-M min_video_pixels={least} max_video_pixels={most}",
            expected="min_video_pixels up to max_video_pixels",
        )
    if options.quantization and find_spec("bitsandbytes") is None:
        raise PlatformError(
            "bitsandbytes is not installed",
            where=f"-M quantization={options.quantization}",
            remedy="pip install bitsandbytes, or drop the option",
        )
    return config.model_type, found


def _unknown(path: str, error: Exception) -> UsageError:
    return UsageError(
        f"there is no checkpoint that transformers can read: {str(error).partition(chr(10))[0]}",
        where=f"--model hf:{path}",
        expected="a folder with config.json, or the name of a model that is on this machine or "
        "can be downloaded",
    )


def load_processor(path: str, options: LocalOptions) -> Any:
    """Return the checkpoint's processor.

    Raises:
        PlatformError: a library that it needs is missing.
        UsageError: the folder has none.
    """
    try:
        processor = _transformers().AutoProcessor.from_pretrained(
            path, trust_remote_code=options.trust_remote_code
        )
    except ImportError as error:
        raise PlatformError(
            f"the processor cannot be loaded: {str(error).strip().partition(chr(10))[0]}",
            where=f"--model hf:{path}",
            expected="the libraries of the extra `local`, torchvision among them",
            remedy="`omnidata doctor` shows the cause",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise _unknown(path, error) from None
    if not getattr(processor, "chat_template", None):
        # Some processors leave it to their tokenizer (Phi-4-multimodal's does).
        processor.chat_template = getattr(processor.tokenizer, "chat_template", None)
    _try_template(processor, path)
    return processor


def _try_template(processor: Any, path: str) -> None:
    part = {"type": "text", "text": "omnidata"}
    problem = ""
    if processor.chat_template is None:
        problem = "the processor has no chat template"
    else:
        try:
            shown = processor.apply_chat_template(
                [{"role": "user", "content": [part]}], tokenize=False
            )
        except Exception as error:  # whatever a template does wrong, Jinja has its own errors
            problem = f"the chat template fails ({type(error).__name__}: {error})"
        else:
            # A template for plain texts prints the list itself.
            if part["text"] not in shown or str(part) in shown:
                problem = "the chat template takes no lists of parts"
    if problem:
        raise UsageError(
            problem,
            where=f"--model hf:{path}",
            expected="an instruction-tuned checkpoint, converted for transformers",
        )


def sampling_rate(processor: Any) -> int | None:
    """Samples per second that the processor expects, in Hz; None where it reads no sound."""
    parts = (getattr(processor, name, None) for name in ("feature_extractor", "audio_processor"))
    return next((int(part.sampling_rate) for part in parts if part), None)


def load_model(path: str, options: LocalOptions, known: Family) -> Any:
    """Return the weights, ready to generate.

    Raises:
        CallError: they cannot be loaded; no request of the run can be answered.
    """
    import torch

    transformers = _transformers()
    architecture = getattr(transformers, known.architecture or "AutoModelForMultimodalLM")
    kwargs: dict[str, Any] = {
        "dtype": options.dtype if options.dtype == "auto" else getattr(torch, options.dtype),
        "trust_remote_code": options.trust_remote_code,
        "device_map": options.device_map or ("auto" if torch.cuda.is_available() else None),
        "attn_implementation": options.attention,
    }
    if options.quantization:
        kwargs["quantization_config"] = transformers.BitsAndBytesConfig(
            **{f"load_in_{options.quantization}": True}
        )
    kwargs = {name: value for name, value in kwargs.items() if value is not None}
    try:
        model = architecture.from_pretrained(path, **kwargs)
        if known.adapter and _has_adapter(transformers, path, known.adapter):
            model.load_adapter(path, adapter_kwargs={"subfolder": known.adapter})
        return model.eval()
    except (OSError, ValueError, ImportError, RuntimeError, KeyError) as error:
        raise CallError(
            f"the weights cannot be loaded ({type(error).__name__}: {error})",
            where=f"--model hf:{path}",
            transient=False,
            hopeless=True,
        ) from error


def _has_adapter(transformers: Any, path: str, folder: str) -> bool:
    found = transformers.utils.cached_file(
        path,
        "adapter_config.json",
        subfolder=folder,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return found is not None


# What the chat template puts behind an answer, which training has to teach, too.

_SAID = "omnidata-answer"
_ASKED: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "omnidata"}]}
_ANSWERED: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": _SAID}]}


def chat_suffix(processor: Any, path: str) -> str:
    """Return the text that ends an answer, special tokens included: `<|im_end|>` and a line break.

    A template that marks what the assistant says with `{% generation %}` says it itself. Otherwise
    it is what follows the answer where the prompt, as the model is given it in evaluation, is the
    beginning of the conversation with the answer.

    Args:
        processor: of the checkpoint.
        path: of the checkpoint, for the message.

    Raises:
        UsageError: the template takes no answers, or does neither of the two.
    """
    template = processor.chat_template
    tokens = processor.tokenizer.special_tokens_map
    try:
        asked, _ = _render_template(template, tokens, _ASKED, add_generation_prompt=True)
        whole, spans = _render_template(template, tokens, _ASKED, _ANSWERED)
    except Exception as error:  # whatever a template does wrong, Jinja has its own errors
        raise _lacking(path, f"fails on an answer ({type(error).__name__}: {error})") from None
    if spans:
        said = "".join(whole[begin:end] for begin, end in spans)
    elif whole.startswith(asked):
        said = whole[len(asked) :]
    else:
        raise _lacking(path, "writes a conversation with an answer unlike the prompt for it")
    if not said.startswith(_SAID) or said.count(_SAID) != 1:
        raise _lacking(path, "does not keep the answer as it is")
    closing = said.removeprefix(_SAID)
    if not closing.strip():
        raise _lacking(path, "puts no token behind the answer, so that no model learns to stop")
    return closing


def _render_template(
    template: str, tokens: dict[str, Any], *messages: dict[str, Any], **how: Any
) -> tuple[str, list[tuple[int, int]]]:
    from transformers.utils import chat_template_utils

    render: Any = chat_template_utils.render_jinja_template  # its annotation is wrong
    marks = re.search(r"\{%-?\s*generation\s*-?%\}", template) is not None
    texts, spans = render(
        conversations=[list(messages)],
        chat_template=template,
        return_assistant_tokens_mask=marks,
        **tokens,
        **how,
    )
    return texts[0], spans[0] if marks else []


def _lacking(path: str, problem: str) -> UsageError:
    return UsageError(
        f"the chat template {problem}",
        where=f"hf:{path}",
        expected="{% generation %} around what the assistant says, or a conversation that begins "
        "with the prompt",
        remedy="give the processor a template with {% generation %}: processor.chat_template = ...",
    )
