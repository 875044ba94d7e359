"""A model whose code was edited does not go on with the answers of its old code in silence."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from omnidata.errors import RunError
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.run.parts import merge
from omnidata.types import LoadedDataset
from tests import plugs
from tests.cli.running import here
from tests.run.scripted import RIGHT, TASK, Scripted

MODEL = '''
"""A model of another distribution."""

from mine_helper import answer
from omnidata.adapters import Model
from omnidata.types import Completion, Prepared


class Mine(Model):
    """Says one thing."""

    name = "mine"
    accepts = None

    def prepare(self, request):
        return Prepared(request, key=request.sample_id)

    async def generate(self, batch, params):
        # in order
        return [Completion(text=answer()) for _ in batch]


def make(model, options):
    return Mine()
'''
HELPER = "def answer():\n    return '{\"action_type\": -1}'\n"
Edit = Callable[[Path], None]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = plugs.on_path(tmp_path / "site", "mine_plugin", monkeypatch)
    monkeypatch.delitem(sys.modules, "mine_helper", raising=False)
    (folder / "mine_plugin.py").write_text(MODEL)
    (folder / "mine_helper.py").write_text(HELPER)
    plugs.install(folder, "omnidata-mine", "omnidata.adapters", "mine = mine_plugin:make")
    return folder


@pytest.fixture
def run(source: LoadedDataset, tmp_path: Path) -> Run:
    """Runs the command, as a process of its own would: with modules as they are now."""

    def call(*more: str, verb: str = "evaluate", model: str = "mine:") -> tuple[int, str, str]:
        for name in ("mine_plugin", "mine_helper"):
            sys.modules.pop(name, None)
        argv = [verb, "omnigui", str(source.root), "--model", model, "--limit", "4"]
        done = here(*argv, "--out", tmp_path / "run", *more, code=None)
        return done.returncode, done.stdout, done.stderr

    return call


def replacing(file: str, old: str, new: str) -> Edit:
    def edit(site: Path) -> None:
        path = site / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return edit


EDITS: dict[str, Edit] = {
    "a method": replacing("mine_plugin.py", "text=answer()", "text=answer() + ' '"),
    "a text in it": replacing("mine_helper.py", "-1", "-2"),
    "a new module": replacing("mine_plugin.py", "from mine_helper", "from mine_other"),
    "the version": replacing("omnidata_mine-1.2.dist-info/METADATA", "1.2\n", "1.3\n"),
}
HARMLESS: dict[str, Edit] = {
    "a comment": replacing("mine_plugin.py", "# in order", "# one by one"),
    "docstrings": replacing("mine_plugin.py", '"""Says one thing."""', '"""Says it."""\n'),
    "no docstring": replacing("mine_plugin.py", '    """Says one thing."""\n\n', ""),
    "blank lines": replacing("mine_helper.py", "\n", "\n\n"),
}


def edit_in(site: Path, edit: Edit) -> None:
    (site / "mine_other.py").write_text(HELPER.replace("-1", "-3"))
    edit(site)


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_model_is_refused_with_the_fix(
    site: Path, run: Run, tmp_path: Path, name: str
) -> None:
    code, _, said = run()
    assert (code, "asked 4, reused 0" in said) == (0, True), said
    code, table, said = run()
    assert (code, "asked 0, reused 4" in said) == (0, True)
    before = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    edit_in(site, EDITS[name])
    code, out, said = run()
    assert (code, out) == (2, "")
    assert "the code of the adapter has changed" in said
    assert "--reuse-answers" in said
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == before
    code, out, said = run("--reuse-answers")
    assert (code, out) == (0, table)
    assert "asked 0, reused 4" in said
    assert run()[0] == 0  # what was accepted once is recorded


@pytest.mark.parametrize("name", HARMLESS)
def test_comments_docstrings_and_layout_are_no_code(site: Path, run: Run, name: str) -> None:
    assert run()[0] == 0
    edit_in(site, HARMLESS[name])
    code, _, said = run()
    assert (code, "asked 0, reused 4" in said) == (0, True), said


def test_a_run_from_before_is_accepted_and_recorded(site: Path, run: Run, tmp_path: Path) -> None:
    run()
    path = tmp_path / "run" / "run.json"
    info = json.loads(path.read_text())
    assert info["versions"].pop("adapter").startswith("omnidata-mine 1.2, sha256 ")
    path.write_text(json.dumps(info))
    edit_in(site, EDITS["a method"])
    assert run()[0] == 0
    edit_in(site, EDITS["a text in it"])
    assert run()[0] == 2


def test_a_run_without_an_answer_takes_any_code(
    site: Path, run: Run, source: LoadedDataset, tmp_path: Path
) -> None:
    replacing("mine_plugin.py", "text=answer()", "text=1")(site)
    assert run()[0] == 1
    replacing("mine_plugin.py", "text=1", "text=answer()")(site)
    code, _, said = run()
    assert (code, "asked 4, reused 0" in said) == (0, True), said


def test_samples_and_the_cache_know_the_code(site: Path, run: Run, tmp_path: Path) -> None:
    replacing("mine_plugin.py", "accepts = None", "accepts = None\n    params = WARM")(site)
    warm = "from omnidata.types import GenerationParams\nWARM = GenerationParams(temperature=0.5)\n"
    replacing("mine_plugin.py", "\n\nclass Mine", f"\n{warm}\n\nclass Mine")(site)
    more = ("--samples", "2", "--cache", str(tmp_path / "cache.db"))
    code, _, said = run(*more)
    assert (code, "asked 8, reused 0" in said) == (0, True), said
    assert "asked 0, reused 8" in run(*more)[2]
    edit_in(site, EDITS["a method"])
    assert run(*more)[0] == 2
    assert "asked 0, reused 8" in run(*more, "--reuse-answers")[2]
    assert "asked 4, reused 0" in run("--out", str(tmp_path / "new"), *more[2:])[2]
    assert "asked 0, reused 4" in run("--out", str(tmp_path / "newer"), *more[2:])[2]


def test_a_suite_knows_the_code(site: Path, source: LoadedDataset, tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(
        f'out = "runs"\n[[tasks]]\ntask = "omnigui"\ndata = "{source.root}"\nlimit = 4\n'
        '[[models]]\nmodel = "mine:"\n'
    )

    def call(*more: str) -> tuple[int, list[dict[str, object]], str]:
        for name in ("mine_plugin", "mine_helper"):
            sys.modules.pop(name, None)
        done = here("suite", suite, "--json", *more, code=None)
        return done.returncode, json.loads(done.stdout), done.stderr

    code, [first], said = call()
    assert (code, first["asked"], first["reused"]) == (0, 4, 0)
    assert "asked 4, reused 0" in said
    edit_in(site, EDITS["a method"])
    code, [again], _ = call()
    assert code == 1
    assert "--reuse-answers" in str(again["error"])
    code, [again], _ = call("--reuse-answers")
    assert (code, again["asked"], again["reused"]) == (0, 0, 4)


def test_parts_of_other_code_are_not_joined(site: Path, run: Run, tmp_path: Path) -> None:
    parts = [tmp_path / "1", tmp_path / "2"]
    for number, part in enumerate(parts, 1):
        run("--limit", "20", "--shard", f"{number}/2", "--out", str(part))
        if number == 1:
            edit_in(site, EDITS["a method"])
    with pytest.raises(RunError, match="other code of the model"):
        merge(parts, tmp_path / "whole")
    assert run("--limit", "20", "--shard", "1/2", "--out", str(parts[0]), "--reuse-answers")[0] == 0
    merge(parts, tmp_path / "whole")
    code, _, said = run("--limit", "20", "--out", str(tmp_path / "whole"))
    assert (code, "asked 0, reused 20" in said) == (0, True), said


SCRIPT = '''
import sys
from pathlib import Path

from beside import SUFFIX
from omnidata.adapters import Model
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import Completion

PROMPTS = {"first": "TAP"}
UNUSED = "nobody names it"


def build(name):
    """A text."""
    return PROMPTS[name] + SUFFIX


class Own(Model):
    """A class of a script."""

    name = "own"
    accepts = None

    async def generate(self, batch, params):
        return [Completion(text=build("first")) for _ in batch]


task = get_task("omnigui")
counts = []
evaluate(task, task.load(Path(sys.argv[1])), Own(), Path(sys.argv[2]), limit=3,
         count=lambda *found: counts.append(found))
print(counts)
'''
EDITS_OF_SCRIPT = {
    "a value that a function names": ('"first": "TAP"', '"first": "SWIPE"'),
    "a function that a method names": ("PROMPTS[name] +", "'!' + PROMPTS[name] +"),
    "the method": ("for _ in batch", "for item in batch"),
    "the module beside": ("from beside import SUFFIX", "from beside2 import SUFFIX"),
}
HARMLESS_IN_SCRIPT = {
    "a docstring": ('"""A text."""', '"""Another text."""'),
    "what nobody names": ("nobody names it", "nobody at all"),
    "a comment": ("counts = []", "counts = []  # of the run"),
}


@pytest.mark.parametrize("name", [*EDITS_OF_SCRIPT, *HARMLESS_IN_SCRIPT])
def test_the_code_of_a_class_of_a_script_is_what_it_names(
    source: LoadedDataset,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / "eval.py"
    (tmp_path / "beside.py").write_text("SUFFIX = ''\n")
    (tmp_path / "beside2.py").write_text("SUFFIX = '.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), str(source.root), str(tmp_path / "run")])

    def call(text: str) -> str:
        """Run it as `python eval.py` does: its class is one of `__main__`."""
        for module in ("beside", "beside2"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        script.write_text(text)
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.strip()

    assert call(SCRIPT) == "[(3, 0)]"
    edited = SCRIPT.replace(*(EDITS_OF_SCRIPT | HARMLESS_IN_SCRIPT)[name])
    if name in HARMLESS_IN_SCRIPT:
        assert call(edited) == "[(0, 3)]"
    else:
        with pytest.raises(RunError, match="the code of the adapter has changed"):
            call(edited)


def test_a_model_of_ours_is_its_version(source: LoadedDataset, tmp_path: Path) -> None:
    evaluate(TASK, source, "baseline:center", tmp_path / "run", limit=2)
    path = tmp_path / "run" / "run.json"
    info = json.loads(path.read_text())
    assert info["versions"]["adapter"] == f"omnidata {version('omnidata')}"
    info["versions"]["adapter"] = "omnidata 0.0.1"
    path.write_text(json.dumps(info))
    with pytest.raises(RunError, match=r"omnidata 0\.0\.1"):
        evaluate(TASK, source, "baseline:center", tmp_path / "run", limit=2)
    evaluate(
        TASK, source, "baseline:center", tmp_path / "run", limit=2,
        limits=Limits(reuse_answers=True),
    )  # fmt: skip


def test_a_file_that_is_no_python_is_taken_as_it_is(
    source: LoadedDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = plugs.on_path(tmp_path / "site", "odd_package", monkeypatch) / "odd_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "template.py").write_bytes(b"{{ name }} = '\xff")
    (package / ".#template.py").symlink_to("user@host.4711")
    (package / ".venv").mkdir()
    (package / ".venv" / "other.py").write_text("")
    kind = type("Odd", (Scripted,), {"__module__": "odd_package.model"})
    run = tmp_path / "run"
    evaluate(TASK, source, kind(lambda *_: RIGHT), run, limit=1)
    (package / ".venv" / "other.py").write_text("1 + 1")
    evaluate(TASK, source, kind(lambda *_: RIGHT), run, limit=1)
    (package / "template.py").write_bytes(b"{{ name }} = '\xfe ")
    with pytest.raises(RunError, match="the code of the adapter has changed"):
        evaluate(TASK, source, kind(lambda *_: RIGHT), run, limit=1)
