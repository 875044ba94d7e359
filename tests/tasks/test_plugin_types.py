"""Mistakes in the code of a plug-in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import PluginError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer, Rule, Values
from omnidata.tasks.totals import Column, EpisodeTotals, RowTotals
from omnidata.types import Step, Target
from tests import plugs
from tests.tasks.words import PLUGIN, install, told
from tests.trees import read_lines


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
    assert caught.value.where == "words/0"


MISTAKES = {
    "load": ("Words.load = lambda self, data, **_: {}[data]", "KeyError"),
    "steps": ("Words.steps = lambda *_: [{}]", "AttributeError"),
    "a later row": (
        "read = Words.steps\n"
        "def steps(self, data, note):\n"
        "    yield from [*read(self, data, note)][:2]\n"
        "    {}['goal']\n"
        "Words.steps = steps",
        "KeyError: 'goal'",
    ),
    "prompt": ("Words.prompt = lambda self, step, *_: {}[step.sample_id]", "KeyError"),
    "prompt's type": ("Words.prompt = lambda *_: 'Which?'", "AttributeError"),
    "parse": ("Words.parse = lambda self, text, step, *_: {}[text]", "KeyError"),
    "parse's type": ("Words.parse = lambda *_: None", "`parse` returned None"),
    "target": ("Words.target = lambda self, step, **_: {}[step]", "TypeError"),
    "target's text": ("Words.target = lambda *_, **__: Target(5, '')", "the text 5"),
    "target's type": ("Words.target = lambda *_, **__: 'melon'", "AttributeError"),
    "judge": ("Exact.judge = lambda self, step, *_: {}[step.sample_id]", "KeyError"),
    "no values": ("Exact.judge = lambda *_: True", "words-exact returned True"),
    "few values": ("Exact.judge = lambda *_: ()", "returned (): expected a value for each"),
    "outcome": ("Exact.judge = lambda *_: Verdict('fine', (True,))", "has 'fine' as"),
    "exit": ("import sys; Exact.judge = lambda *_: sys.exit(0)", "SystemExit: 0"),
    "exit in load": ("import sys; Words.load = lambda *_, **__: sys.exit()", "SystemExit"),
    "share": ("Exact.judge = lambda *_: (2,)", "has 2 as score"),
    "Decimal": (
        "import decimal; Exact.judge = lambda *_: (decimal.Decimal(1),)",
        "has Decimal('1') as score",
    ),
    "reason": ("Exact.judge = lambda *_: Verdict('ok', (True,), None, 5)", "has 5 as reason"),
    "cause": (
        "from omnidata.types import Diagnosis; Words.explain = "
        "lambda *_, **__: Explanation('wrong', '', '', '', diagnosis=Diagnosis('bad'))",
        "the diagnosis has the cause 'bad': expected one of wrong_type, ",
    ),
    "NaN": (
        "Exact.totals = RowTotals([Column('at', 'score', unit='number')]); "
        "Exact.judge = lambda *_: (float('nan'),)",
        "has nan as score",
    ),
    "parsed": ("Words.parse = lambda *_: ParsedAnswer('', {'at': object()})", "TypeError"),
    "total": (
        "Exact.totals = type('Odd', (RowTotals,), {'total': lambda *_: {}['overall']})()",
        "KeyError: 'overall'",
    ),
    "speech": (
        "adopt = lambda self, actions, step, receipt: {}[step.sample_id]; "
        "Words.speech = type('Mute', (Speech,), {'asked': 'action', 'adopt': adopt})()",
        "KeyError: 'words/0'",
    ),
    "explain": ("Words.explain = lambda *_, **__: {}['why']", "KeyError: 'why'"),
}
WHERE = {
    "load": "words.jsonl", "steps": "words.jsonl", "a later row": "words.jsonl, after words/1",
    "exit in load": "", "total": "",
}  # fmt: skip
"""Of mistakes that are not found at the step words/0."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_with_the_distribution_and_the_step(
    site: Path, rows: Path, tmp_path: Path, mistake: str
) -> None:
    code, said = MISTAKES[mistake]
    where = WHERE.get(mistake, "words/0")
    install(site, code)
    rows.write_text(rows.read_text("utf-8").replace('""', '"oak"'), encoding="utf-8")
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"sample_id": "words/2", "output": "elm"}\n', encoding="utf-8")
    model = f"replay:{answers}" if mistake in ("explain", "cause") else "baseline:oracle"
    run = ("--model", model, "--out", tmp_path / "run")
    dialect = ("-T", "dialect=qwen2.5") if mistake == "speech" else ()
    found = told("evaluate", "words", rows, *run, *dialect, code=2)
    [line] = [line for line in found.splitlines() if line.startswith("PluginError")]
    assert f"{where}: " * bool(where) + "omnidata-words 1.2 (words_plugin:Words) fails: " in line
    assert said in line and re.search(r"\.py:\d+, in ", line)
    assert "Traceback" not in found


MODEL = """
import sys

from omnidata.adapters import Model
from omnidata.types import Completion


class Shaky(Model):
    accepts = None

    def __init__(self, model, options):
        self.name, self.left = f"shaky:{model}", 2

    def unsupported_reason(self, conversation):
        return {}[self.name] if self.name == "shaky:reason" else ""

    async def generate(self, batch, params):
        self.left -= 1
        return [Completion(text="melon")] if self.left else sys.exit(0)
"""


def test_a_mistake_of_a_model_is_not_blamed_on_the_task(
    site: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site)
    other = plugs.on_path(tmp_path / "other", "shaky_plugin", monkeypatch)
    (other / "shaky_plugin.py").write_text(MODEL, encoding="utf-8")
    plugs.install(other, "shaky", "omnidata.adapters", "shaky = shaky_plugin:Shaky")
    run = tmp_path / "run"
    found = told("evaluate", "words", rows, "--model", "shaky:reason", "--out", run, code=2)
    assert "shaky 1.2 (shaky_plugin:Shaky) fails: KeyError: 'shaky:reason'" in found
    assert "omnidata-words" not in found and "Traceback" not in found
    assert not (run / "predictions.jsonl").exists()

    # One that ends the process fails for its step alone.
    found = told("evaluate", "words", rows, "--model", "shaky:exit", "--out", run, code=1)
    assert "omnidata-words" not in found and "Traceback" not in found
    lines = read_lines(run / "predictions.jsonl")
    assert [line["delivery"] for line in lines] == ["ok", "api_error", "ok"]
    assert re.search(r"shaky_plugin.py:\d+, in generate: .*SystemExit: 0", lines[1]["error"])


def test_a_mistake_in_another_process_is_the_same_message(
    site: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "Exact.judge = lambda self, step, *_: {}[step.sample_id]"
    install(site, code)
    monkeypatch.setenv("PYTHONPATH", str(site))
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"sample_id": "words/0", "output": "melon"}\n', encoding="utf-8")
    found = told("score", "words", rows, answers, "--workers", "2", code=2)
    assert "PluginError: words/0: omnidata-words 1.2 (words_plugin:Words) fails: KeyError" in found


def test_the_traceback_of_a_mistake_is_printed_on_request(
    site: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "Words.steps = lambda self, data, note: {}[data]"
    install(site, code)
    monkeypatch.setenv("OMNIDATA_DEBUG", "1")
    assert "Traceback" in told("validate", "words", rows, code=2)


def test_an_axis_that_no_step_has_as_a_tag_is_found(site: Path, rows: Path) -> None:
    install(site, "Exact.totals.by = {'langage': (), 'language': ()}")
    found = told("validate", "words", rows)
    assert "words-exact: no step has the tag langage" in found
    assert "did you mean language?" in found and "the tag language," not in found


@pytest.mark.parametrize("points", [(12, 7), ((1, 2, 3),), 5])
def test_a_target_of_other_types_is_refused_where_it_is_made(points: Any) -> None:
    with pytest.raises(TypeError, match="expected pairs"):
        Target("click(12, 7)", "click(<bbox>)", points)
    with pytest.raises(TypeError, match="the target has the text 5: expected a text"):
        Target(5, "")  # type: ignore[arg-type]


class Exact(Rule[Any]):
    name = "exact"
    totals = RowTotals()

    def judge(self, step: Step, parsed: ParsedAnswer[Any] | None) -> Values:
        return (False,)


def ruled(**members: Any) -> dict[str, Any]:
    """The members of a benchmark with a rule that differs in these."""
    return {"rules": (type("Odd", (Exact,), members)(),)}


ERROR = Column("off", "away", unit="number", lower_is_better=True)
STEPS, EM = Column("steps", "clicks", unit="number"), Column("EM")
BARE: dict[str, Any] = {
    "card": Card(title="Bare"),
    "question": "{instruction}?",
    "rules": (Exact(),),
    "steps": lambda *_: [],
    "parse": lambda *_: ParsedAnswer("", {}),
    "target": lambda *_, **__: None,
}


@pytest.mark.parametrize(
    ("members", "said", "remedy"),
    [
        ({"question": "Goal: {instruktion}"}, "has {instruktion} in `question`", "{instruction}?"),
        ({"question": "Goal: { history }"}, "has { history } in `question`", "{history}?"),
        ({"question": "Goal: {goal}"}, "has {goal} in `question`", "override `prompt`"),
        ({"allowed": {"history": "gold"}}, "has 'gold' as the values of", "fix the class"),
        ({"allowed": {"coordinates": ("norm100",)}}, "has 'norm100' as a value", "norm1000?"),
        (ruled(reach=0.14), "has 0.14 as `reach`", "fix the class"),
        (ruled(totals=RowTotals([ERROR])), "has off as the value", 'Column("hit", "score")'),
        (ruled(totals=EpisodeTotals([Column("SR"), ERROR], values=("away",))),
         "has off as the value that says", 'Column("hit", "score")'),
        (ruled(totals=EpisodeTotals([EM, STEPS])), "has a column steps", "another name"),
        (ruled(totals=EpisodeTotals([EM, EM])), "has several columns EM in its profile", "rename"),
        (ruled(totals=RowTotals([Column("hit", "score"), Column("hit", "near")])),
         "has several columns hit in its profile", "rename"),
        ({"rules": ()}, "has no rule", "fix the class"),
        ({"card": "Bare"}, "has no card", "fix the class"),
    ],
)  # fmt: skip
def test_a_class_that_would_be_misread_is_refused_when_the_task_is_made(
    members: dict[str, Any], said: str, remedy: str
) -> None:
    kind = type("Bare", (Benchmark,), BARE | members)
    with pytest.raises(PluginError, match=re.escape(said)) as caught:
        Asking(kind("bare", {}))
    assert remedy in caught.value.remedy
    assert caught.value.where.endswith(".Bare")


def test_a_column_of_episodes_that_is_no_metric_is_named() -> None:
    kind = type("Bare", (Benchmark,), BARE | ruled(totals=EpisodeTotals([EM, Column("hit")])))
    with pytest.raises(PluginError, match="columns of no known metric: hit") as caught:
        Asking(kind("bare", {}))
    assert "Column(NAME, metric=...) with one of TM, EM" in caught.value.expected


@pytest.mark.parametrize(
    "braces",
    ['{"action": ..., "at": {"x": 1}}', "{x, y}", r"\boxed{answer}", "{}", "{ 'a' }", "[a-z]{2}"],
)
def test_other_braces_of_a_question_stay_as_they_are(braces: str) -> None:
    kind = type("Bare", (Benchmark,), BARE | {"question": "{instruction}? As " + braces})
    step = Step("s", "e", 0, 1, "Tea", (0, 0), {}, (), (), None, {}, {})
    [message] = Asking(kind("bare", {})).conversation(step)
    assert message.parts[-1].text == f"Tea? As {braces}"
