"""Choices among several answers to a step: the most frequent one, or the best by a verifier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from omnidata.actions import Action, Region, Screen, centre, convert
from omnidata.errors import PredictionError, UsageError
from omnidata.jsontext import decode, encode, hash_of, write_lines
from omnidata.loaders.steps import Positions
from omnidata.metrics.calibration import calibration
from omnidata.metrics.rollouts import choices, pass_all, pass_at
from omnidata.metrics.row_tables import means
from omnidata.metrics.sampling import agreement, alike, plurality
from omnidata.predictions import Prediction, numbered_lines
from omnidata.run import run_files
from omnidata.run.cost import add_up, with_whole_cost
from omnidata.run.errata import Errata, RightActions
from omnidata.run.journal import Answers
from omnidata.run.run_files import read_results
from omnidata.run.run_info import ANSWERS, read_info, write_info
from omnidata.run.scoring import score
from omnidata.run.selection import whole_episodes
from omnidata.storage import atomic_write, wrap_os_error, write_json
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space, of_screen, sent_size
from omnidata.tasks.marks import find_standing
from omnidata.tasks.profile import Profile
from omnidata.types import Completion, LoadedDataset, Step

SAMPLES: Final = "samples"
_MAJORITY, _BEST = "majority", "best"
_NEAR: Final = 50.0
"""Thousandths of the screen within which two places are the same, as in `near_miss`."""
P_RIGHT: Final = "p_right"
"""The value of a critic's profile by which it is a verifier: how probably the answers are right."""
_KEY: Final = 16  # of 64 digits: two answers to one step with the same are out of the question


# When two answers are one action.


def same_action(a: Action, b: Action, screen: Screen) -> bool:
    """Return whether two actions are equal in all but their places, which are near.

    Places are near up to 50 thousandths of the screen, as in `near_miss`. White space around texts
    is set aside, and the source's own spelling.

    Args:
        a: an action.
        b: another.
        screen: width and height in pixels, to which places refer.

    Examples:
        >>> from omnidata.actions import Point
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
    one, other = ([convert(centre(each), "norm1000", screen) for each in of] for of in (a, b))
    return all(math.hypot(p.x - q.x, p.y - q.y) <= _NEAR for p, q in zip(one, other, strict=True))


def answer_key(task: Asking, fingerprint: str, step: Step, answer: Completion) -> str:
    """Return a key that is the same for equal answers to a step, from any run.

    The same text to another prompt, or on other data, is another answer: a number in it may be of
    another unit.

    Args:
        task: the benchmark with its options.
        fingerprint: of the data.
        step: the step.
        answer: its line in a run.

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


# Scores of answers, by which the best one is chosen.


@dataclass(frozen=True, slots=True)
class Verifier:
    """Scores of answers.

    Attributes:
        path: a file, or a run folder.
        score: takes a step, the number of its sample, from 1, and the answer, and returns its
            score; None where it has none.
    """

    path: Path
    score: Callable[[Step, int, Completion], float | None]


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
        return Verifier(path, lambda step, number, _: scored.get((step.sample_id, number)))
    profile = read_results(path)["profile"]
    lines = run_files.read_scores(path, profile, values=(P_RIGHT,))
    if not any(P_RIGHT in line for line in lines.values()):
        raise UsageError(
            f"the run judges no answers: its profile {profile} has no {P_RIGHT}",
            where=f"--verifier {path}",
            expected="a run of a critic, on rows made from answers (docs/critics.md)",
        )
    known = {name: line[P_RIGHT] for name, line in lines.items() if line.get(P_RIGHT) is not None}

    def score(step: Step, _: int, answer: Completion) -> float | None:
        return known.get(f"{step.sample_id}#{answer_key(task, fingerprint, step, answer)}")

    return Verifier(path, score)


# The table of all samples.


@dataclass(frozen=True, slots=True)
class _Answer:
    number: int  # of the sample, from 1
    completion: Completion
    right: bool | None
    action: Action | str | None


def write_table(
    task: Asking,
    profile: Profile,
    source: LoadedDataset,
    steps: Sequence[Step],
    runs: Sequence[Path],
    *,
    samples: int,
    verifier: Verifier | None = None,
    errata: Sequence[Errata] = (),
) -> dict[str, Any]:
    """Write the choices among the answers of several runs, and return the table of `samples.json`.

    Args:
        task: the benchmark with its options.
        profile: the rules.
        source: the loaded data.
        steps: of the runs.
        runs: their folders; the files lie in the first.
        samples: how many runs were asked for.
        verifier: chooses the best answer of each step.
        errata: corrections of labels, in order; the rates with them are beside the usual ones.

    Raises:
        UsageError: the verifier has no score for any answer.
        PredictionError, RunError: a file cannot be read or written.
    """
    out, tally = runs[0], _Tally(len(runs), verifier)
    corrected, right_actions = _Rates(len(runs)), RightActions(task, profile.name, errata)
    with ExitStack() as files:
        answers = [files.enter_context(closing(Answers(run / ANSWERS, steps))) for run in runs]
        for each in answers:
            each.read()
        lines = files.enter_context(atomic_write(out / "samples.jsonl"))
        for step in steps:
            judged = (_judge(task, profile, step, n, each) for n, each in enumerate(answers, 1))
            found = [*filter(None, judged)]
            lines.write(encode(tally.add(step, found)) + b"\n")
            if errata and (targets := right_actions.steps(step)):
                is_same = len(targets) == 1 and targets[0] is step
                right = (
                    each.right if is_same else _is_right(profile, targets, each) for each in found
                )
                corrected.add(step, [*right])
        if verifier and tally.marked["unscored"] and not tally.marked["scored"]:
            raise UsageError(
                "the verifier has no score for any answer",
                where=f"--verifier {verifier.path}",
                expected=f"scores of the answers in {out}",
                remedy=f"make the critic's rows of {out} (docs/critics.md)",
            )
    infos = [read_info(run) for run in runs]
    table: dict[str, Any] = {
        "task": task.name,
        "profile": profile.name,
        "samples": len(runs),
        "asked_for": samples,
        "runs": [run.relative_to(out).as_posix() for run in runs],
        "seeds": [info.get("seed") for info in infos],
        "temperature": infos[0]["generation"]["temperature"],
        "steps": len(steps),
        **tally.table(),
        **({"with_errata": corrected.table()} if errata else {}),
        "usage": _usage(infos),
    }
    whole = whole_episodes(source.steps, steps)
    for name, picks in tally.chosen.items():
        folder = _write_run(out / SAMPLES / name, name, infos, picks)
        ignored = Positions(source.steps) if errata else ()
        results = score(
            task, profile, steps, picks, whole=whole, out=folder, ignored=ignored, errata=errata
        )
        heads = ("overall", "ci95", "ci95_method", "with_errata")
        table[name] = {
            "run": folder.relative_to(out).as_posix(),
            "steps": len(picks),
            **{head: results[head] for head in heads if head in results},
        }
    if verifier:
        table[_BEST] |= {name: tally.marked[name] for name in ("scored", "unscored")}
    with wrap_os_error(out):
        write_json(out / "samples.json", table)
    return table


class _Rates:
    """Adds up how many answers to each step are right."""

    def __init__(self, samples: int) -> None:
        self._n, self._steps = samples, 0
        self._groups: dict[str, int] = {}
        self._right: list[tuple[int, int]] = []  # group and right answers of a step, if all judged

    def add(self, step: Step, right: Sequence[bool | None]) -> None:
        self._steps += 1
        group = self._groups.setdefault(step.group, len(self._groups))
        if None not in right:
            self._right.append((group, right.count(True)))

    def table(self) -> dict[str, Any]:
        """Return the number of unjudged steps, and pass@k and pass^k for each k."""
        n, rules = self._n, (("pass@k", pass_at), ("pass^k", pass_all))
        owner = np.array([group for group, _ in self._right], np.int64)
        rates = {
            str(k): {
                name: np.array([rule(n, count, k) for _, count in self._right], np.float64)
                for name, rule in rules
            }
            for k in choices(n)
        }
        return {
            "unjudged": self._steps - len(self._right),
            "k": {k: means(of, shares=of.keys(), owner=owner) for k, of in rates.items()},
        }


class _Tally:
    """Adds up steps, and keeps their chosen answers.

    Attributes:
        chosen: the lines of the chosen answers by the way of choosing.
        marked: how many answers the verifier has scored, and how many not.
    """

    def __init__(self, samples: int, verifier: Verifier | None) -> None:
        self._n, self._verifier = samples, verifier
        self._groups: dict[str, int] = {}
        self._deliveries: Counter[str] = Counter()
        self._rates = _Rates(samples)
        self._agreed: list[tuple[int, float]] = []  # group and agreement of a step
        self._sure: list[tuple[float, bool]] = []  # votes for the majority, and whether it is right
        ways = (_MAJORITY, _BEST) if verifier else (_MAJORITY,)
        self.chosen: dict[str, list[Prediction]] = {way: [] for way in ways}
        self.marked: Counter[str] = Counter()

    def add(self, step: Step, here: Sequence[_Answer]) -> dict[str, Any]:
        """Add the answers to a step, and return its line of `samples.jsonl`."""
        self._deliveries.update(each.completion.delivery for each in here)
        self._deliveries["missing"] += self._n - len(here)
        usable = [each for each in here if each.completion.delivery == "ok"]
        read = [each for each in usable if each.action is not None]
        votes = alike([each.action for each in read], partial(_same, screen=step.screen))
        majority = read[plurality(votes)] if read else next(iter(usable), None)
        share, count = agreement(votes), sum(each.right is True for each in here)
        line = {
            "sample_id": step.sample_id,
            "answers": len(usable),
            "read": len(read),
            "right": count,
            "agreement": share,
            "majority": majority and majority.number,
            "votes": max(votes, default=0),
        }
        self._choose(_MAJORITY, step, majority, here)
        if self._verifier:
            best = self._best(self._verifier, step, usable)
            self._choose(_BEST, step, best, here)
            line["best"] = best and best.number
        group = self._groups.setdefault(step.group, len(self._groups))
        if share is not None:
            self._agreed.append((group, share))
        if votes and majority and majority.right is not None:
            self._sure.append((max(votes) / self._n, majority.right))
        self._rates.add(step, [each.right for each in here])
        return line

    def _best(self, verifier: Verifier, step: Step, usable: Sequence[_Answer]) -> _Answer | None:
        """Return the answer with the highest score, the first of equals."""
        scores = [verifier.score(step, each.number, each.completion) for each in usable]
        self.marked.update("unscored" if score is None else "scored" for score in scores)
        known = [(score, -n) for n, score in enumerate(scores) if score is not None]
        return usable[-max(known)[1]] if known else None

    def _choose(self, by: str, step: Step, one: _Answer | None, of: Sequence[_Answer]) -> None:
        """Keep an answer as a line that took the tokens and the time of all answers."""
        if one:
            line = Prediction.of(step.sample_id, one.completion)
            line.usage = add_up([each.completion.usage for each in of])
            line.latency_s = sum(each.completion.latency_s for each in of)
            self.chosen[by].append(line)

    def table(self) -> dict[str, Any]:
        return {
            "deliveries": {name: count for name, count in self._deliveries.items() if count},
            **self._rates.table(),
            "agreement": means(
                {"agreement": np.array([share for _, share in self._agreed])},
                owner=np.array([group for group, _ in self._agreed], np.int64),
            ),
            "calibration": calibration(
                [votes for votes, _ in self._sure], [right for _, right in self._sure]
            ),
        }


def _judge(
    task: Asking, profile: Profile, step: Step, number: int, answers: Answers
) -> _Answer | None:
    completion = answers.get(step.sample_id)
    if completion is None:
        return None
    if completion.delivery != "ok":
        return _Answer(number, completion, False, None)
    verdict = profile.judge(step, completion.text, completion.receipt)
    stands = find_standing(profile, verdict)
    action: Action | str | None = None
    if verdict.outcome == "ok":
        receipt = of_screen(completion.receipt, step.screen)
        action = task.history_action(step, completion.text, receipt)
        if action is None and verdict.parsed is not None:
            action = encode(verdict.parsed).decode()
    right = None if stands == "unjudged" else stands == "right"
    return _Answer(number, completion, right, action)


def _is_right(profile: Profile, targets: Sequence[Step], answer: _Answer) -> bool | None:
    """Return whether an answer is right by one of the right actions; None if unjudged."""
    if answer.completion.delivery != "ok":
        return answer.right
    said = answer.completion
    found = {
        find_standing(profile, profile.judge(step, said.text, said.receipt)) for step in targets
    }
    return "right" in found if found != {"unjudged"} else None


def _write_run(
    folder: Path, name: str, infos: Sequence[Mapping[str, Any]], lines: Sequence[Prediction]
) -> Path:
    own = ("timings", "usage", "facts", "stopped")
    info = {key: value for key, value in infos[0].items() if key not in own}
    info |= {"selection": {"by": name, "samples": len(infos)}, "usage": _usage(infos)}
    with wrap_os_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_info(folder, info)
        with atomic_write(folder / ANSWERS) as file:
            write_lines(file, lines)
    return folder


def _same(a: Action | str | None, b: Action | str | None, screen: Screen) -> bool:
    if isinstance(a, Action) and isinstance(b, Action):
        return same_action(a, b, screen)
    return a == b


def _usage(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    parts = [info.get("usage", {}) for info in infos]
    return with_whole_cost(add_up(parts), parts)
