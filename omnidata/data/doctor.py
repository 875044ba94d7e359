"""The examination behind `omnidata doctor`: which packages load, and how to fix the others.

`python -P -m omnidata.data.doctor NAME PART` loads a part of a package and tries it. It may raise
anything, end the process or hang, so each gets a process of its own. Its standard output is one
JSON object: the `error`, or `detail`, `worked_round`, and of torch `build` and `gpus`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from omnidata.errors import UsageError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from omnidata.types import Progress


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one package, GPU or key.

    Attributes:
        group: the extra that installs it, "base", "unused" (omnidata does without), "gpu" or "key".
        name: of the distribution, the GPU or the environment variable.
        state: "ok" loads (a key: is set); "worked round" loads within omnidata only; "absent" is
            not installed (a key: not set); "broken" is installed and unusable.
        version: as installed; empty where there is none.
        detail: what it can do, or what is wrong.
        remedy: the command that fixes or installs it; empty where nothing is to be done.
    """

    group: str
    name: str
    state: Literal["ok", "worked round", "absent", "broken"]
    version: str = ""
    detail: str = ""
    remedy: str = ""

    @property
    def fault(self) -> bool:
        """Whether it is broken, or a package that omnidata always needs is absent."""
        return self.state == "broken" or (self.state == "absent" and self.group == "base")


_PACKAGES = {
    "datasets": ("base", "datasets:Dataset"),
    "av": ("base", "av:Codec"),
    "pillow": ("base", "PIL.features:check"),
    "isal": ("base", "isal.isal_zlib:compress"),
    "torch": ("local", "torch:ones"),
    "torchvision": ("local", "torchvision.transforms.v2.functional:resize"),
    "torchaudio": ("local", "torchaudio.functional:resample"),
    "transformers": ("local", "transformers:AutoModelForMultimodalLM"),
    "accelerate": ("local", "accelerate:Accelerator"),
    "torchcodec": ("unused", "torchcodec.decoders"),
    "peft": ("local", "peft:LoraConfig"),
    "trl": ("train", "trl:SFTTrainer"),
    "matplotlib": ("plots", "matplotlib.backends.backend_agg:FigureCanvasAgg"),
    "espeakng-loader": ("voice", "espeakng_loader:get_library_path"),
}
"""Distribution -> the extra that installs it, and the part that omnidata uses.

Each stands after those that it imports.
"""

_UNUSED = "datasets.Audio() and Video() need it, omnidata does not"
_CUDA_BUILD = re.compile(r"torchvision::nms|\.so\b")
_WITHOUT_CUDA = {
    "torchvision": "truncate -s 0 {}/torchvision/_meta_registrations.py",
    "torchaudio": "rm -f {}/torchaudio/lib/*.so",
}
"""Commands that take the parts for CUDA out of a package; the rest is Python and works."""


async def examine(*, time_limit: float, progress: Progress | None = None) -> tuple[Check, ...]:
    """Load the packages of omnidata's extras, each in a process of its own, and try them.

    Args:
        time_limit: in seconds, for each package.
        progress: called with the number of packages done and of all.

    Returns:
        Packages, GPUs, and keys without their values.
    """
    versions = {name: version for name in _PACKAGES if (version := _version(name))}
    free = asyncio.Semaphore(min(4, os.cpu_count() or 1))
    probed: dict[str, dict[str, Any]] = {}

    async def probe(name: str) -> None:
        async with free:
            probed[name] = await _probe(name, time_limit)
        if progress:
            progress(len(probed), len(versions))

    async with asyncio.TaskGroup() as group:
        for name in versions:
            group.create_task(probe(name))
    torch = probed.get("torch", {})
    checks: list[Check] = []
    for name, (extra, _) in _PACKAGES.items():
        if version := versions.get(name):
            checks.append(_check(name, version, probed[name], torch.get("build"), checks))
        elif extra == "unused":
            checks.append(Check(extra, name, "absent", detail=_UNUSED))
        else:
            checks.append(Check(extra, name, "absent", remedy=_install_extra(extra)))
    for index, gpu in enumerate(torch.get("gpus", ())):
        detail = ": ".join(filter(None, (gpu["detail"], gpu["error"])))
        checks.append(Check("gpu", f"GPU {index}", "broken" if gpu["error"] else "ok", "", detail))
    return (*checks, *_keys())


async def _probe(name: str, time_limit: float) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, name, _PACKAGES[name][1]),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), time_limit)
        probed: dict[str, Any] = json.loads(output)
        return probed
    except TimeoutError:
        return {"error": f"it was still loading after {time_limit:g} s"}
    except ValueError:
        code = process.returncode or 0
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {"error": f"it ends the process: {ended}"}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _check(
    name: str,
    version: str,
    probed: Mapping[str, Any],
    torch_build: str | None,
    earlier: Sequence[Check],
) -> Check:
    """Judge a probe; `earlier` are the checks of the packages that this one may import."""
    extra, error = _PACKAGES[name][0], probed.get("error", "")
    if not error and not probed.get("worked_round"):
        for asked, _ in _conflicts("omnidata", extra):
            if asked.name == name:
                remedy = _pip("install", "--upgrade", f"{name}{asked.specifier}")
                detail = f"omnidata needs {asked.specifier}"
                return Check(extra, name, "broken", version, detail, remedy)
        detail = probed.get("detail", _UNUSED if extra == "unused" else "")
        return Check(extra, name, "ok", version, detail)
    reason = ""
    needs = {asked.name.lower() for asked in _requirements(name)}
    broken = [check for check in earlier if check.state == "broken" and check.name in needs]
    cuda_command = _WITHOUT_CUDA.get(name) if torch_build == "CPU" else None
    if cause := next((each for each in broken if error and each.detail.endswith(error)), None):
        reason, remedy = f"as {cause.name}", cause.remedy
    elif extra == "unused":
        reason, remedy = "omnidata does not need it", _pip("uninstall", name)
    elif conflict := next(_conflicts(name), None):
        asked, there = conflict
        reason = f"it needs {asked}, and {there} is installed"
        # With the other version given, the installer finds the one that was made for it.
        remedy = _pip("install", "--upgrade", name, f"{asked.name}=={there}")
    elif cuda_command and (not error or _CUDA_BUILD.search(error)):
        reason = "a build for CUDA, beside a torch without"
        folder = shlex.quote(str(metadata.distribution(name).locate_file("")))
        remedy = cuda_command.format(folder)
    elif error.startswith("ModuleNotFoundError: No module named"):
        remedy = _install_extra(extra)
    else:
        remedy = _pip("install", "--force-reinstall", "--no-deps", f"{name}=={version}")
    if error:
        detail = f"{reason}: {error}" if reason else error
        return Check(extra, name, "broken", version, detail, remedy)
    detail = f"{reason}; loads within omnidata only"
    return Check(extra, name, "worked round", version, detail, remedy)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _conflicts(name: str, extra: str = "") -> Iterator[tuple[Requirement, str]]:
    """Yield what a distribution requires and does not get, and the version that is installed."""
    for asked in _requirements(name):
        version = _version(asked.name)
        applies = not asked.marker or asked.marker.evaluate({"extra": extra})
        if applies and version and not asked.specifier.contains(version, prereleases=True):
            yield asked, version


def _requirements(name: str) -> Iterator[Requirement]:
    """Yield the readable requirements of a distribution, those of its extras too."""
    from packaging.requirements import InvalidRequirement, Requirement

    for line in metadata.requires(name) or ():
        with suppress(InvalidRequirement):
            yield Requirement(line)


def _install_extra(extra: str) -> str:
    return _pip("install", "omnidata" if extra == "base" else f"omnidata[{extra}]")


def _pip(verb: Literal["install", "uninstall"], *what: str) -> str:
    """Return a command for the environment that runs now, which need not have pip."""
    if find_spec("pip"):
        sure = ["-y"] if verb == "uninstall" else []
        return shlex.join([sys.executable, "-m", "pip", verb, *sure, *what])
    return shlex.join(["uv", "pip", verb, "--python", sys.executable, *what])


def _keys() -> Iterator[Check]:
    from omnidata.adapters import presets, wires
    from omnidata.adapters.keys import Key

    users: dict[str, list[str]] = {}
    for name in wires.names():
        users.setdefault(wires.wire(name).spec_row.get("key_env", ""), []).append(f"{name}:MODEL")
    try:
        for name, row in presets.table().items():
            users.setdefault(row.key_env, []).append(name)
    except UsageError as error:
        yield Check("key", presets.MODELS_ENV, "broken", detail=str(error).splitlines()[0])
    for env in filter(None, users):
        detail, remedy = f"for {', '.join(users[env])}", f"export {env}=..."
        try:
            if Key.find(env):
                yield Check("key", env, "ok", detail=f"set; {detail}")
            else:
                yield Check("key", env, "absent", detail=detail, remedy=remedy)
        except UsageError as error:
            yield Check("key", env, "broken", detail=error.what, remedy=remedy)


# In the process of one package.


def _load(name: str, used: str) -> dict[str, Any]:
    worked_round = False
    if name in ("torchvision", "transformers", "peft", "trl"):
        from omnidata.adapters.hf.checkpoint import prepare_imports

        worked_round = prepare_imports() and name == "torchvision"
    part = resolve_name(used)
    match name:
        case "av":
            for codec in ("h264", "aac", "pcm_s16le", "png"):
                part(codec, "r")
            part("libx264", "w")
            return {"detail": "reads H.264, AAC, PCM, PNG; writes H.264"}
        case "pillow":
            if lacks := [kind for kind in ("zlib", "jpg", "webp") if not part(kind)]:
                raise RuntimeError(f"it lacks {', '.join(lacks)}")
            return {"detail": "PNG, JPEG, WEBP"}
        case "torch":
            return _try_torch()
        case "espeakng-loader":
            from omnidata.data.voice_engines import Espeak

            return {"detail": Espeak().name}
        case _:
            return {"worked_round": worked_round}


def _try_torch() -> dict[str, Any]:
    import torch

    build = "CPU"
    if torch.version.cuda or torch.version.hip:
        build = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    gpus = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(index)
        gpu = {"detail": f"{about.name}, {about.total_memory / 2**30:.1f} GiB", "error": ""}
        try:
            torch.ones(2, device=index).sum().item()
        except torch.cuda.OutOfMemoryError:
            gpu["detail"] += ", full"
        except RuntimeError as error:
            gpu["error"] = f"RuntimeError: {str(error).partition(chr(10))[0]}"
        gpus.append(gpu)
    number = f"{len(gpus) or 'no'} GPU{'s' if len(gpus) > 1 else ''}"
    detail = f"{build} build" + ("" if build == "CPU" else f", {number}")
    return {"build": build, "gpus": gpus, "detail": detail}


def _main(name: str, used: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # packages may print
    try:
        answer = _load(name, used)
    except BaseException as error:  # an import may also end in SystemExit
        while error.__cause__:
            error = error.__cause__
        answer = {"error": f"{type(error).__name__}: {error}".strip(" :").splitlines()[0]}
    json.dump(answer, answers)
    answers.flush()
    os._exit(0)  # without exit handlers, which may hang or crash too


if __name__ == "__main__":
    _main(*sys.argv[1:])
