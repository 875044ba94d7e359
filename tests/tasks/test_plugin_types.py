"""What a plug-in gives is looked over: its class, its steps, and what its members return."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import MisspeltWarning, PluginError
from omnidata.tasks import get_task
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import EpisodeProfile, RowProfile
from omnidata.types import Step, Target, Verdict
from tests import plugs
from tests.tasks.words import PLUGIN, told


def step_of(instruction: str) -> Step:
    """A step that shows nothing."""
    return Step("s", "e", 0, 1, instruction, (0, 0), {}, (), (), None, {}, {})


@pytest.mark.parametrize(
    ("member", "given", "said"),
    [
        ("target", "melon", "`target` of words gives 'melon'"),
        ("answer", 5, "`answer` of words gives 5"),
        ("read", {"action": "tap"}, "`read` of words gives {'action': 'tap'}"),
        ("prompt", "Which?", "`prompt` of words gives 'Which?'"),
        ("prompt", [{"role": "user"}], "`prompt` of words gives [{'role': 'user'}]"),
    ],
)
def test_what_a_member_gives_of_another_type_is_named_with_the_step(
    site: Path, rows: Path, member: str, given: object, said: str
) -> None:
    (site / "words_plugin.py").write_text(
        f"{PLUGIN}\n\nWords.{member} = lambda self, *_, **__: {given!r}\n", encoding="utf-8"
    )
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Words")
    task = get_task("words")
    step = task.load(rows).steps[0]
    ways: dict[str, list[Any]] = {
        "prompt": [lambda: task.prompt(step)],
        "read": [lambda: task.read("melon")],
    }
    baselines = (lambda name=name: task.baseline(name, [step], {})(step) for name in task.baselines)
    for way in ways.get(member, [lambda: task.target(step), *baselines]):
        with pytest.raises(PluginError, match=re.escape(said)) as caught:
            way()
        assert caught.value.where == ("the answer 'melon'" if member == "read" else step.sample_id)
        assert caught.value.expected and caught.value.remedy


@pytest.mark.parametrize(
    ("field", "given", "expected"),
    [
        ("step_index", "'0'", "expected a whole number, from 0"),
        ("tags", "{'language': 3}", "expected a mapping from names to texts"),
        ("media", "{'screenshot': 'a.png'}", "expected a mapping from roles to MediaRef or None"),
        ("screen", "1080", "expected width and height in pixels"),
        ("action", "'tap'", "expected an Action or None"),
        ("history", "None", "expected a tuple of Action or None"),
    ],
)
def test_a_field_of_a_step_of_another_type_is_named_with_the_line(
    site: Path, rows: Path, field: str, given: str, expected: str
) -> None:
    code = re.sub(rf"{field}=.*(,\n)", rf"{field}={given}\1", PLUGIN, count=1)
    (site / "words_plugin.py").write_text(code, encoding="utf-8")
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Words")
    with pytest.raises(PluginError, match=r"omnidata-words 1\.2 .*words_plugin\.py:\d+") as caught:
        get_task("words").load(rows)
    assert f"the step 'words/0' has the {field} {given}: {expected}" in caught.value.what
    assert caught.value.where == str(rows)


JUDGED = """

class Given(Exact):
    {more}

    def judge(self, step, text, receipt=None):
        return Verdict("ok", ({value},), {parsed})


Words.profiles = {{"words-exact": Given()}}
"""
COUNTED = 'columns = {"letters": "number"}'


@pytest.mark.parametrize(
    ("value", "parsed", "more", "said"),
    [
        ("2", "None", "", "2 as score. Expected: True, False, an int or a float from 0 to 1, or"),
        ("-0.5", "None", "", "-0.5 as score. Expected: True"),
        ("float('nan')", "None", COUNTED, "nan as score. Expected: True, False, an int or a float"),
        ("10**5000", "None", COUNTED, "a int as score. Expected: True"),
        ("'yes'", "None", "", "'yes' as score. Expected: True"),
        ("True", "{'at': object()}", "", "} as `parsed`. Expected: a dict of JSON values"),
        ("True", "[1]", "", "[1] as `parsed`. Expected: a dict of JSON values"),
        ("37", "None", COUNTED, ""),
        ("1.0000000000000002", "{'at': [1, None]}", "", ""),
        ("None", "None", "", ""),
    ],
)
def test_what_judge_gives_is_checked_before_it_is_counted(
    site: Path, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    value: str, parsed: str, more: str, said: str,
) -> None:  # fmt: skip
    plugin = PLUGIN + JUDGED.format(value=value, parsed=parsed, more=more)
    (site / "words_plugin.py").write_text(plugin, encoding="utf-8")
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Words")
    run = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    code = 2 if said else int(value == "None")  # what judges no step gives no score
    found = " ".join(told(capsys, "evaluate", "words", rows, *run, code=code).split())
    if said:
        by = "words/0: omnidata-words 1.2 (words_plugin:Words) fails: `judge` of words-exact gives"
        assert f"PluginError: {by}" in found
    assert said.replace(". Expected", " Expected") in found


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("yield {'a': 1}", True, "`steps` of words gives {'a': 1} Expected: a Step"),
        ("note('hello'); yield", True, "`note` is told 'hello': expected Finding(code, severity"),
        ("return", False, "`steps` of words gives None Expected: the steps"),
        ("return [5]", False, "`steps` of words gives 5 Expected: a Step"),
    ],
)
def test_what_steps_gives_is_named_with_the_line_and_what_was_expected(
    site: Path, rows: Path, capsys: pytest.CaptureFixture[str], body: str, line: bool, said: str
) -> None:
    code = f"{PLUGIN}\n\nclass Told(Words):\n    load = Benchmark.load\n\n"
    code += f"    def steps(self, data, note):\n        {body}\n"
    (site / "words_plugin.py").write_text(code, encoding="utf-8")
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Told")
    found = told(capsys, "validate", "words", rows, code=2)
    assert said in " ".join(found.split())
    assert "words.jsonl: " in found
    assert (f"words_plugin.py:{len(code.splitlines())}" in found) == line


def test_a_target_that_fails_under_a_baseline_is_named_with_its_own_line(
    site: Path, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"{PLUGIN}\n\ndef target(self, step, **given):\n    return {{}}['x']\n\n"
    code += "Words.target = target\n"
    (site / "words_plugin.py").write_text(code, encoding="utf-8")
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Words")
    run = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    found = told(capsys, "evaluate", "words", rows, *run, code=2)
    line = code.splitlines().index("    return {}['x']") + 1
    assert "PluginError: words/0: omnidata-words 1.2" in found
    assert f"words_plugin.py:{line}, in target" in found and "adapter" not in found


def test_an_axis_that_no_step_has_as_a_tag_is_found(
    site: Path, rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"{PLUGIN}\n\nExact.by = {{'langage': (), 'language': ()}}\n"
    (site / "words_plugin.py").write_text(code, encoding="utf-8")
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Words")
    found = told(capsys, "validate", "words", rows)
    assert "words-exact: no step has the tag langage" in found
    assert "did you mean language?" in found and "the tag language," not in found


@pytest.mark.parametrize("points", [(12, 7), ((1, 2, 3),), 5])
def test_a_target_of_other_types_is_refused_where_it_is_made(points: Any) -> None:
    with pytest.raises(TypeError, match="expected pairs"):
        Target("click(12, 7)", "click(<bbox>)", points)
    with pytest.raises(TypeError, match="the target has the text 5: expected a text"):
        Target(5, "")  # type: ignore[arg-type]


class Exact(RowProfile):
    """Calls nothing right."""

    name = "exact"

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        return Verdict("ok", (False,))


class Nearly(Exact):
    """Says its reach in shares of the screen."""

    reach = 0.14


BARE: dict[str, Any] = {
    "question": "{instruction}?",
    "answer": lambda *_: "",
    "steps": lambda *_: [],
}


@pytest.mark.parametrize(
    ("members", "said", "remedy"),
    [
        ({"question": "Goal: {instruktion}"}, "has {instruktion} in `question`", "{instruction}?"),
        ({"question": "Goal: { history }"}, "has { history } in `question`", "{history}?"),
        ({"question": "Goal: {goal}"}, "has {goal} in `question`", "override `prompt`"),
        ({"answer": Benchmark.answer}, "has neither `answer` nor `target`", "fix the class"),
        ({"steps": Benchmark.steps}, "has neither `steps` nor `load`", "fix the class"),
        ({"question": None}, "has neither `question` nor `prompt`", "fix the class"),
        ({"allowed": {"history": "gold"}}, "has 'gold' as the values of", "fix the class"),
        ({"allowed": {"coordinates": ("norm100",)}}, "has 'norm100' as a value", "norm1000?"),
        ({"profiles": {"exact": Nearly()}}, "has 0.14 as `reach`", "fix the class"),
        ({"parsed_type": "text"}, "has 'text' as `parsed_type`", "fix the class"),
        ({"profiles": {"exact": Exact}}, "as 'exact' in `profiles`", "fix the class"),
        ({"profiles": {"other": Exact()}}, "as 'other' in `profiles`", "fix the class"),
    ],
)
def test_a_class_that_would_be_misread_is_refused_when_the_task_is_made(
    members: dict[str, Any], said: str, remedy: str
) -> None:
    kind = type("Bare", (Benchmark,), BARE | members)
    with pytest.raises(PluginError, match=re.escape(said)) as caught:
        kind("bare", {})
    assert remedy in caught.value.remedy
    assert caught.value.where.endswith(".Bare")


@pytest.mark.parametrize(
    "braces",
    ['{"action": ..., "at": {"x": 1}}', "{x, y}", r"\boxed{answer}", "{}", "{ 'a' }", "[a-z]{2}"],
)
def test_other_braces_of_a_question_stay_as_they_are(braces: str) -> None:
    kind = type("Bare", (Benchmark,), BARE | {"question": "{instruction}? As " + braces})
    [message] = kind("bare", {}).prompt(step_of("Tea"))
    assert message.parts[-1].text == f"Tea? As {braces}"


@pytest.mark.parametrize(
    ("base", "name", "meant"),
    [
        (Benchmark, "raed", "read"),
        (Benchmark, "alowed", "allowed"),
        (Benchmark, "propmt", "prompt"),
        (EpisodeProfile, "colums", "columns"),
        (RowProfile, "value", "values"),
    ],
)
def test_an_attribute_that_may_be_a_misspelt_member_is_told_of_with_the_line(
    base: type, name: str, meant: str
) -> None:
    with pytest.warns(MisspeltWarning, match=f"has `{name}`.*if `{meant}` of") as told:
        exec(f"class Mine(base):\n    {name} = ()", {"base": base})
    assert [(one.filename, one.lineno) for one in told] == [("<string>", 1)]
    # Names that are nobody's, private ones, and one beside the member that it is like.
    exec(f"class Mine(base):\n    _{name} = ()\n    walks = {meant} = {name} = ()", {"base": base})
