"""Several answers to every step: a run for each, and what they say together.

The first is the run itself, with the settings that it always had; the others lie below it, each a
run folder like any other, which differs in its seed alone. Each resumes, retries and fails as a
run does. What is chosen among answers is a run folder, too, that says in its name how.

    RUN/                    the first answer to every step
    RUN/samples/02/ ...     the others
    RUN/samples/majority/   of each step's answers the one that most are the same as
    RUN/samples/best/       the one that a verifier likes best
    RUN/samples.jsonl       step by step what came out
    RUN/samples.json        the table
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from omnidata.actions import Action, Point, Region, Screen, centre, convert
from omnidata.errors import PredictionError, UsageError, plural
from omnidata.jsontext import decode, encode, hash_of, write_lines
from omnidata.metrics.calibration import calibration
from omnidata.metrics.rollouts import choices, pass_all, pass_at
from omnidata.metrics.row_tables import means
from omnidata.metrics.sampling import agreement, alike, plurality
from omnidata.predictions import Prediction, numbered_lines
from omnidata.run import run_files
from omnidata.run.cluster import Recipe
from omnidata.run.cost import Limits, with_whole_cost
from omnidata.run.engines.ray import Cluster
from omnidata.run.evaluate import UNLIMITED, Count, evaluate
from omnidata.run.journal import Answers
from omnidata.run.run_files import read_results
from omnidata.run.run_info import ANSWERS, INFO, read_info, write_info
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import select, whole_episodes
from omnidata.run.selection import shard as take_shard
from omnidata.storage import atomic_write, wrap_os_error, write_json
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space, of_screen, sent_size
from omnidata.tasks.explaining import standing
from omnidata.tasks.profile import Profile
from omnidata.types import Completion, GenerationParams, LoadedDataset, Progress, Step

SAMPLES: Final = "samples"
TABLE, STEPS = "samples.json", "samples.jsonl"
MAJORITY, BEST = "majority", "best"
NEAR: Final = 50.0
"""Thousandths of the screen up to which two places are one: what a near miss may be off by."""
MOST: Final = 64
P_RIGHT: Final = "p_right"
"""The value of a critic's profile by which it is a verifier: how probably the answers are right."""
_KEY: Final = 16  # of 64 digits: two answers to one step with the same are out of the question


def folders(out: Path, samples: int) -> list[Path]:
    """Return the run folders of all samples; the first is the run itself.

    Examples:
        >>> [path.as_posix() for path in folders(Path("run"), 3)]
        ['run', 'run/samples/02', 'run/samples/03']
    """
    return [out, *(out / SAMPLES / f"{number:02}" for number in range(2, samples + 1))]


def sample_folders(run: Path) -> list[Path]:
    """Return the run and the existing folders of its other samples."""
    others = sorted((run / SAMPLES).glob("[0-9][0-9]"))
    return [run, *(path for path in others if (path / INFO).is_file())]


def params_of(base: GenerationParams, number: int, *, seeded: bool) -> GenerationParams:
    """Return the parameters of a sample, counted from 0; the first has the model's own.

    Args:
        base: of the model.
        number: of the sample.
        seeded: whether the model takes a seed; else all are sent alike, and the server draws.
    """
    if number == 0 or not seeded:
        return base
    return replace(base, seed=(base.seed or 0) + number)


def evaluate_samples(
    task: Asking,
    source: LoadedDataset,
    model: Recipe,
    out: Path,
    samples: int,
    *,
    profile: str | None = None,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    limits: Limits = UNLIMITED,
    progress: Progress | None = None,
    changed_media: bool = False,
    cluster: Cluster | None = None,
    verifier: Path | None = None,
    count: Count | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask a model several times about every step.

    Args:
        task: as of `evaluate`, like all that is not named here.
        source: the loaded data.
        model: how to make the model.
        out: the run folder.
        samples: answers to each step, 2 to 64.
        profile: see `evaluate`.
        where: see `evaluate`.
        exclude: see `evaluate`.
        limit: see `evaluate`.
        shard: see `evaluate`.
        limits: those of cost and tokens are of all samples together.
        progress: called with the answers that there are, and how many there will be.
        changed_media: see `evaluate`.
        cluster: see `evaluate`.
        verifier: scores of the answers, or a run of a critic on them (see `read_verifier`); chooses
            the best of each step.
        count: see `evaluate`; called for every sample.

    Returns:
        The content of `results.json` of the first sample, and of `samples.json`.

    Raises:
        UsageError: the model decodes greedily, so that all samples would be one; or answers would
            come out of the cache, where samples cannot be told apart by a seed; or the verifier
            judges no answers.
        RunError, PredictionError, DataError, AdapterError, UnansweredError: as `evaluate`.
    """
    if not 2 <= samples <= MOST:
        raise UsageError(
            "the number of samples is out of range",
            where=f"--samples {samples}",
            expected=f"2 to {MOST}",
        )
    if task.needs_predictions:
        raise UsageError(
            "with the model's own answers as history each sample would see another prompt",
            where="--samples, -T history=predicted",
            expected="history=gold or history=none",
        )
    chosen = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    steps = take_shard(chosen, *shard) if shard else chosen
    adapter = model.make(task, source.steps, asks=False)
    seeded = "seed" in getattr(adapter, "controls", ("seed",))
    base = adapter.params
    _check_draws(base, model, limits, seeded=seeded)
    # Before anything is asked and paid for.
    scored = read_verifier(verifier, task, source.fingerprint) if verifier else None
    results: dict[str, Any] = {}
    done: list[Path] = []
    for number, folder in enumerate(folders(out, samples)):
        left = _remaining_limits(limits, done)
        if isinstance(left, str):
            results = {**results, "stopped": left}
            break
        found = evaluate(
            task,
            source,
            model,
            folder,
            model_options=model.options,
            profile=profile,
            where=where,
            exclude=exclude,
            limit=limit,
            shard=shard,
            params=params_of(base, number, seeded=seeded),
            limits=left,
            progress=_part(progress, number, samples),
            changed_media=changed_media,
            cluster=cluster,
            count=count,
        )
        done.append(folder)
        results = results or found
        if found.get("stopped"):
            results = {**results, "stopped": found["stopped"]}
            break
    whole = whole_episodes(source.steps, steps)
    table = _Samples(task, get_profile(task, profile), source, steps, done, out).summarise(
        samples, whole, verifier, scored
    )
    return results, table


def _check_draws(base: GenerationParams, model: Recipe, limits: Limits, *, seeded: bool) -> None:
    if base.temperature == 0:
        raise UsageError(
            "the model decodes greedily, so all samples would be the same answer",
            where=f"--samples, --model {model.spec}",
            expected="a temperature above 0",
            remedy="add -M temperature=0.7, or drop --samples",
        )
    if limits.cache and not seeded:
        raise UsageError(
            "the model takes no seed, so all samples would be the same cached answer",
            where="--samples, --cache",
            expected="one of the two",
            remedy="drop --cache",
        )


def _part(progress: Progress | None, number: int, samples: int) -> Progress | None:
    if progress is None:
        return None
    tell = progress
    return lambda done, total: tell(number * total + done, samples * total)


def _remaining_limits(limits: Limits, done: Sequence[Path]) -> Limits | str:
    cost = tokens = 0.0
    for folder in done:
        used = read_info(folder).get("usage", {})
        cost += used.get("cost") or 0
        tokens += (used.get("input_tokens") or 0) + (used.get("output_tokens") or 0)
    if limits.max_cost is not None:
        if cost >= limits.max_cost:
            return f"--max-cost {limits.max_cost:g}: {plural(len(done), 'sample')} used {cost:.6g}"
        limits = replace(limits, max_cost=limits.max_cost - cost)
    if limits.max_tokens is not None:
        if tokens >= limits.max_tokens:
            return (
                f"--max-tokens {limits.max_tokens}: {plural(len(done), 'sample')} used {tokens:.0f}"
            )
        limits = replace(limits, max_tokens=int(limits.max_tokens - tokens))
    return limits


# When two answers are one action.


def same_action(a: Action, b: Action, screen: Screen) -> bool:
    """Whether two actions are equal in all but their places, which are near.

    Places are near up to 50 thousandths of the screen, as in `near_miss`. White space around texts
    is set aside, and the source's own spelling.

    Args:
        a: an action.
        b: another.
        screen: width and height in pixels, to which places refer.

    Examples:
        >>> tap = Action("tap", (Point(500, 500, "norm1000"),))
        >>> near, far = (Action("tap", (Point(x, 500, "norm1000"),)) for x in (540, 560))
        >>> same_action(tap, near, (720, 1600)), same_action(tap, far, (720, 1600))
        (True, False)
    """
    if _without_places(a) != _without_places(b) or len(a.then) != len(b.then):
        return False
    places = ((a.start, b.start), (a.end, b.end), (a.path, b.path))
    if not all(_near(left, right, screen) for left, right in places):
        return False
    return all(same_action(left, right, screen) for left, right in zip(a.then, b.then, strict=True))


def _without_places(action: Action) -> Action:
    text = None if action.text is None else action.text.strip()
    return msgspec.structs.replace(
        action, start=(), end=(), path=(), then=(), words=None, text=text
    )


def _near(a: Sequence[Region], b: Sequence[Region], screen: Screen) -> bool:
    if len(a) != len(b):
        return False
    for left, right in zip(a, b, strict=True):
        (x, y), (u, v) = (_middle(region, screen) for region in (left, right))
        if not math.hypot(x - u, y - v) <= NEAR:
            return False
    return True


def _middle(region: Region, screen: Screen) -> tuple[float, float]:
    point: Point = convert(centre(region), "norm1000", screen)
    return point.x, point.y


def answer_key(task: Asking, fingerprint: str, step: Step, answer: Completion) -> str:
    """Return a key that is the same for equal answers to a step, from any run.

    The same text to another prompt, or on other data, is another answer: a number in it may be of
    another unit.

    Args:
        task: of the step.
        fingerprint: of the data.
        step: that is answered.
        answer: as a run has it.

    Raises:
        PredictionError: its receipt is none that omnidata writes.
    """
    asked = [task.prompt_hash, task.options.get("coordinates"), fingerprint]
    return hash_of([answer.text, answer_screen_size(task, step, answer), *asked])[:_KEY]


def answer_screen_size(task: Asking, step: Step, answer: Completion) -> Screen | None:
    """Return the size of the screenshot that an answer points in, if not the step's own.

    None also where the answer's places have a unit that no size changes.

    Raises:
        PredictionError: as `answer_key`.
    """
    if answer_space(task.options) not in ("px", None):
        return None
    found = sent_size(answer.receipt, where=step.sample_id)
    return found.size if found and found.size != step.screen else None


# What the answers say together.


@dataclass(frozen=True, slots=True)
class _Answer:
    number: int
    completion: Completion
    right: bool | None
    action: Action | str | None


class _Samples:
    def __init__(
        self,
        task: Asking,
        profile: Profile,
        source: LoadedDataset,
        steps: Sequence[Step],
        runs: Sequence[Path],
        out: Path,
    ) -> None:
        self._task, self._profile, self._source = task, profile, source
        self._steps, self._runs, self._out = steps, runs, out

    def summarise(
        self, samples: int, whole: Any, verifier: Path | None, scored: Verifier | None
    ) -> dict[str, Any]:
        n = len(self._runs)
        right: list[int] = []
        owners: dict[str, int] = {}
        owner: list[int] = []
        agreed: list[float] = []
        of_agreed: list[int] = []
        sure: list[float] = []
        hit: list[bool] = []
        deliveries: Counter[str] = Counter()
        unjudged = 0
        by_majority: list[Prediction] = []
        by_verifier: list[Prediction] = []
        judgements: Counter[str] = Counter()
        with ExitStack() as files:
            answers = []
            for run in self._runs:
                found = files.enter_context(closing(Answers(run / ANSWERS, self._steps)))
                if (run / ANSWERS).exists():
                    found.read()
                answers.append(found)
            lines = files.enter_context(atomic_write(self._out / STEPS))
            for step in self._steps:
                got = [self._answer(step, number, each) for number, each in enumerate(answers)]
                here = [each for each in got if each is not None]
                deliveries.update(each.completion.delivery for each in here)
                deliveries["missing"] += n - len(here)
                usable = [each for each in here if each.completion.delivery == "ok"]
                read = [each for each in usable if each.action is not None]
                votes = alike([each.action for each in read], partial(_same, screen=step.screen))
                one = read[plurality(votes)] if read else next(iter(usable), None)
                best = None
                if scored is not None:
                    marks = [scored(step, each) for each in usable]
                    judgements["unscored"] += marks.count(None)
                    judgements["scored"] += len(marks) - marks.count(None)
                    best = _best(usable, marks)
                usage = _sum_usages([each.completion.usage for each in here])
                for choice, kept in ((one, by_majority), (best, by_verifier)):
                    if choice is not None:
                        line = Prediction.of(step.sample_id, choice.completion)
                        line.usage = usage
                        line.latency_s = sum(each.completion.latency_s for each in here)
                        kept.append(line)
                group = owners.setdefault(step.group, len(owners))
                share = agreement(votes)
                if share is not None:
                    agreed.append(share)
                    of_agreed.append(group)
                if votes and one is not None and one.right is not None:
                    sure.append(max(votes) / n)
                    hit.append(one.right)
                count = sum(each.right is True for each in here)
                if any(each.right is None for each in here):
                    unjudged += 1
                else:
                    right.append(count)
                    owner.append(group)
                told = {
                    "sample_id": step.sample_id,
                    "answers": len(usable),
                    "read": len(read),
                    "right": count,
                    "agreement": share,
                    "majority": None if one is None else one.number + 1,
                    "votes": max(votes, default=0),
                }
                if scored is not None:
                    told["best"] = None if best is None else best.number + 1
                lines.write(encode(told) + b"\n")
            if verifier and judgements["unscored"] and not judgements["scored"]:
                raise UsageError(
                    "the verifier has no score for any answer",
                    where=f"--verifier {verifier}",
                    expected=f"scores of the answers in {self._out}",
                    remedy=f"make the critic's rows of {self._out} (docs/critics.md)",
                )
        infos = [read_info(run) for run in self._runs]
        table: dict[str, Any] = {
            "task": self._task.name,
            "profile": self._profile.name,
            "samples": n,
            "asked_for": samples,
            "runs": [run.relative_to(self._out).as_posix() for run in self._runs],
            "seeds": [info.get("seed") for info in infos],
            "temperature": infos[0]["generation"]["temperature"],
            "steps": len(self._steps),
            "deliveries": {name: count for name, count in deliveries.items() if count},
            "unjudged": unjudged,
            "k": {str(k): _row(right, n, k, owner) for k in choices(n)},
            "agreement": means(
                {"agreement": np.array(agreed)}, owner=np.array(of_agreed, dtype=np.int64)
            ),
            "calibration": calibration(sure, hit),
            "usage": _usage(infos),
        }
        table["majority"] = self._write(MAJORITY, infos, by_majority, whole, len(by_majority))
        if scored is not None:
            best_of = self._write(BEST, infos, by_verifier, whole, len(by_verifier))
            table["best"] = {
                **best_of,
                **{name: judgements[name] for name in ("scored", "unscored")},
            }
        with wrap_os_error(self._out):
            write_json(self._out / TABLE, table)
        return table

    def _answer(self, step: Step, number: int, answers: Answers) -> _Answer | None:
        completion = answers.get(step.sample_id)
        if completion is None:
            return None
        if completion.delivery != "ok":
            return _Answer(number, completion, False, None)
        verdict = self._profile.judge(step, completion.text, completion.receipt)
        told = standing(self._profile, verdict)
        action: Action | str | None = None
        if verdict.outcome == "ok":
            receipt = of_screen(completion.receipt, step.screen)
            action = self._task.history_action(step, completion.text, receipt)
            if action is None and verdict.parsed is not None:
                action = encode(verdict.parsed).decode()
        return _Answer(number, completion, None if told == "unjudged" else told == "right", action)

    def _write(
        self,
        name: str,
        infos: Sequence[Mapping[str, Any]],
        chosen: Sequence[Prediction],
        whole: Any,
        count: int,
    ) -> dict[str, Any]:
        folder = self._out / SAMPLES / name
        info = {
            key: value
            for key, value in infos[0].items()
            if key not in ("timings", "usage", "facts", "stopped")
        }
        info["selection"] = {"by": name, "samples": len(infos)}
        info["usage"] = _usage(infos)
        with wrap_os_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_info(folder, info)
            with atomic_write(folder / ANSWERS) as file:
                write_lines(file, chosen)
        results = score(self._task, self._profile, self._steps, chosen, whole=whole, out=folder)
        return {
            "run": folder.relative_to(self._out).as_posix(),
            "steps": count,
            **_headline(results),
        }


def _headline(results: Mapping[str, Any]) -> dict[str, Any]:
    return {name: results[name] for name in ("overall", "ci95", "ci95_method") if name in results}


def _same(a: Action | str | None, b: Action | str | None, screen: Screen) -> bool:
    if isinstance(a, Action) and isinstance(b, Action):
        return same_action(a, b, screen)
    return a == b


def _row(right: Sequence[int], n: int, k: int, owner: Sequence[int]) -> dict[str, Any]:
    """Return pass@k and pass^k over all steps; missing answers are wrong."""
    columns = {
        name: np.array([rule(n, c, k) for c in right], np.float64)
        for name, rule in (("pass@k", pass_at), ("pass^k", pass_all))
    }
    return means(columns, shares=columns.keys(), owner=np.array(owner, dtype=np.int64))


def _usage(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    parts = [info.get("usage", {}) for info in infos]
    return with_whole_cost(_sum_usages(parts), parts)


def _sum_usages(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up numbers; take other values from the first usage that has them."""
    found: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items():
            before = found.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float | Mapping):
                found.setdefault(name, value)
            elif isinstance(value, Mapping):
                inner = [before] if isinstance(before, Mapping) else []
                found[name] = _sum_usages([*inner, value])
            else:
                found[name] = value + (before if isinstance(before, int | float) else 0)
    return found


# The best of a step's answers, by anybody's scores.

Verifier = Callable[[Step, _Answer], float | None]
"""The score of an answer; None where it has none."""


class _Line(msgspec.Struct):
    sample_id: str
    sample: int
    score: float


def read_scores(path: Path) -> dict[tuple[str, int], float]:
    """Return a verifier's scores by sample id and number of the sample, from 1.

    Args:
        path: JSON lines of {"sample_id", "sample", "score"}; more is better.

    Raises:
        PredictionError: a line is none, or an answer has two.
    """
    expected = 'JSON lines of {"sample_id", "sample", "score"}'
    found: dict[tuple[str, int], float] = {}
    for number, line in numbered_lines(path, expected=expected):
        where = f"{path}:{number}"
        try:
            said = msgspec.convert(decode(line.decode("utf-8")), _Line)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            raise PredictionError(
                f"the line is no score of an answer: {error}", where=where, expected=expected
            ) from None
        key = said.sample_id, said.sample
        if key in found or not math.isfinite(said.score):
            raise PredictionError(
                "the answer has two scores" if key in found else "the score is no number",
                where=where,
                expected="one finite score for each answer",
            )
        found[key] = said.score
    return found


def read_verifier(path: Path, task: Asking, fingerprint: str) -> Verifier:
    """Read a verifier's scores: a file, or the run of a critic.

    The answers that a critic judged are known by what they say (`answer_key`), whichever sample of
    whichever run with the same prompts they are.

    Args:
        path: a file as of `read_scores`, or the folder of a run whose profile has the value
            `P_RIGHT`.
        task: of the answers.
        fingerprint: of their data.

    Raises:
        PredictionError: as `read_scores`.
        RunError: it is a folder, and no run with scores.
        UsageError: it is a run that judges no answers.
    """
    if not path.is_dir():
        scored = read_scores(path)
        return lambda step, answer: scored.get((step.sample_id, answer.number + 1))
    profile = read_results(path)["profile"]
    lines = run_files.read_scores(path, profile, values=(P_RIGHT,))
    if not any(P_RIGHT in line for line in lines.values()):
        raise UsageError(
            f"the run judges no answers: its profile {profile} has no {P_RIGHT}",
            where=f"--verifier {path}",
            expected="a run of a critic, on rows made from answers (docs/critics.md)",
        )
    known = {name: line[P_RIGHT] for name, line in lines.items() if line.get(P_RIGHT) is not None}
    return lambda step, answer: known.get(
        f"{step.sample_id}#{answer_key(task, fingerprint, step, answer.completion)}"
    )


def _best(usable: Sequence[_Answer], scores: Sequence[float | None]) -> _Answer | None:
    """Return the answer with the highest score; the first of equals."""
    known = [(score, -n) for n, score in enumerate(scores) if score is not None]
    return usable[-max(known)[1]] if known else None
