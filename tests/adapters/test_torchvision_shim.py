"""torchvision can be imported beside a torch for which it was not compiled, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

from omnidata.adapters.hf.checkpoint import prepare_imports
from tests.doctor import broken
from tests.full import in_gate

torch = pytest.importorskip("torch", reason="needs the extra `local`")
if find_spec("torchvision") is None:  # an import takes seconds of every process of tests
    pytest.skip("needs the extra `local`", allow_module_level=True)
without_cuda = pytest.mark.skipif(
    torch.version.cuda is not None, reason="needs torch without CUDA, where CUDA builds break"
)
ROOT = Path(__file__).resolve().parents[2]
PREPARE = "from omnidata.adapters.hf.checkpoint import prepare_imports\nprint(prepare_imports())\n"


def run(code: str, *first: Path, flag: str = "-B") -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(map(str, first))
    done = subprocess.run(
        [sys.executable, flag, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return done


RESIZE = (
    "from torchvision.transforms.v2.functional import InterpolationMode, normalize, resize\n"
    "clip = resize(clip, [28, 28], InterpolationMode.BICUBIC, antialias=True).float()\n"
    "print([[2, *normalize(clip, [0.5] * 3, [0.5] * 3).shape]])\n"
)
PROCESS = (
    "from transformers import Qwen2VLVideoProcessor\n"
    "print(Qwen2VLVideoProcessor()(clip, return_tensors='pt')['video_grid_thw'].tolist())\n"
)


@without_cuda
@pytest.mark.parametrize(
    "use",
    in_gate([RESIZE, PROCESS], 1, "an import of transformers; what it calls is called here"),
    ids=["what they call", "themselves"],
)
def test_processors_of_clips_work_beside_a_torchvision_for_cuda(tmp_path: Path, use: str) -> None:
    broken.torchvision_for_cuda(tmp_path)
    code = PREPARE + (
        "import torch, torchvision\n"
        "clip = torch.zeros(4, 3, 56, 56, dtype=torch.uint8)\n"
        f"{use}"
        "print(prepare_imports(), torchvision.__file__)\n"
        "try: torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)\n"
        "except RuntimeError as error: print(error)\n"
    )
    shown = run(code, tmp_path).stdout.splitlines()
    assert shown[0] == "True"
    assert shown[1].startswith("[[2, ")
    assert shown[2] == f"True {tmp_path / 'torchvision' / '__init__.py'}"
    assert "Couldn't load custom C++ ops" in shown[3]


def test_a_torchvision_that_works_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    assert not prepare_imports()
    assert sys.modules["torchvision"].__version__


def test_nothing_is_done_where_torchvision_is_absent(tmp_path: Path) -> None:
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith("torchvision"):
            (tmp_path / installed.name).symlink_to(installed)
    shown = run(PREPARE + "import sys; print('torch' in sys.modules)", tmp_path, ROOT, flag="-S")
    assert shown.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    "source",
    in_gate(
        ["raise OSError('libcudart.so.13: cannot open')", "import missing_for_sure"],
        1,
        "a start of torch",
    ),
)
def test_a_torchvision_that_fails_otherwise_is_an_error_that_names_the_doctor(
    tmp_path: Path, source: str
) -> None:
    broken.install(tmp_path, "torchvision", source)
    code = (
        "from omnidata.errors import PlatformError\n"
        "from omnidata.adapters.hf.checkpoint import prepare_imports\n"
        "try: prepare_imports()\n"
        "except PlatformError as error: print(error)\n"
    )
    shown = run(code, tmp_path).stdout
    assert "torchvision cannot be loaded" in shown
    assert "`omnidata doctor`" in shown
