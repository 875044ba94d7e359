"""What a model that looks at nothing can see of a prompt: its form, and the texts it shares.

No medium is opened and no step is looked at: two prompts with the same parts and texts have the
same features, whatever their targets are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from omnidata.errors import RunError
from omnidata.run.engines import Cluster, Lost, each
from omnidata.types import Conversation, Progress, Step

Kind = Literal["text", "image", "video", "audio"]
MAX_BINS = 8
MAX_TEXTS = 100
LETTERS: Mapping[Kind, str] = {"text": "t", "image": "i", "video": "v", "audio": "a"}
_LABEL = re.compile(r"^[^:,]{1,40}: ")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of N prompts, each in up to `MAX_BINS` bins.

    Attributes:
        names: of the F features.
        codes: int64 (N, F), the bin that a prompt is in.
        matrix: float64 (N, B), a column for each bin, 1 where the prompt is in it.
        starts: int64 (F,), the first column of each feature.
        levels: what a bin stands for, B of them, e.g. "2..3".
        numbers: float64 (N, P), what a tree may cut: numbers as they are, else 0 or 1.
        cuts: names of the P columns of `numbers`.
    """

    names: list[str]
    codes: Ints
    matrix: Floats
    starts: Ints
    levels: list[str]
    numbers: Floats
    cuts: list[str]


def features(prompts: Sequence[Conversation]) -> Features:
    """The features in which the prompts differ.

    * numbers: messages, parts, parts of each kind, characters and lines of all texts, of the last
      and of the one before it;
    * words: the kind of each of the last three parts and the first two, the order of all;
    * shared texts: whether a line, or an item of a list within a line, occurs, for those that at
      least 5 prompts and 2 % of them have and as many have not; the `MAX_TEXTS` most even ones.

    The order of parts has a letter for each (`LETTERS`); an order of fewer than 5 prompts counts as
    "other". Of features that part the prompts in the same way, the first is kept.

    Examples:
        >>> from omnidata.types import Message, Part
        >>> def prompt(*texts):
        ...     return (Message("user", tuple(Part("text", text) for text in texts)),)
        >>> found = features([prompt("a")] * 5 + [prompt("a", "b")] * 5)
        >>> found.names[:1], found.codes[:, 0].tolist()
        (['number of parts'], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    described = [_describe(conversation) for conversation in prompts]
    columns = [_Column(name, [row[name] for row in described]) for name in described[0]]
    columns += [_Column(f'has "{text}"', held) for text, held in _shared(prompts)]
    seen: set[bytes] = set()
    kept = []
    for column in columns:
        key = _first_met(column.codes).tobytes()
        if len(column.levels) > 1 and key not in seen:
            seen.add(key)
            kept.append(column)
    return _assemble(kept, len(prompts))


def _describe(conversation: Conversation) -> dict[str, float | str]:
    """The numbers and words of one prompt; the same names for every prompt."""
    parts = [part for message in conversation for part in message.parts]
    texts = [part.text for part in parts if part.kind == "text"]
    kinds: list[Kind] = [part.media.kind if part.media else "text" for part in parts]
    before = texts[-2] if len(texts) > 1 else ""
    return {
        "number of parts": float(len(parts)),
        "number of messages": float(len(conversation)),
        **{f"number of {kind} parts": float(kinds.count(kind)) for kind in LETTERS},
        "characters": float(sum(map(len, texts))),
        "characters of the last text": float(len(texts[-1]) if texts else 0),
        "characters of the text before": float(len(before)),
        "lines": float(sum(text.count("\n") + 1 for text in texts)),
        "lines of the last text": float(texts[-1].count("\n") + 1 if texts else 0),
        **{
            f"kind of part {n} from the end": kinds[-n] if len(kinds) >= n else "none"
            for n in (1, 2, 3)
        },
        **{f"kind of part {n + 1}": kinds[n] if len(kinds) > n else "none" for n in range(2)},
        "order of parts": "".join(LETTERS[kind] for kind in kinds),
    }


class _Column:
    """One feature: numbers are cut at their quantiles, words are themselves."""

    def __init__(self, name: str, values: Sequence[float | str]) -> None:
        self.name = name
        self.number = None if isinstance(values[0], str) else np.array(values, dtype=np.float64)
        if self.number is None:
            frequent = {value for value, n in Counter(values).items() if n >= 5}
            words = [str(value) if value in frequent else "other" for value in values]
            self.levels = sorted(set(words))
            self.codes = np.array([self.levels.index(word) for word in words], dtype=np.int64)
            return
        found = np.unique(self.number)
        if len(found) > MAX_BINS:
            inner = np.linspace(0, 1, MAX_BINS + 1)[1:-1]
            # Cuts are values that occur, so that frequent values stay in one bin.
            edges = np.unique(np.quantile(self.number, inner, method="inverted_cdf"))
        else:
            edges = found[1:]
        codes = np.searchsorted(edges, self.number, side="right")
        _, self.codes = np.unique(codes, return_inverse=True)
        spans = [self.number[self.codes == code] for code in range(self.codes.max() + 1)]
        self.levels = [_span(span.min(), span.max()) for span in spans]


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def _shared(prompts: Sequence[Conversation]) -> Iterator[tuple[str, list[float]]]:
    """Texts that many prompts have and many have not, the most even ones first."""
    held = [
        {
            text
            for message in conversation
            for part in message.parts
            for text in segments(part.text)
        }
        for conversation in prompts
    ]  # fmt: skip
    total = len(prompts)
    counts = Counter(text for texts in held for text in texts)
    least = max(5, total // 50)
    even = {text: min(n, total - n) for text, n in counts.items()}
    chosen = sorted((text for text, n in even.items() if n >= least), key=lambda t: (-even[t], t))
    for text in chosen[:MAX_TEXTS]:
        yield text, [float(text in texts) for texts in held]


def segments(text: str) -> Iterator[str]:
    """The lines of a text, and the items of lines that are lists."""
    for line in text.splitlines():
        line = line.strip()
        if line:
            yield line
            items = _LABEL.sub("", line).split(", ")
            if len(items) > 1:
                yield from (item.strip() for item in items)


def _first_met(codes: Ints) -> Ints:
    """The codes renumbered in the order in which they come: equal for equal partitions."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _assemble(columns: Sequence[_Column], rows: int) -> Features:
    codes = np.zeros((rows, len(columns)), dtype=np.int64)
    numbers: list[Floats] = []
    cuts: list[str] = []
    blocks: list[Floats] = []
    for position, column in enumerate(columns):
        codes[:, position] = column.codes
        block = np.eye(len(column.levels))[column.codes]
        blocks.append(block)
        if column.number is not None:
            numbers.append(column.number)
            cuts.append(column.name)
        else:
            numbers += list(block.T)
            cuts += [f"{column.name} = {level}" for level in column.levels]
    sizes = [len(column.levels) for column in columns]
    return Features(
        names=[column.name for column in columns],
        codes=codes,
        matrix=np.hstack(blocks) if blocks else np.zeros((rows, 0)),
        starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[: len(columns)],
        levels=[level for column in columns for level in column.levels],
        numbers=np.column_stack(numbers) if numbers else np.zeros((rows, 0)),
        cuts=cuts,
    )


# Shallow learners that choose an answer by the form of the prompt, and their cross-validation.

FOLDS = 5
DEPTH = 3
LEAF = 5
RIDGE = 10.0
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """What is to be learned: which of C choices is right on each of N prompts.

    Attributes:
        features: of the prompts.
        hits: float64 (C, N), 1 where a choice is right; the first is right most often.
        labels: int64 (N,), the first choice that is right, -1 where none is.
        folds: int64 (N,), the fold in which a prompt is answered.
    """

    features: Features
    hits: Floats
    labels: Ints
    folds: Ints

    @classmethod
    def of(cls, features: Features, hits: Floats, groups: Ints, *, seed: int) -> CrossValidation:
        """Choices in order of their hits; groups of prompts drawn into `FOLDS` folds.

        Args:
            features: of the prompts.
            hits: float64 (C, N).
            groups: int64 (N,), 0..G-1; prompts of one group are answered in the same fold.
            seed: of the draw.
        """
        order = np.argsort(np.argsort(-hits.sum(axis=1), kind="stable"))
        ranks = np.where(hits > 0, order[:, None], len(hits))
        best = ranks.argmin(axis=0)
        labels = np.where(ranks.min(axis=0) < len(hits), best, -1).astype(np.int64)
        drawn = np.random.default_rng(seed).permutation(int(groups.max()) + 1) % FOLDS
        return cls(features, hits, labels, drawn[groups])

    def score(self, picks: Ints) -> float:
        """The share of prompts on which the picked choice, (N,), is right."""
        return float(self.hits[picks, np.arange(len(picks))].mean())


class Learner(Protocol):
    """Learns from some prompts which choice to give on others."""

    def __call__(self, cv: CrossValidation, rows: Ints, train: Bools, test: Bools) -> Ints:
        """The picks for the prompts in `test`; prompt i has the features of prompt `rows[i]`."""


def tree(cv: CrossValidation, rows: Ints, train: Bools, test: Bools) -> Ints:
    """A decision tree of depth 3."""
    numbers = cv.features.numbers
    known = train & (cv.labels >= 0)
    grown = _grown(numbers[rows[known]], cv.labels[known])
    picks: Ints = grown.predict(numbers[rows[test]].astype(np.float32), check_input=False)
    return picks


def linear(cv: CrossValidation, rows: Ints, train: Bools, test: Bools) -> Ints:
    """A linear classifier (ridge regression on the choices) over the bins of all features."""
    from sklearn.linear_model import ridge_regression

    matrix = cv.features.matrix
    known = train & (cv.labels >= 0)
    seen, wanted = matrix[rows[known]], np.eye(len(cv.hits))[cv.labels[known]]
    middle, usual = seen.mean(axis=0), wanted.mean(axis=0)
    weights = ridge_regression(seen - middle, wanted - usual, alpha=RIDGE, check_input=False).T
    scores = matrix[rows[test]] @ weights + (usual - middle @ weights)
    picks: Ints = scores.argmax(axis=1)
    return picks


LEARNERS: Mapping[str, Learner] = {
    "tree of depth 3": tree,
    "linear classifier": linear,
}


def cross_validated(cv: CrossValidation, learner: Learner, rows: Ints | None = None) -> Ints:
    """The pick for each prompt, (N,), learned from the other folds.

    Args:
        cv: what is asked.
        learner: who answers.
        rows: int64 (N,), whose features each prompt has; its own unless given.
    """
    rows = np.arange(len(cv.labels)) if rows is None else rows
    picks = np.zeros(len(cv.labels), dtype=np.int64)
    for fold in np.unique(cv.folds):
        test = cv.folds == fold
        if (cv.labels[~test] >= 0).any():
            picks[test] = learner(cv, rows, ~test, test)
    return picks


def by_feature(cv: CrossValidation, rows: Ints | None = None) -> Ints:
    """The pick for each prompt by each feature alone, (N, F), learned from the other folds.

    For each value of the feature it is the choice that is right most often; where that is a tie, or
    the value is new, the one that is best over all.
    """
    rows = np.arange(len(cv.labels)) if rows is None else rows
    starts, codes, matrix = (
        cv.features.starts,
        cv.features.codes,
        cv.features.matrix,
    )
    picks = np.zeros(codes.shape, dtype=np.int64)
    for fold in np.unique(cv.folds):
        test = cv.folds == fold
        counts = matrix[rows[~test]].T @ cv.hits[:, ~test].T
        overall = cv.hits[:, ~test].mean(axis=1)
        best = (counts + 0.5 * overall).argmax(axis=1)
        picks[test] = best[starts + codes[rows[test]]]
    return picks


def marks(cv: CrossValidation, rows: Ints | None = None) -> Floats:
    """What each feature alone gets, (F,)."""
    picks = by_feature(cv, rows)
    found: Floats = cv.hits[picks, np.arange(len(picks))[:, None]].mean(axis=0)
    return found


def ranked(cv: CrossValidation) -> list[tuple[int, float]]:
    """Every feature with what it gets alone; the best first, of equal ones that with few values."""
    levels = cv.features.codes.max(axis=0).tolist()
    alone = enumerate(marks(cv).tolist())
    return sorted(alone, key=lambda item: (-item[1], levels[item[0]]))


def described_tree(cv: CrossValidation, names: Sequence[str]) -> str:
    """The tree over all prompts as text, with the choices by their names, (C,)."""
    from sklearn.tree import export_text

    known = cv.labels >= 0
    grown = _grown(cv.features.numbers[known], cv.labels[known])
    met = [names[choice] for choice in grown.classes_]
    text: str = export_text(grown, feature_names=cv.features.cuts, class_names=met)
    return text


def _grown(numbers: Floats, labels: Ints) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    grown = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    # A shuffle test grows a thousand trees of a few rows: checking them costs more than growing.
    return grown.fit(numbers.astype(np.float32), labels, check_input=False)


# Whether a score could be luck: rows that belong together, and features dealt out at random.

SHUFFLES = 199
ALPHA = 0.005


def groups(steps: Sequence[Step], prompts: Sequence[Conversation]) -> Ints:
    """A number per group of near-duplicates, (N,): of one group, instruction or prompt.

    Instructions are compared without case and space. One that a fifth of the steps or more have
    is a template, which joins nothing. Prompts are compared in all their parts; media by their
    hash where the data has it, else by place and name.

    Args:
        steps: N of them.
        prompts: of the steps.

    Examples:
        >>> groups([], [])
        array([], dtype=int64)
    """
    said = ["".join(step.instruction.casefold().split()) for step in steps]
    counts = Counter(said)
    head: dict[str, str] = {}

    def find(key: str) -> str:
        while head.setdefault(key, key) != key:
            head[key] = head[head[key]]
            key = head[key]
        return key

    seen: dict[Hashable, int] = {}
    for step, text, prompt in zip(steps, said, prompts, strict=True):
        shown = seen.setdefault(_content(prompt), len(seen))
        head[find(f"shown {shown}")] = find(f"group {step.group}")
        if text and counts[text] * FOLDS < len(steps):
            head[find(f"said {text}")] = find(f"group {step.group}")
    numbers: dict[str, int] = {}
    found = [find(f"group {step.group}") for step in steps]
    return np.array([numbers.setdefault(key, len(numbers)) for key in found], dtype=np.int64)


def _content(prompt: Conversation) -> Hashable:
    """What is the same for two prompts that show the same."""
    return tuple(
        (message.role, part.kind, part.text, part.media and (part.media.sha256 or part.media))
        for message in prompt
        for part in message.parts
    )


def shuffled(group: Ints, rng: np.random.Generator) -> Ints:
    """Whose features each row gets, (N,): every group gets those of one group.

    Members come in random order; of a larger group some are left out, those of a smaller one are
    dealt out in turn. What the members of a group have in common stays together, so that chance is
    not taken to be smaller than it is; nothing else is left of what the features knew.
    """
    members = np.lexsort((rng.random(len(group)), group))
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(group), dtype=np.int64)
    place[members] = np.arange(len(group)) - starts[group[members]]
    giver = rng.permutation(len(sizes))[group]
    rows: Ints = members[starts[giver] + place % sizes[giver]]
    return rows


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """How often shuffled features do as well.

    Attributes:
        p: the share of shuffles with a score as high, the data itself counted as one; after an
            early stop the estimate of Besag and Clifford.
        shuffles: how many were drawn.
        highest: the best score among them.
    """

    p: float
    shuffles: int
    highest: float


def permutation_test(
    cv: CrossValidation,
    group: Ints,
    observed: float,
    *,
    seed: int,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> PermutationTest:
    """The test of the best score: every learner and feature runs on every shuffle, the best counts.

    Trying many of them therefore costs nothing in error. The draw ends as soon as the level
    `ALPHA` is out of reach, which is with the first shuffle that does as well (Besag and Clifford,
    Sequential Monte Carlo p-values, 1991).

    Args:
        cv: what was learned.
        group: int64 (N,), near-duplicates.
        observed: the highest cross-validated score, of a learner or of a feature alone.
        seed: of the shuffles.
        workers: processes, each with a shuffle at a time, one per core if None; 1 = this one.
        cluster: whose workers learn; None for this machine.
        progress: called with shuffles done and in all.

    Raises:
        RunError: a process was lost.
        OmnidataError: as `run.engines.each`.
    """
    most = int(ALPHA * (SHUFFLES + 1)) - 1
    as_high, highest = 0, 0.0
    learn = partial(_of_shuffle, cv, group)
    calls = each(learn, _Shuffles(group, seed), workers=workers, cluster=cluster)
    with closing(calls) as answers:
        for done, found in enumerate(answers, 1):
            if isinstance(found, Lost):
                raise RunError(
                    f"a process was lost: {found.why}",
                    expected="enough memory for the features of all prompts in each process",
                    remedy="fewer --workers",
                )
            highest = max(highest, found)
            as_high += found >= observed
            progress(done, SHUFFLES)
            if as_high > most:
                return PermutationTest(as_high / done, done, highest)
    return PermutationTest((1 + as_high) / (SHUFFLES + 1), SHUFFLES, highest)


class _Shuffles(Sequence[Mapping[str, Any]]):
    """The state of the random numbers before each shuffle, whoever draws it."""

    def __init__(self, group: Ints, seed: int) -> None:
        self._group, self._rng = group, np.random.default_rng(seed)
        self._states: list[Mapping[str, Any]] = []

    def __len__(self) -> int:
        return SHUFFLES

    def __getitem__(self, number: Any) -> Any:
        if number >= SHUFFLES:
            raise IndexError(number)
        while len(self._states) <= number:
            self._states.append(self._rng.bit_generator.state)
            shuffled(self._group, self._rng)
        return self._states[number]


def _of_shuffle(cv: CrossValidation, group: Ints, state: Mapping[str, Any]) -> float:
    """The best score on a shuffle, in any process."""
    from sklearn import config_context

    rng = np.random.default_rng()
    rng.bit_generator.state = state
    # Many small matrices: threads would only wait for each other, and checks cost more than fits.
    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        return _best(cv, shuffled(group, rng))


def _best(cv: CrossValidation, rows: Ints) -> float:
    learned = [cv.score(cross_validated(cv, learn, rows)) for learn in LEARNERS.values()]
    return max(float(marks(cv, rows).max()), *learned)
