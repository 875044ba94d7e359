"""A run asks every step once, keeps what it has, and scores what it has."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import answer
from omnidata.errors import PredictionError, RunError, UsageError
from omnidata.media import resolve
from omnidata.predictions import read
from omnidata.run.evaluate import evaluate
from omnidata.run.folder import RunFolder
from omnidata.run.score import score
from omnidata.run.select import select, whole_episodes
from omnidata.tasks import get_task
from omnidata.types import Completion, GenerationParams, Modality, Request, Source
from tests.trees import row, write_lines, write_rows

TASK = get_task("omnigui")


@pytest.fixture(scope="module")
def source(sample: Path) -> Source:
    return TASK.load(sample)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- baselines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["norm1000", "px", "rel", "auto"])
def test_the_oracle_scores_one_everywhere(source: Source, tmp_path: Path, space: str) -> None:
    task = get_task("omnigui", {"coordinates": space})
    results = evaluate(task, source, "baseline:oracle", tmp_path)
    tables = [results["overall"], *(t for by in results["by"].values() for t in by.values())]
    assert len(tables) > 14
    for table in tables:
        for metric in ("TM", "EM", "SR", "GP", "GP_ratio", "GP_prefix"):
            assert table[metric] == 1.0
    assert results["outcomes"] == {"ok": len(source.steps)}
    assert results["overall"]["format_ok"] == 1.0 or space in ("px", "auto")


class Memory:
    """Knows the right answer to everything it can tell apart, but does not take one modality."""

    name = "memory"
    max_batch = 1
    accepts: frozenset[Modality] = frozenset()

    def __init__(self, source: Source, blind_to: str) -> None:
        self.blind_to = blind_to
        self.answers: dict[str, Counter[str]] = {}
        for step in source.steps:
            assert step.action
            text = json.dumps(answer(step.action, step.screen))
            seen = self.see(Request(step.sample_id, TASK.prompt(step)))
            self.answers.setdefault(seen, Counter())[text] += 1

    def see(self, request: Request) -> str:
        digest = hashlib.sha256()
        for part in request.conversation[1].parts:
            if part.media and part.kind != self.blind_to:
                digest.update(resolve(part.media).read_bytes())
            digest.update(part.text.encode())
        return digest.hexdigest()

    async def generate(
        self, batch: Sequence[Request], params: GenerationParams
    ) -> list[Completion]:
        return [
            Completion(text=self.answers[self.see(request)].most_common(1)[0][0])
            for request in batch
        ]


@pytest.mark.parametrize(("blind_to", "fails"), [("nothing", 0), ("audio", 9), ("video", 6)])
def test_the_best_policy_without_ears_or_eyes_for_motion_must_fail(
    source: Source, tmp_path: Path, blind_to: str, fails: int
) -> None:
    """Twins are equal but for one medium; who does not take it gets one of each group right."""
    results = evaluate(TASK, source, Memory(source, blind_to), tmp_path)
    wrong = [line for line in lines(tmp_path / "scores.jsonl") if not line["exact_match"]]
    assert len(wrong) >= fails
    assert (len(wrong) == 0) == (blind_to == "nothing")
    assert results["by"]["dependency"]["present"]["EM"] == 1.0
    assert (results["by"]["dependency"]["critical"]["SR"] == 1.0) == (blind_to == "nothing")


@pytest.mark.parametrize("name", ["center", "random", "always-wait", "majority"])
def test_a_baseline_answers_every_step_in_the_prompts_format(
    source: Source, tmp_path: Path, name: str
) -> None:
    results = evaluate(TASK, source, f"baseline:{name}", tmp_path)
    assert results["overall"]["format_ok"] == 1.0
    assert 0 < results["overall"]["TM"] < 1
    assert results["overall"]["SR"] < 0.2


def test_random_is_the_same_by_seed_and_another_by_another(source: Source, tmp_path: Path) -> None:
    outputs = []
    for number, options in enumerate(({}, {"seed": "0"}, {"seed": "1"})):
        evaluate(TASK, source, "baseline:random", tmp_path / str(number), model_options=options)
        outputs.append([p["output"] for p in lines(tmp_path / str(number) / "predictions.jsonl")])
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("baseline:best", {}),
        ("gpt", {}),
        ("replay:", {}),
        ("baseline:center", {"seed": "1"}),
        ("baseline:random", {"seed": "x"}),
    ],
)
def test_an_unknown_model_or_option_is_refused(
    source: Source, tmp_path: Path, model: str, options: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        evaluate(TASK, source, model, tmp_path / "run", model_options=options)
    assert not (tmp_path / "run").exists()


# --- the run folder -------------------------------------------------------------------------------


def test_a_run_folder_holds_what_the_architecture_promises(source: Source, tmp_path: Path) -> None:
    results = evaluate(TASK, source, "baseline:center", tmp_path)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    info = json.loads((tmp_path / "run.json").read_text())
    assert info["task"] == "omnigui"
    assert info["model"] == "baseline:center"
    assert info["dataset_fingerprint"] == source.fingerprint
    assert info["prompt_hash"] == TASK.prompt_hash
    assert info["generation"] == {"temperature": 0.0, "max_new_tokens": 4096}
    assert info["seed"] == 0
    assert set(info["options"]) == set(TASK.allowed)
    assert {"omnidata", "python"} <= set(info["versions"])
    assert set(info["timings"]) == {"prepare_s", "model_s", "score_s"}
    ids = [step.sample_id for step in source.steps]
    predictions = lines(tmp_path / "predictions.jsonl")
    assert [line["sample_id"] for line in predictions] == ids
    assert {"delivery", "output", "usage", "latency_s", "attempts", "receipt"} < set(predictions[0])
    scores = lines(tmp_path / "scores.jsonl")
    assert [line["sample_id"] for line in scores] == ids
    assert {line["profile"] for line in scores} == {"omnigui-paper"}
    exact = [line["exact_match"] for line in scores]
    assert sum(exact) / len(exact) == results["overall"]["EM"]


@pytest.mark.parametrize("torn", [b"", b'{"sample_id":"Chirp', b"\xff"])
def test_a_resumed_run_equals_an_uninterrupted_one(
    source: Source, tmp_path: Path, torn: bytes
) -> None:
    evaluate(TASK, source, "baseline:random", tmp_path / "whole")
    whole = (tmp_path / "whole" / "predictions.jsonl").read_bytes()
    part = tmp_path / "part"
    part.mkdir()
    (part / "run.json").write_bytes((tmp_path / "whole" / "run.json").read_bytes())
    keep = b"".join(whole.splitlines(keepends=True)[:40])
    (part / "predictions.jsonl").write_bytes(keep + torn)
    seen: list[tuple[int, int]] = []
    results = evaluate(
        TASK, source, "baseline:random", part, progress=lambda *now: seen.append(now)
    )
    assert (part / "predictions.jsonl").read_bytes() == whole
    assert json.loads((tmp_path / "whole" / "results.json").read_text()) == results
    assert seen[-1] == (len(source.steps), len(source.steps))


def test_other_settings_are_refused_with_the_difference(source: Source, tmp_path: Path) -> None:
    evaluate(TASK, source, "baseline:random", tmp_path)
    before = (tmp_path / "predictions.jsonl").read_bytes()
    with pytest.raises(RunError, match='"baseline:random" there, "baseline:center" now'):
        evaluate(TASK, source, "baseline:center", tmp_path)
    with pytest.raises(RunError, match="limit: null there, 3 now"):
        evaluate(TASK, source, "baseline:random", tmp_path, limit=3)
    assert (tmp_path / "predictions.jsonl").read_bytes() == before


def test_a_folder_with_other_things_is_left_alone(source: Source, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("text")
    with pytest.raises(RunError, match=r"thesis\.tex"):
        evaluate(TASK, source, "baseline:center", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_has_one_writer(source: Source, tmp_path: Path) -> None:
    evaluate(TASK, source, "baseline:center", tmp_path)
    settings = json.loads((tmp_path / "run.json").read_text())
    with RunFolder(tmp_path, settings), pytest.raises(RunError, match="another process"):
        evaluate(TASK, source, "baseline:center", tmp_path)
    evaluate(TASK, source, "baseline:center", tmp_path)


def test_a_run_killed_at_its_very_start_begins_anew(source: Source, tmp_path: Path) -> None:
    (tmp_path / ".run.json.new").write_text("{")
    (tmp_path / ".lock").touch()
    assert evaluate(TASK, source, "baseline:oracle", tmp_path)["overall"]["EM"] == 1.0


def test_a_run_folder_that_cannot_be_made_is_said(source: Source, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(RunError, match="give another --out"):
        evaluate(TASK, source, "baseline:center", tmp_path / "file")


def test_an_edited_replay_is_another_model(source: Source, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "p.jsonl", [{"sample_id": "a", "output": "x"}])
    evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=1)
    write_lines(path, [{"sample_id": "a", "output": "y"}])
    with pytest.raises(RunError, match="other settings"):
        evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=1)


def test_times_add_up_over_resumed_runs(source: Source, tmp_path: Path) -> None:
    spent = []
    for _ in range(2):
        evaluate(TASK, source, "baseline:random", tmp_path)
        spent.append(json.loads((tmp_path / "run.json").read_text())["timings"]["model_s"])
    assert spent[1] >= spent[0] > 0


def test_a_transient_failure_is_tried_again_on_resume_and_kept_as_an_attempt(
    tmp_path: Path,
) -> None:
    settings = {"model": "m"}
    with RunFolder(tmp_path, settings) as run:
        run.append("a", Completion(delivery="api_error", error="503"))
        run.append("b", Completion(text="{}", usage={"tokens": 3}))
        run.append("c", Completion(delivery="refused"))
    with RunFolder(tmp_path, settings) as run:
        assert run.done.keys() == {"b", "c"}
        assert run.done["b"].usage == {"tokens": 3}
        run.append("a", Completion(text="now"))
    assert [line.sample_id for line in read(tmp_path / "predictions.jsonl")] == ["b", "c", "a"]
    (attempt,) = read(tmp_path / "attempts.jsonl")
    assert (attempt.sample_id, attempt.delivery, attempt.error) == ("a", "api_error", "503")


def test_text_with_lone_surrogates_survives_the_folder(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {"model": "m"}) as run:
        run.append("a", Completion(text="\ud800 {"))
    with RunFolder(tmp_path, {"model": "m"}) as run:
        assert run.done["a"].text == "\ud800 {"


# --- what is asked --------------------------------------------------------------------------------


def test_a_limit_keeps_half_an_episode_out_of_success_and_progress(
    source: Source, tmp_path: Path
) -> None:
    first = source.steps[0]
    assert first.num_steps > 2
    results = evaluate(TASK, source, "baseline:oracle", tmp_path, limit=first.num_steps + 1)
    assert len(lines(tmp_path / "predictions.jsonl")) == first.num_steps + 1
    assert results["counts"]["episodes"] == 2
    assert results["counts"]["whole_episodes"] == 1
    assert results["overall"]["SR"] == 1.0


def test_where_and_exclude_choose_steps(source: Source) -> None:
    english = select(source.steps, where={"language": "en", "dimension": "localization"})
    assert {(s.tags["language"], s.tags["dimension"]) for s in english} == {("en", "localization")}
    out = frozenset({source.steps[0].sample_id})
    rest = select(source.steps, exclude=out)
    assert len(rest) == len(source.steps) - 1
    assert not whole_episodes(source.steps, rest)[0]
    assert whole_episodes(source.steps, rest)[-1]


@pytest.mark.parametrize("where", [{"dimension": "speed"}, {"colour": "red"}])
def test_a_tag_that_the_data_lacks_is_refused_with_those_it_has(
    source: Source, where: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match=r"localization|dimension"):
        select(source.steps, where=where)


class Recorder:
    """A model of the test's own: keeps what it is asked and answers by a function."""

    name = "recorder"
    max_batch = 3

    def __init__(
        self, reply: Callable[[Request], Completion], accepts: Sequence[Modality] = ()
    ) -> None:
        self.reply = reply
        self.accepts = frozenset(accepts)
        self.asked: list[Request] = []

    async def generate(
        self, batch: Sequence[Request], params: GenerationParams
    ) -> list[Completion]:
        self.asked += batch
        return [self.reply(request) for request in batch]


def test_a_step_with_a_broken_medium_is_not_asked_and_never_a_prediction(
    tmp_path: Path, sample: Path
) -> None:
    data = shutil.copytree(sample, tmp_path / "data")
    broken = min(data.glob("*/media/*/1.mp4"))
    broken.write_bytes(broken.read_bytes()[:200])
    min(data.glob("*/media/*/2.png")).unlink()
    model = Recorder(lambda _: Completion(text='{"action_type": -1}'), ["image", "video", "audio"])
    source = TASK.load(data)
    results = evaluate(TASK, source, model, tmp_path / "run", limit=10)
    failed = [p for p in read(tmp_path / "run" / "predictions.jsonl") if p.delivery != "ok"]
    assert {p.delivery for p in failed} == {"media_error"}
    assert all(p.output == "" for p in failed)
    assert str(broken) in "".join(p.error for p in failed)
    assert results["outcomes"]["media_error"] == len(failed) == 10 - len(model.asked)
    # step 0 lacks its clip, step 1 its screenshot, step 3 the same as its history screenshot
    assert len(failed) >= 2


def test_media_that_the_model_does_not_take_are_not_opened(tmp_path: Path, sample: Path) -> None:
    data = shutil.copytree(sample, tmp_path / "data")
    for clip in data.glob("*/media/*/*.mp4"):
        clip.write_bytes(b"no clip")
    model = Recorder(lambda _: Completion(text="{}"), ["image"])
    results = evaluate(TASK, TASK.load(data), model, tmp_path / "run", limit=4)
    assert len(model.asked) == 4
    assert results["outcomes"] == {"unparsed": 4}


def test_predicted_history_is_the_models_own(
    tmp_path: Path,
) -> None:
    rows = [row(episode, step, app="ted") for episode in ("A", "B") for step in (0, 1, 3)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))

    def reply(request: Request) -> Completion:
        if request.sample_id == "ted/B/0":
            return Completion(delivery="refused")
        if request.sample_id == "ted/B/1":
            return Completion(text="no idea")
        return Completion(text='{"action_type": 0, "coordinate": [1, 2]}')

    model = Recorder(reply)
    task = get_task("omnigui", {"history": "predicted"})
    evaluate(task, source, model, tmp_path / "run")
    prompts = {r.sample_id: r.conversation[1].parts[-1].text for r in model.asked}
    assert "Action History:\nStep 0: TAP at [1, 2]\nStep 1: TAP at [1, 2]\n\n" in prompts["ted/A/3"]
    assert "Action History" not in prompts["ted/B/3"]


# --- scoring --------------------------------------------------------------------------------------


def test_steps_without_an_answer_are_missing_and_wrong(source: Source, tmp_path: Path) -> None:
    some = source.steps[:10]
    path = write_lines(
        tmp_path / "p.jsonl",
        [
            {"sample_id": s.sample_id, "output": json.dumps(answer(s.action, s.screen))}
            for s in some
            if s.action
        ],
    )
    profile = TASK.profiles["omnigui-paper"]
    results = score(
        TASK, profile, source.steps, read(path), whole=whole_episodes(source.steps, source.steps)
    )
    assert results["outcomes"] == {"ok": 10, "missing": len(source.steps) - 10}
    assert results["overall"]["EM"] == pytest.approx(10 / len(source.steps))
    assert results["answered"]["EM"] == 1.0
    assert results["answered"]["steps"] == 10
    assert results["counts"]["steps"] == len(source.steps)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"sample_id": "nobody/T1/0", "output": "x"}, r"p\.jsonl:2: nobody/T1/0"),
        ({"sample_id": None, "output": "x"}, r"p\.jsonl:1,2: .*answered twice"),
    ],
)
def test_unknown_and_repeated_ids_are_errors_and_write_nothing(
    source: Source, tmp_path: Path, extra: dict[str, Any], message: str
) -> None:
    first = source.steps[0].sample_id
    answers = [{"sample_id": first, "output": "x"}, {**extra}]
    answers[1]["sample_id"] = extra["sample_id"] or first
    path = write_lines(tmp_path / "p.jsonl", answers)
    with pytest.raises(PredictionError, match=message):
        score(
            TASK,
            TASK.profiles["omnigui-paper"],
            source.steps,
            read(path),
            whole=whole_episodes(source.steps, source.steps),
            out=tmp_path / "out",
            origin=path,
        )
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"output": "x"}', '{"sample_id": 3, "output": "x"}',
             '{"sample_id": "a", "output": {}}',
             '{"sample_id": "a", "output": "x", "delivery": "?"}',
             "\udcff"]
)  # fmt: skip
def test_a_line_that_is_no_prediction_is_named_by_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "p.jsonl"
    good = json.dumps({"sample_id": "a", "output": "x"})
    path.write_bytes(f"{good}\n\n".encode() + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(PredictionError, match=r"p\.jsonl:3"):
        list(read(path))


def test_steps_without_a_usable_target_are_left_out_of_the_paper_profile_and_counted(
    tmp_path: Path,
) -> None:
    rows = [row(step=0), row(step=1, result_touch_xy="[[1,2]]"), row(step=2, result_action_type=10)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["without_usable_target"] == 1
    assert results["counts"]["steps"] == 2
    assert results["overall"]["EM"] == 1.0
    release = evaluate(
        TASK, source, "baseline:oracle", tmp_path / "release", profile="omnigui-release"
    )
    assert release["counts"]["steps"] == 3


def test_steps_judged_by_an_extension_are_counted(tmp_path: Path) -> None:
    rows = [row(step=0, result_touch_xy="[360,800]"), row(step=1)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["judged_by_extension"] == 1


def test_episodes_of_two_apps_merge_in_the_release_where_it_merges_them(tmp_path: Path) -> None:
    rows = [
        row("T1", 0, app="ted", result_action_type=10),
        row("T1", 0, app="jd", result_action_type=11),
    ]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    paper = evaluate(TASK, source, "baseline:oracle", tmp_path / "a")
    release = evaluate(TASK, source, "baseline:oracle", tmp_path / "b", profile="omnigui-release")
    assert (paper["counts"]["episodes"], release["counts"]["episodes"]) == (2, 1)


def test_a_replayed_run_scores_the_same(source: Source, tmp_path: Path) -> None:
    first = evaluate(TASK, source, "baseline:random", tmp_path / "a")
    spec = f"replay:{tmp_path / 'a' / 'predictions.jsonl'}"
    again = evaluate(TASK, source, spec, tmp_path / "b")
    assert again == first


def test_a_replay_without_a_line_for_a_step_is_a_failure_not_an_answer(
    source: Source, tmp_path: Path
) -> None:
    path = write_lines(
        tmp_path / "p.jsonl", [{"sample_id": source.steps[0].sample_id, "output": "x"}]
    )
    results = evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=2)
    assert results["outcomes"] == {"unparsed": 1, "api_error": 1}


def test_mutants_of_the_oracle_change_exactly_the_metrics_they_must(tmp_path: Path) -> None:
    """One step of one of two episodes is made wrong; `px` makes one unit one pixel."""
    box = {"result_touch_xy": "[[210,786],[351,850]]"}
    rows = [
        row("A", 0, app="ted", **box),
        row("A", 1, app="ted", result_action_type=3, result_lift_xy="[[10,20],[30,40]]", **box),
        row("A", 2, app="ted", result_action_type=7, result_action_text="hello"),
        row("A", 3, app="ted", result_action_type=10),
        row("B", 0, app="ted", result_action_type=8),
    ]
    task = get_task("omnigui", {"coordinates": "px"})
    source = task.load(write_rows(tmp_path / "steps.json", rows))
    right = [answer(s.action, s.screen, space="px") for s in source.steps if s.action]
    inside = [[210, 786], [351, 850], [210, 850], [351, 786]]
    outside = [[209, 800], [352, 800], [300, 785], [300, 851]]
    mutants: list[tuple[int, dict[str, Any], bool, bool]] = [
        *((0, {"coordinate": point}, True, True) for point in inside),
        *((0, {"coordinate": point}, True, False) for point in outside),
        *((1, {"start_coordinate": point}, True, False) for point in outside),
        (1, {"end_coordinate": [30, 40]}, True, True),
        (1, {"end_coordinate": [31, 40]}, True, False),
        (2, {"text": "hellp"}, True, False),
        (2, {"text": "Hello"}, True, False),
        (3, {"action_type": 11}, False, False),
    ]
    for number, (place, change, type_match, exact) in enumerate(mutants):
        bodies = [{**body, **(change if i == place else {})} for i, body in enumerate(right)]
        answers = [
            {"sample_id": step.sample_id, "output": json.dumps(body)}
            for step, body in zip(source.steps, bodies, strict=True)
        ]
        path = write_lines(tmp_path / f"{number}.jsonl", answers)
        overall = score(
            task,
            task.profiles["omnigui-paper"],
            source.steps,
            read(path),
            whole=whole_episodes(source.steps, source.steps),
        )["overall"]
        assert overall["TM"] == (1.0 if type_match else 4 / 5), change
        assert overall["EM"] == (1.0 if exact else 4 / 5), change
        assert overall["SR"] == (1.0 if exact else 1 / 2), change
        assert overall["GP_ratio"] == (1.0 if exact else (3 / 4 + 1) / 2), change
        assert overall["GP_prefix"] == (1.0 if exact else (place / 4 + 1) / 2), change


def test_a_metric_over_nothing_is_null_and_no_nought(tmp_path: Path) -> None:
    source = TASK.load(write_rows(tmp_path / "steps.json", [row(step=0), row(step=1)]))
    cut = evaluate(TASK, source, "baseline:oracle", tmp_path / "cut", limit=1)
    assert (cut["overall"]["EM"], cut["overall"]["SR"], cut["ci95"]["GP"]) == (1.0, None, None)
    unusable = write_rows(tmp_path / "none.json", [row(result_action_type=12)])
    nothing = evaluate(TASK, TASK.load(unusable), "baseline:oracle", tmp_path / "none")
    assert set(nothing["overall"].values()) == {None}


def test_episodes_that_lack_steps_are_counted(tmp_path: Path) -> None:
    rows = [
        row("gap", 0), row("gap", 2), row("tail", 0, episode_length=3), row("whole", 0),
        row("left out", 0, result_touch_xy="[1]"), row("left out", 1),
    ]  # fmt: skip
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["incomplete_episodes"] == 3
