"""`omnidata doctor` says what loads, survives what does not, and its commands mend it."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from omnidata.data import doctor_probe
from omnidata.data.doctor import PACKAGES, Check
from tests.cli.running import omnidata
from tests.doctor import broken
from tests.doctor.broken import doctor, follow, loads
from tests.full import in_gate

torch = pytest.importorskip("torch", reason="needs the extra `local`")
if find_spec("torchvision") is None:
    pytest.skip("needs the extra `local`", allow_module_level=True)
without_cuda = pytest.mark.skipif(
    torch.version.cuda is not None, reason="needs torch without CUDA, where CUDA builds break"
)
SECRET = "sk-0123456789abcdef"
RED = r"raise OSError('\x1b[2Jred')"


@pytest.mark.parametrize("dear", in_gate((broken.DEAR, ()), 1, "half a minute of imports"))
def test_what_is_installed_loads_and_of_keys_only_names_are_shown(
    dear: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in dear:
        broken.install(tmp_path, name, RED if name == "openai" else "raise OSError('no')")
    if dear:  # it is loaded below
        broken.install(tmp_path, "torch", broken.TORCH_WITHOUT_CUDA)
    monkeypatch.setenv("PYTHONPATH", broken.first(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    done = omnidata("doctor", code=1 if dear else 0, anew=True)
    shown = " ".join(done.stdout.split())
    assert SECRET not in done.stdout + done.stderr
    assert f"torch {torch.__version__} local ok" in shown
    assert shown.count(" BROKEN ") == len(dear)
    assert "reads H.264, AAC, PCM, PNG; writes H.264" in shown
    assert "torchcodec unused absent datasets.Audio() and Video() need it, omnidata" in shown
    assert "OPENAI_API_KEY key ok set" in shown
    assert "GEMINI_API_KEY key absent" in shown
    assert sys.executable in done.stdout.replace("\n", "").replace(" ", "")
    assert "\x1b" not in done.stdout
    if dear:  # the broken are named with their commands, and control characters spelled out
        assert r"\x1b[2Jred" in done.stdout
        version = importlib.metadata.version("openai")
        assert f"openai: {sys.executable} -m pip install" in done.stdout
        assert f"--no-deps openai=={version}\n" in done.stdout


def test_the_installed_torch_is_tried() -> None:
    found = doctor_probe.TRIALS["torch"]()
    assert found["detail"].startswith(f"{found['build']} build")
    assert found["gpus"] or not torch.cuda.is_available()


def test_crash_hang_and_exit_of_a_package_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.install(tmp_path, "datasets", "raise SystemExit('no')")
    broken.install(tmp_path, "av", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    broken.install(tmp_path, "pillow", "import os; os._exit(3)")
    broken.install(tmp_path, "isal", "import missing_for_sure")
    broken.install(tmp_path, "torch", "import time; time.sleep(600)")
    broken.install(tmp_path, "torchvision", "import torch")
    broken.install(tmp_path, "openai", "print('noise' * 50_000)\nDefaultAioHttpClient = None")
    broken.install(tmp_path, "google-genai", r"raise OSError('\x1b[2Jred\nsecond line')")
    monkeypatch.setenv("GEMINI_API_KEY", "two words")
    made = ("datasets", "av", "pillow", "isal", "torch", "torchvision", "openai", "google-genai")

    checks = doctor(tmp_path, made, time_limit=10)

    assert checks["datasets"].detail == "SystemExit: no"
    assert checks["av"].detail == "it ends the process: SIGSEGV"
    assert checks["av"].remedy.endswith(f"--no-deps av=={checks['av'].version}")
    assert checks["pillow"].detail == "it ends the process: exit code 3"
    assert checks["isal"].detail == "ModuleNotFoundError: No module named 'missing_for_sure'"
    assert checks["isal"].remedy.endswith("pip install omnidata")
    assert checks["torch"].detail == "it was still loading after 10 s"
    assert checks["torchvision"].detail == "cannot load torch"
    assert checks["torchvision"].remedy == checks["torch"].remedy
    assert checks["openai"].state == "ok"
    assert checks["google-genai"].detail == "OSError: \x1b[2Jred"
    assert checks["GEMINI_API_KEY"].state == "broken"
    assert "words" not in str(checks)


def test_a_file_of_models_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models.toml"
    models.write_text("[one]\nwire = 'smoke'\n", encoding="utf-8")
    monkeypatch.setenv("OMNIDATA_MODELS", str(models))
    checks = doctor(tmp_path, ())
    assert checks["OMNIDATA_MODELS"].state == "broken"
    assert not checks.keys() & PACKAGES.keys()


@without_cuda
@pytest.mark.full("half a minute of imports")
def test_a_torchvision_for_cuda_works_within_omnidata_and_the_command_mends_it(
    tmp_path: Path,
) -> None:
    broken.torchvision_for_cuda(tmp_path)
    broken.out_of_order(tmp_path, *broken.BELOW_TRANSFORMERS)
    before = doctor(tmp_path)
    assert before["torchvision"].state == "worked round"
    assert before["transformers"].state == "ok"
    assert not loads(tmp_path, "import torchvision.transforms.v2")
    follow(before["torchvision"])
    assert loads(tmp_path, "import torchvision.transforms.v2")


@without_cuda
@pytest.mark.full("a minute of imports")
def test_a_torchaudio_for_cuda_breaks_transformers_and_one_command_mends_both(
    tmp_path: Path,
) -> None:
    library = broken.install(tmp_path, "torchaudio", broken.TORCHAUDIO) / "lib" / "_torchaudio.so"
    library.parent.mkdir()
    library.touch()
    broken.out_of_order(tmp_path, *broken.BELOW_TRANSFORMERS)
    before = doctor(tmp_path)
    assert before["torchaudio"].state == "broken"
    assert broken.CUDA_LIBRARY in before["torchaudio"].detail
    assert before["transformers"].detail == "cannot load torchaudio"
    assert before["transformers"].remedy == before["torchaudio"].remedy
    follow(before["torchaudio"])
    assert loads(tmp_path, "import torchaudio; from transformers import AutoProcessor")


@without_cuda
@pytest.mark.full("half a minute of imports")
def test_a_torchvision_that_cannot_be_worked_round_is_why_transformers_breaks(
    tmp_path: Path,
) -> None:
    raising = "raise RuntimeError('operator torchvision::nms does not exist')"
    broken.install(tmp_path, "torchvision", raising)
    broken.out_of_order(tmp_path, *broken.TORCH)
    checks = doctor(tmp_path)
    assert checks["torchvision"].detail.endswith("operator torchvision::nms does not exist")
    assert checks["torchvision"].remedy.endswith("torchvision/_meta_registrations.py")
    assert checks["transformers"].detail == "cannot load torchvision"


def test_a_torchvision_for_another_torch_is_told_from_one_for_cuda(tmp_path: Path) -> None:
    raising = "raise RuntimeError('operator torchvision::nms does not exist')"
    broken.install(tmp_path, "torchvision", raising, version="0.20.0", requires="torch==2.5.0")
    broken.install(tmp_path, "torch", broken.TORCH_WITHOUT_CUDA)
    check = doctor(tmp_path, ("torch", "torchvision"))["torchvision"]
    assert check.detail == f"made for torch ==2.5.0, and this is {torch.__version__}"
    minor = int(torch.__version__.split(".")[1])
    assert check.remedy.endswith(f"'torchvision==0.{minor + 15}.*'")


_TORCH_WITH_TWO_GPUS = """
from types import SimpleNamespace

class _Tensor:
    sum = item = lambda self: self

def ones(size, device=0):
    if device == 1:
        raise RuntimeError("no kernel image is available\\nfor execution")
    return _Tensor()

version = SimpleNamespace(cuda="13.0", hip=None)
cuda = SimpleNamespace(
    is_available=lambda: True,
    device_count=lambda: 2,
    get_device_properties=lambda index: SimpleNamespace(name="Big", total_memory=80 * 2**30),
)
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    """What is said of an old version and of two GPUs, one of which does not compute."""
    folder = tmp_path_factory.mktemp("odd")
    working = "class Dataset:\n    @staticmethod\n    def from_dict(rows): pass"
    broken.install(folder, "datasets", working, version="2.0")
    broken.install(folder, "torch", _TORCH_WITH_TWO_GPUS)
    return doctor(folder, ("datasets", "torch"))


def test_a_version_that_omnidata_does_not_take_is_broken_though_it_loads(
    odd: dict[str, Check],
) -> None:
    assert odd["datasets"].detail.startswith("omnidata needs >=")
    assert "--upgrade 'datasets>=" in odd["datasets"].remedy


def test_a_gpu_that_does_not_compute_is_broken_beside_one_that_does(
    odd: dict[str, Check],
) -> None:
    assert odd["torch"].detail == "CUDA 13.0 build, 2 GPUs"
    assert odd["GPU 0"].state == "ok"
    assert odd["GPU 0"].detail == "Big, 80.0 GiB"
    assert odd["GPU 1"].state == "broken"
    assert odd["GPU 1"].detail.endswith("RuntimeError: no kernel image is available")


def test_an_absent_package_is_no_fault_unless_omnidata_always_needs_it() -> None:
    assert not Check("local", "torch", "absent").fault
    assert Check("base", "isal", "absent").fault


def test_the_examining_process_imports_nothing_heavy(tmp_path: Path) -> None:
    for name in ("torch", "datasets", "av", "pillow"):
        broken.install(tmp_path, name, "raise RuntimeError('out of order')")
    code = (
        "import asyncio, sys; from omnidata.data.doctor import examine\n"
        "asyncio.run(examine(time_limit=60, names=('torch', 'datasets', 'av', 'pillow')))\n"
        "print([m for m in ('torch', 'datasets', 'numpy', 'av', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": broken.first(tmp_path)},
    )
    assert done.stdout == "[]\n"
