"""A run asks every step once, of the steps that were chosen."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from omnidata.adapters import Model
from omnidata.errors import UsageError
from omnidata.media import resolve
from omnidata.predictions import read
from omnidata.run.evaluate import evaluate
from omnidata.run.selection import select, whole_episodes
from omnidata.tasks import get_task
from omnidata.types import Completion, GenerationParams, LoadedDataset, Modality, Prepared, Request
from tests.run.scripted import TASK, Scripted
from tests.trees import read_lines, row, write_rows


@pytest.mark.parametrize("space", ["norm1000", "px", "rel", "auto"])
def test_the_oracle_scores_one_everywhere(
    source: LoadedDataset, tmp_path: Path, space: str
) -> None:
    task = get_task("omnigui", {"coordinates": space})
    results = evaluate(task, source, "baseline:oracle", tmp_path)
    tables = [results["overall"], *(t for by in results["by"].values() for t in by.values())]
    assert len(tables) > 14
    for table in tables:
        for metric in ("TM", "EM", "SR", "GP", "GP_ratio", "GP_prefix"):
            assert table[metric] == 1.0
    assert results["outcomes"] == {"ok": len(source.steps)}
    assert results["overall"]["format_ok"] == 1.0 or space in ("px", "auto")


class Memory(Model):
    """Knows the right answer to everything it can tell apart, but does not take one modality."""

    name = "memory"
    accepts = None

    def __init__(self, source: LoadedDataset, blind_to: str) -> None:
        self.blind_to = blind_to
        self.answers: dict[str, Counter[str]] = {}
        for step in source.steps:
            target = TASK.target(step)
            assert target
            seen = self.see(Request(step.sample_id, TASK.conversation(step)))
            self.answers.setdefault(seen, Counter())[target.text] += 1

    def see(self, request: Request) -> str:
        digest = hashlib.sha256()
        for part in request.conversation[1].parts:
            if part.media and part.kind != self.blind_to:
                digest.update(resolve(part.media).read_bytes())
            digest.update(part.text.encode())
        return digest.hexdigest()

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        return [
            Completion(text=self.answers[self.see(item.request)].most_common(1)[0][0])
            for item in batch
        ]


@pytest.mark.parametrize(("blind_to", "fails"), [("nothing", 0), ("audio", 9), ("video", 6)])
def test_the_best_policy_without_ears_or_eyes_for_motion_must_fail(
    whole: LoadedDataset, tmp_path: Path, blind_to: str, fails: int
) -> None:
    """Twins are equal but for one medium; who does not take it gets one of each group right."""
    results = evaluate(TASK, whole, Memory(whole, blind_to), tmp_path)
    wrong = [line for line in read_lines(tmp_path / "scores.jsonl") if not line["exact_match"]]
    assert len(wrong) >= fails
    assert (len(wrong) == 0) == (blind_to == "nothing")
    assert results["by"]["dependency"]["present"]["EM"] == 1.0
    assert (results["by"]["dependency"]["critical"]["SR"] == 1.0) == (blind_to == "nothing")


@pytest.mark.parametrize("name", ["center", "random", "always-wait", "majority"])
def test_a_baseline_answers_every_step_in_the_prompts_format(
    source: LoadedDataset, tmp_path: Path, name: str
) -> None:
    results = evaluate(TASK, source, f"baseline:{name}", tmp_path)
    assert results["overall"]["format_ok"] == 1.0
    assert 0 < results["overall"]["TM"] < 1
    assert results["overall"]["SR"] < 0.2


def test_random_is_the_same_by_seed_and_another_by_another(
    source: LoadedDataset, tmp_path: Path
) -> None:
    outputs = []
    for number, options in enumerate(({}, {"seed": "0"}, {"seed": "1"})):
        evaluate(TASK, source, "baseline:random", tmp_path / str(number), model_options=options)
        outputs.append(
            [p["output"] for p in read_lines(tmp_path / str(number) / "predictions.jsonl")]
        )
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
    source: LoadedDataset, tmp_path: Path, model: str, options: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        evaluate(TASK, source, model, tmp_path / "run", model_options=options)
    assert not (tmp_path / "run").exists()


def test_a_limit_keeps_half_an_episode_out_of_success_and_progress(
    source: LoadedDataset, tmp_path: Path
) -> None:
    first = source.steps[0]
    assert first.num_steps > 2
    results = evaluate(TASK, source, "baseline:oracle", tmp_path, limit=first.num_steps + 1)
    assert len(read_lines(tmp_path / "predictions.jsonl")) == first.num_steps + 1
    assert results["counts"]["episodes"] == 2
    assert results["counts"]["whole_episodes"] == 1
    assert results["overall"]["SR"] == 1.0


def test_where_and_exclude_choose_steps(source: LoadedDataset) -> None:
    english = select(source.steps, where={"language": "en", "dimension": "localization"})
    assert {(s.tags["language"], s.tags["dimension"]) for s in english} == {("en", "localization")}
    out = frozenset({source.steps[0].sample_id})
    rest = select(source.steps, exclude=out)
    assert len(rest) == len(source.steps) - 1
    assert not whole_episodes(source.steps, rest)[0]
    assert whole_episodes(source.steps, rest)[-1]


@pytest.mark.parametrize("where", [{"dimension": "speed"}, {"colour": "red"}])
def test_a_tag_that_the_data_lacks_is_refused_with_those_it_has(
    source: LoadedDataset, where: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match=r"localization|dimension"):
        select(source.steps, where=where)


class Decoding(Scripted):
    """Leaves media to the base class, which looks whether they decode."""

    accepts: Collection[Modality] | None = frozenset({"image", "video", "audio"})
    prepare = Model.prepare


def test_a_step_with_a_broken_medium_is_not_asked_and_never_a_prediction(
    tmp_path: Path, few: Path
) -> None:
    data = shutil.copytree(few, tmp_path / "data")
    broken = min(data.glob("*/media/*/1.mp4"))
    broken.write_bytes(broken.read_bytes()[:200])
    min(data.glob("*/media/*/2.png")).unlink()
    model = Decoding()
    results = evaluate(TASK, TASK.load(data), model, tmp_path / "run", limit=10)
    failed = [p for p in read(tmp_path / "run" / "predictions.jsonl") if p.delivery != "ok"]
    assert {(p.delivery, p.output) for p in failed} == {("media_error", "")}
    assert str(broken) in "".join(p.error for p in failed)
    assert results["outcomes"]["media_error"] == len(failed) == 10 - len(model.asked)
    # step 0 lacks its clip, step 1 its screenshot, step 3 the same as its history screenshot
    assert len(failed) >= 2


def test_media_that_the_model_does_not_take_are_not_opened(tmp_path: Path, few: Path) -> None:
    data = shutil.copytree(few, tmp_path / "data")
    for clip in data.glob("*/media/*/*.mp4"):
        clip.write_bytes(b"no clip")
    model = Decoding()
    model.accepts = frozenset({"image"})
    task = get_task("omnigui", {"modalities": "I"})
    results = evaluate(task, task.load(data), model, tmp_path / "run", limit=4)
    assert len(model.asked) == 4
    assert results["outcomes"] == {"ok": 4}


TAP = Completion(text='{"action_type": 0, "coordinate": [1, 2]}')
PREDICTED = get_task("omnigui", {"history": "predicted"})


def histories(tmp_path: Path, odd: Mapping[str, Completion], *steps: int) -> dict[str, str]:
    """The prompts of a run over two episodes in which some answers are no taps."""
    rows = [row(episode, step, app="ted") for episode in "AB" for step in steps]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    model = Scripted(lambda name, _: odd.get(name, TAP))
    evaluate(PREDICTED, source, model, tmp_path / "run")
    return {name: prompt[1].parts[-1].text for name, prompt in model.prompts.items()}


def test_predicted_history_is_the_models_own(tmp_path: Path) -> None:
    odd = {"ted/B/0": Completion(delivery="refused"), "ted/B/1": Completion(text="no idea")}
    prompts = histories(tmp_path, odd, 0, 1, 3)
    assert "Action History:\nStep 0: TAP at [1, 2]\nStep 1: TAP at [1, 2]\n\n" in prompts["ted/A/3"]
    assert "Action History" not in prompts["ted/B/3"]


def test_with_predicted_history_a_step_is_asked_again_when_an_earlier_one_was(
    tmp_path: Path,
) -> None:
    histories(tmp_path, {"ted/A/1": Completion(delivery="api_error", error="503")}, 0, 1, 2)
    again = histories(tmp_path, {}, 0, 1, 2)
    assert [*again] == ["ted/A/1", "ted/A/2"]
    assert "Step 1: TAP at [1, 2]" in again["ted/A/2"]
    final = [line["sample_id"] for line in read_lines(tmp_path / "run" / "predictions.jsonl")]
    assert sorted(final) == [f"ted/{episode}/{step}" for episode in "AB" for step in (0, 1, 2)]
