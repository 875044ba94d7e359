"""Benchmarks that other distributions bring are found, run, scored, and named where broken."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path

import pytest

from omnidata.errors import UsageError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from tests.cli.running import OMNIDATA
from tests.tasks.words import install, told
from tests.trees import row, write_rows


def test_a_class_of_another_distribution_is_a_task(site: Path, rows: Path) -> None:
    install(site)
    task = get_task("words", {"case": "lower"})
    [first, *_] = task.load(rows).steps
    [message] = task.conversation(first)
    assert [part.text for part in message.parts] == ["Which is longer: fig or melon?"]
    assert (task.name, task.default_profile, task.options["case"]) == (
        "words",
        "words-exact",
        "lower",
    )
    assert task.prompt_hash != get_task("words").prompt_hash


def test_the_command_line_runs_and_scores_it(site: Path, rows: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(install(site))}
    anew = subprocess.run(
        [*OMNIDATA, "info", "--json"], env=environment, check=True, capture_output=True, timeout=120
    )
    assert json.loads(anew.stdout)["task_plugins"] == ["words"]
    run = tmp_path / "run"
    about = told("info", "words")
    assert about.startswith("words: a task of another distribution\n")
    assert "-T case=kept|lower  (default: kept)" in about
    assert "words-exact (default)" in about
    told("evaluate", "words", rows, "--model", "baseline:oracle", "--out", run)
    info = json.loads((run / "run.json").read_text("utf-8"))
    assert info["versions"]["omnidata-words"] == "1.2"
    told("score", "words", rows, run)
    found = json.loads((run / "results.json").read_text("utf-8"))
    assert found["overall"] == {"accuracy": 1.0}
    assert found["counts"] == {"steps": 2, "without_usable_target": 1}
    assert {name: group["accuracy"] for name, group in found["by"]["language"].items()} == {
        "de": 1.0,
        "en": 1.0,
    }


def test_what_was_judged_is_explained_where_it_explains_nothing_itself(
    site: Path, rows: Path
) -> None:
    install(site)
    task: Asking = pickle.loads(pickle.dumps(get_task("words")))
    step = task.load(rows).steps[0]
    judge = task.profiles["words-exact"].judge
    found = [
        task.explanation(
            step, None if text is None else judge(step, text), text or "", profile="words-exact"
        )
        for text in (None, "melon", "fig", "")
    ]
    assert [each.mark for each in found] == [None, "right", "wrong", "unread"]
    assert [each.answer_label for each in found] == ["", "melon", "fig", "(unparsed)"]
    assert {each.target_label for each in found} == {"BACK"}
    assert [each.sentence for each in found] == [
        "",
        "the answer is right",
        "the profile rejects score",
        "no answer could be parsed: no word",
    ]


def test_its_own_explanation_is_on_its_pages(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Explaining")
    run, page = tmp_path / "run", tmp_path / "page.html"
    told("evaluate", "words", rows, "--model", "baseline:oracle", "--out", run)
    told("report", run, "--html", page)
    text = page.read_text("utf-8")
    assert "melon is shorter" in text and "the profile rejects" not in text


def test_of_right_answers_that_are_as_frequent_the_first_is_the_majority(
    site: Path, rows: Path
) -> None:
    install(site)
    task = get_task("words")
    steps = [step for step in task.load(rows).steps if step.source["longer"]]
    for order in (steps, steps[::-1]):
        answer = task.baseline("majority", order, {})
        assert {answer(step) for step in steps} == {order[0].source["longer"]}


def test_what_is_no_task_is_named_with_its_distribution_and_all_that_it_lacks(site: Path) -> None:
    install(site, points="words = words_plugin:nothing")
    with pytest.raises(
        UsageError, match=r"omnidata-words 1\.2.*is not a task: it lacks "
    ) as caught:
        get_task("words")
    lacks = caught.value.what.rpartition("lacks ")[2].split(", ")
    assert {"card", "rules", "steps", "parse", "target"} <= {*lacks}


CHOSEN = '''

class Chosen(Words):
    """Sets its reader for each task."""

    def __init__(self, name, options):
        super().__init__(name, options)
        self.load = lambda data, **_: replace(Words.load(self, data), skipped=1)
'''


def test_a_reader_of_its_own_may_be_set_for_each_task(site: Path, rows: Path) -> None:
    install(site, CHOSEN, points="words = words_plugin:Chosen")
    assert get_task("words").load(rows).skipped == 1


def test_an_unknown_task_is_refused_with_the_names_of_plugins(site: Path) -> None:
    install(site)
    with pytest.raises(UsageError) as caught:
        get_task("wordz")
    assert "omnigui" in caught.value.expected
    assert caught.value.expected.endswith(", words")


def test_a_plugin_does_not_replace_a_task_of_ours(site: Path) -> None:
    install(site, points="omnigui = words_plugin:Words")
    assert get_task("omnigui").default_profile == "omnigui-paper"


@pytest.mark.parametrize(
    ("of", "what"), [("nothing", "is not a task"), ("Ruleless", "Ruleless has no rule")]
)
def test_a_broken_one_does_not_stand_in_the_way_of_others(
    site: Path, tmp_path: Path, of: str, what: str
) -> None:
    install(site, points=f"words = words_plugin:{of}")
    data = write_rows(tmp_path / "steps.json", [row()])
    assert recognise(data) == ["omnigui"]
    assert "Table 7" in told("info", data)
    assert what in told("info", "words", data, code=2)
