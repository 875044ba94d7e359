"""`omnidata doctor` reports what loads, survives what does not, and its commands fix it."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.running import OMNIDATA, omnidata
from tests.doctor import broken
from tests.doctor.broken import Check, doctor, follow, loads
from tests.full import in_gate

torch = pytest.importorskip("torch", reason="needs the extra `local`")
if find_spec("torchvision") is None:
    pytest.skip("needs the extra `local`", allow_module_level=True)
without_cuda = pytest.mark.skipif(
    torch.version.cuda is not None, reason="needs torch without CUDA, where CUDA builds break"
)
ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-0123456789abcdef"
NOISE = """
import sys
print("noise" * 50_000)
sys.modules["isal.isal_zlib"], compress = sys.modules["isal"], None
"""
RED = r"raise OSError('\x1b[2Jred')"


@pytest.mark.parametrize("dear", in_gate((broken.DEAR, ()), 1, "half a minute of imports"))
def test_what_is_installed_loads_and_of_keys_only_names_are_shown(
    dear: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in dear:
        broken.install(tmp_path, name, RED if name == "matplotlib" else "raise SystemExit('no')")
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
        assert "SystemExit: no" in shown
        version = importlib.metadata.version("matplotlib")
        assert f"matplotlib: {sys.executable} -m pip install" in done.stdout
        assert f"--no-deps matplotlib=={version}\n" in done.stdout


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
    OutOfMemoryError=MemoryError,
    is_available=lambda: True,
    device_count=lambda: 2,
    get_device_properties=lambda index: SimpleNamespace(name="Big", total_memory=80 * 2**30),
)
"""


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    """Of packages that break in many ways, of versions that do not fit, and of a broken GPU.

    The command itself imports none of these, or it would fail as they do.
    """
    folder = tmp_path_factory.mktemp("broken")
    broken.install(folder, "datasets", "Dataset = None", version="2.0")
    broken.install(folder, "av", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    broken.install(folder, "pillow", "import os; os._exit(3)")
    broken.install(folder, "isal", NOISE)
    broken.install(folder, "torch", _TORCH_WITH_TWO_GPUS)
    raising = "raise RuntimeError('operator torchvision::nms does not exist')"
    broken.install(folder, "torchvision", raising, version="0.20.0", requires="torch==2.5.0")
    broken.install(folder, "torchaudio", r"raise OSError('\x1b[2Jred\nsecond line')")
    broken.install(folder, "accelerate", "import missing_for_sure")
    broken.install(folder, "matplotlib", "import time; time.sleep(600)", requires="numpy>=1.0.*")
    broken.install(folder, "espeakng-loader", "import matplotlib", requires="matplotlib")
    models = folder / "models.toml"
    models.write_text("[one]\nwire = 'smoke'\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIDATA_MODELS", str(models))
        patch.setenv("ANTHROPIC_API_KEY", "two words")
        return doctor(folder, "--time-limit", "10")


def test_a_broken_package_is_reported_and_harms_no_other(checks: dict[str, Check]) -> None:
    assert checks["av"]["detail"] == "it ends the process: SIGSEGV"
    assert checks["av"]["remedy"].endswith(f"--no-deps av=={checks['av']['version']}")
    assert checks["pillow"]["detail"] == "it ends the process: exit code 3"
    assert checks["accelerate"]["detail"].endswith("No module named 'missing_for_sure'")
    assert checks["accelerate"]["remedy"].endswith("pip install 'omnidata[local]'")
    assert checks["isal"]["state"] == "ok"
    assert checks["torchaudio"]["detail"] == "OSError: \x1b[2Jred"


def test_a_package_that_hangs_is_reported_with_those_that_need_it(checks: dict[str, Check]) -> None:
    assert checks["matplotlib"]["detail"] == "it was still loading after 10 s"
    assert "matplotlib==" in checks["matplotlib"]["remedy"]
    assert checks["espeakng-loader"]["detail"] == "as matplotlib: it was still loading after 10 s"
    assert checks["espeakng-loader"]["remedy"] == checks["matplotlib"]["remedy"]


def test_a_broken_key_is_reported_without_its_value(checks: dict[str, Check]) -> None:
    assert checks["ANTHROPIC_API_KEY"]["state"] == "broken"
    assert "words" not in str(checks)
    assert checks["OMNIDATA_MODELS"]["state"] == "broken"


def test_a_version_that_omnidata_does_not_support_is_broken_though_it_loads(
    checks: dict[str, Check],
) -> None:
    assert checks["datasets"]["detail"].startswith("omnidata needs >=")
    assert "--upgrade 'datasets>=" in checks["datasets"]["remedy"]


def test_a_torchvision_for_another_torch_is_replaced_by_one_for_this_torch(
    checks: dict[str, Check],
) -> None:
    there = checks["torch"]["version"]
    assert checks["torchvision"]["detail"].startswith(f"it needs torch==2.5.0, and {there} is inst")
    assert checks["torchvision"]["remedy"].endswith(f"--upgrade torchvision torch=={there}")


def test_a_gpu_that_does_not_compute_is_broken_beside_one_that_does(
    checks: dict[str, Check],
) -> None:
    assert checks["torch"]["detail"] == "CUDA 13.0 build, 2 GPUs"
    assert (checks["GPU 0"]["state"], checks["GPU 0"]["detail"]) == ("ok", "Big, 80.0 GiB")
    assert checks["GPU 1"]["state"] == "broken"
    assert checks["GPU 1"]["detail"].endswith("RuntimeError: no kernel image is available")


@without_cuda
@pytest.mark.full("half a minute of imports")
def test_a_torchvision_for_cuda_works_within_omnidata_and_the_command_fixes_it(
    tmp_path: Path,
) -> None:
    broken.torchvision_for_cuda(tmp_path)
    before = doctor(tmp_path, but=broken.BELOW_TRANSFORMERS)
    assert before["torchvision"]["state"] == "worked round"
    assert before["transformers"]["state"] == "ok"
    assert not loads(tmp_path, "import torchvision.transforms.v2")
    follow(before["torchvision"])
    assert loads(tmp_path, "import torchvision.transforms.v2")


@without_cuda
@pytest.mark.full("a minute of imports")
def test_a_torchaudio_for_cuda_breaks_transformers_and_one_command_fixes_both(
    tmp_path: Path,
) -> None:
    library = broken.install(tmp_path, "torchaudio", broken.TORCHAUDIO) / "lib" / "_torchaudio.so"
    library.parent.mkdir()
    library.touch()
    before = doctor(tmp_path, but=broken.BELOW_TRANSFORMERS)
    assert before["torchaudio"]["state"] == "broken"
    assert broken.CUDA_LIBRARY in before["torchaudio"]["detail"]
    assert before["transformers"]["detail"].startswith("as torchaudio: ")
    assert before["transformers"]["remedy"] == before["torchaudio"]["remedy"]
    follow(before["torchaudio"])
    assert loads(tmp_path, "import torchaudio; from transformers import AutoProcessor")


def test_an_absent_package_that_omnidata_always_needs_is_a_fault(tmp_path: Path) -> None:
    """Absent packages of extras are none: `torchcodec` above."""
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith("isal"):
            (tmp_path / installed.name).symlink_to(installed)
    folder = tmp_path / "first"
    broken.out_of_order(folder, "isal")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (folder, tmp_path, ROOT)))}
    done = subprocess.run(
        [sys.executable, "-S", *OMNIDATA[1:], "doctor"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "isal: " in done.stdout
    assert done.stdout.count("pip install omnidata\n") == 1
