"""Classifiers on the form of prompts: features, cross-validation and a permutation test.

No medium is opened and no target is read: prompts with equal parts and texts have equal features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from omnidata.errors import RunError
from omnidata.run.engines import Cluster, Lost, each
from omnidata.types import Conversation, Progress, Step

Kind = Literal["text", "image", "video", "audio"]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_BINS = 8
MAX_TEXTS = 100
_RARE = 5
_LETTERS: Mapping[Kind, str] = {"text": "t", "image": "i", "video": "v", "audio": "a"}
_LABEL = re.compile(r"^[^:,]{1,40}: ")

FOLDS = 5
TREE = "tree of depth 3"
LINEAR = "linear classifier"

SHUFFLES = 199
ALPHA = 0.005


@dataclass(frozen=True, slots=True)
class Features:
    """The features of N prompts, each in up to `MAX_BINS` bins.

    Attributes:
        names: of the F features.
        bins: float64 (N, B), a column for each bin of each feature, 1 where a prompt is in it.
        codes: int64 (N, F), the column of `bins` in which a feature of a prompt is 1.
        numbers: float32 (N, P), the columns that a tree may split: numbers, and 0 or 1 for words.
        columns: names of the P columns.
    """

    names: list[str]
    bins: Floats
    codes: Ints
    numbers: npt.NDArray[np.float32]
    columns: list[str]


def features(prompts: Sequence[Conversation]) -> Features:
    """Return the features in which the prompts differ.

    * numbers: messages, parts, parts of each kind, characters and lines of all texts, of the last
      and of the one before it;
    * words: the kind of each of the last three parts and the first two, the order of all;
    * shared texts: whether a line, or an item of a list within a line, occurs, for those that at
      least 5 prompts and 2 % of them have and as many lack; the `MAX_TEXTS` most even ones.

    The order of parts has a letter for each (t, i, v, a); an order of fewer than 5 prompts counts
    as "other". Of features that split the prompts in the same way, the first is kept.

    Examples:
        >>> from omnidata.types import Message, Part
        >>> def prompt(*texts):
        ...     return (Message("user", tuple(Part("text", text) for text in texts)),)
        >>> found = features([prompt("a")] * 5 + [prompt("a", "b")] * 5)
        >>> found.names, found.codes.ravel().tolist()
        (['number of parts'], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
        >>> features([prompt(f"{number:03}") for number in range(50)]).names
        []
        >>> found = features([prompt("x" * number) for number in range(1, 200)])
        >>> found.names, found.bins.sum(axis=0).tolist()
        (['characters'], [24.0, 25.0, 25.0, 25.0, 25.0, 25.0, 25.0, 25.0])
    """
    described = [_describe(conversation) for conversation in prompts]
    values = {name: np.array([row[name] for row in described]) for name in described[0]}
    names: list[str] = []
    codes: list[Ints] = []
    numbers: dict[str, npt.NDArray[np.float32]] = {}
    seen: set[bytes] = set()
    for name, value in (values | _shared_texts(prompts)).items():
        if value.dtype.kind == "U":
            words, code, counts = np.unique(value, return_inverse=True, return_counts=True)
            value = np.where(counts[code] < _RARE, "other", value)
            words, code = np.unique(value, return_inverse=True)
            split = {f"{name} = {word}": code == number for number, word in enumerate(words)}
        else:
            # Cuts are values that occur, so that frequent values stay in one bin.
            cuts = np.unique(value)[1:]
            if len(cuts) >= MAX_BINS:
                inner = np.linspace(0, 1, MAX_BINS + 1)[1:-1]
                cuts = np.unique(np.quantile(value, inner, method="inverted_cdf"))
            _, code = np.unique(np.searchsorted(cuts, value, side="right"), return_inverse=True)
            split = {name: value}
        _, first, again = np.unique(code, return_index=True, return_inverse=True)
        key = np.argsort(np.argsort(first))[again].tobytes()  # equal for equal partitions
        if len(first) > 1 and key not in seen:
            seen.add(key)
            names.append(name)
            codes.append(code)
            numbers |= {column: part.astype(np.float32) for column, part in split.items()}
    starts = np.cumsum([0, *(code.max() + 1 for code in codes)])
    found = np.array(codes, dtype=np.int64).reshape(len(names), len(prompts)).T + starts[:-1]
    bins = np.zeros((len(prompts), starts[-1]))
    np.put_along_axis(bins, found, 1, axis=1)
    table = np.array([*numbers.values()], dtype=np.float32).reshape(len(numbers), len(prompts)).T
    return Features(names, bins, found, np.ascontiguousarray(table), list(numbers))


def _describe(conversation: Conversation) -> dict[str, float | str]:
    """Return the numbers and words of one prompt; the same names for every prompt."""
    parts = [part for message in conversation for part in message.parts]
    texts = [part.text for part in parts if part.kind == "text"]
    kinds: list[Kind] = [part.media.kind if part.media else "text" for part in parts]
    before = texts[-2] if len(texts) > 1 else ""
    return {
        "number of parts": float(len(parts)),
        "number of messages": float(len(conversation)),
        **{f"number of {kind} parts": float(kinds.count(kind)) for kind in _LETTERS},
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
        "order of parts": "".join(_LETTERS[kind] for kind in kinds),
    }


def _shared_texts(prompts: Sequence[Conversation]) -> dict[str, Floats]:
    """Return whether each prompt has each shared text, the most even texts first."""
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
    even = {text: min(n, total - n) for text, n in counts.items()}
    least = max(_RARE, total // 50)
    chosen = sorted((text for text, n in even.items() if n >= least), key=lambda t: (-even[t], t))
    return {
        f'has "{text}"': np.array([text in texts for texts in held], dtype=np.float64)
        for text in chosen[:MAX_TEXTS]
    }


def segments(text: str) -> Iterator[str]:
    """Yield the lines of a text, and the items of lines that are lists."""
    for line in text.splitlines():
        line = line.strip()
        if line:
            yield line
            items = _LABEL.sub("", line).split(", ")
            if len(items) > 1:
                yield from (item.strip() for item in items)


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """The task of a classifier: which of C choices is right on each of N prompts.

    Attributes:
        features: of the prompts.
        hits: float64 (C, N), above 0 where a choice is right.
        labels: int64 (N,), the choice that is right; of several the one that is right most often;
            -1 where none is.
        groups: int64 (N,), the groups of near-duplicates, 0..G-1.
        folds: int64 (N,), the fold in which a prompt is answered; a group is in one fold.
    """

    features: Features
    hits: Floats
    labels: Ints
    groups: Ints
    folds: Ints

    @classmethod
    def split(cls, features: Features, hits: Floats, groups: Ints, *, seed: int) -> CrossValidation:
        """Draw the folds; the arguments are the attributes."""
        from sklearn.model_selection import GroupKFold

        order = np.argsort(np.argsort(-hits.sum(axis=1), kind="stable"))
        ranks = np.where(hits > 0, order[:, None], len(hits))
        labels = np.where(ranks.min(axis=0) < len(hits), ranks.argmin(axis=0), -1)
        folds = np.empty(len(groups), dtype=np.int64)
        splitter = GroupKFold(FOLDS, shuffle=True, random_state=seed)
        for fold, (_, test) in enumerate(splitter.split(folds, groups=groups)):
            folds[test] = fold
        return cls(features, hits, labels.astype(np.int64), groups, folds)

    def score(self, picks: Ints) -> float:
        """Return the mean hit of one pick per prompt, (N,)."""
        return float(self.hits[picks, np.arange(len(picks))].mean())

    def learned_picks(self, name: str, rows: Ints | None = None) -> Ints:
        """Return the pick for each prompt, (N,), learned from the other folds.

        Args:
            name: of the classifier, `TREE` or `LINEAR`.
            rows: int64 (N,), whose features each prompt has; its own unless given.
        """
        matrix = self.features.numbers if name == TREE else self.features.bins
        matrix = matrix if rows is None else matrix[rows]
        picks = np.zeros(len(self.labels), dtype=np.int64)
        for fold in range(FOLDS):
            test = self.folds == fold
            train = ~test & (self.labels >= 0)
            if train.any():
                fitted = _classifier(name).fit(matrix[train], self.labels[train])
                picks[test] = fitted.predict(matrix[test])
        return picks

    def feature_picks(self, rows: Ints | None = None) -> Ints:
        """Return the pick for each prompt by each feature alone, (N, F), from the other folds.

        For each value of the feature it is the choice that is right most often; where that is a
        tie, or the value is new, the one that is best over all.

        Args:
            rows: as of `learned_picks`.
        """
        bins, codes = self.features.bins, self.features.codes
        if rows is not None:
            bins, codes = bins[rows], codes[rows]
        picks = np.zeros(codes.shape, dtype=np.int64)
        for fold in range(FOLDS):
            test = self.folds == fold
            counts = bins[~test].T @ self.hits[:, ~test].T
            best = (counts + 0.5 * self.hits[:, ~test].mean(axis=1)).argmax(axis=1)
            picks[test] = best[codes[test]]
        return picks

    def feature_scores(self, rows: Ints | None = None) -> Floats:
        """Return the score of each feature alone, (F,)."""
        picks = self.feature_picks(rows)
        scores: Floats = self.hits[picks, np.arange(len(picks))[:, None]].mean(axis=0)
        return scores

    def tree_text(self, names: Sequence[str]) -> str:
        """Return a tree over all prompts as text, with the choices by their names, (C,)."""
        from sklearn.tree import export_text

        train = self.labels >= 0
        tree = _classifier(TREE).fit(self.features.numbers[train], self.labels[train])
        classes = [names[choice] for choice in tree.classes_]
        text: str = export_text(tree, feature_names=self.features.columns, class_names=classes)
        return text


def _classifier(name: str) -> Any:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.tree import DecisionTreeClassifier

    if name == TREE:
        return DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0)
    return RidgeClassifier(alpha=10)


def groups(steps: Sequence[Step], prompts: Sequence[Conversation]) -> Ints:
    """Return the group of near-duplicates of each step, (N,), numbered from 0.

    Steps of one group, instruction or prompt are near-duplicates. Instructions are compared without
    case and space; an instruction of a fifth of the steps or more is a template, which joins
    nothing. Prompts are compared in all their parts, media by hash if the data have it, else by
    path.

    Args:
        steps: N of them.
        prompts: of the steps.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    instructions = ["".join(step.instruction.casefold().split()) for step in steps]
    counts = Counter(instructions)
    nodes: dict[Hashable, int] = {}  # steps are the first nodes; each joins a node of its group
    edges = []
    for number, (step, text, prompt) in enumerate(zip(steps, instructions, prompts, strict=True)):
        content = tuple(
            (message.role, part.kind, part.text, part.media and (part.media.sha256 or part.media))
            for message in prompt
            for part in message.parts
        )
        keys: list[Hashable] = [("group", step.group), ("prompt", content)]
        if text and counts[text] * FOLDS < len(steps):
            keys.append(("instruction", text))
        edges += [(number, len(steps) + nodes.setdefault(key, len(nodes))) for key in keys]
    size = len(steps) + len(nodes)
    graph = coo_array((np.ones(len(edges)), np.array(edges).T), shape=(size, size))
    _, found = connected_components(graph, directed=False)
    numbers: Ints = found[: len(steps)].astype(np.int64)
    return numbers


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The share of shuffled features that score as high as the data.

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
    observed: float,
    *,
    seed: int,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> PermutationTest:
    """Test the best score against shuffled features, where the best of all classifiers counts too.

    Trying many classifiers and features is thereby accounted for. Near-duplicates are exchanged as
    one: every group gets the features of one group. scikit-learn's `permutation_test_score` either
    ignores groups, which makes p too small for copies, or shuffles within them, which keeps the
    very differences between groups that are tested.

    Shuffling stops as soon as the level `ALPHA` is out of reach, which is with the first shuffle
    that does as well (Besag and Clifford, Sequential Monte Carlo p-values, 1991).

    Args:
        cv: the task.
        observed: the highest cross-validated score, of a classifier or of a feature alone.
        seed: of the shuffles.
        workers: processes, each with a shuffle at a time, one per core if None; 1 = this one.
        cluster: learns in place of this machine.
        progress: called with the number of shuffles done and of all.

    Raises:
        RunError: a process was lost.
        OmnidataError: as `run.engines.each`.
    """
    most = int(ALPHA * (SHUFFLES + 1)) - 1
    as_high, highest = 0, 0.0
    calls = each(
        partial(_shuffled_score, cv, seed), range(SHUFFLES), workers=workers, cluster=cluster
    )
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


def _shuffled_score(cv: CrossValidation, seed: int, number: int) -> float:
    from sklearn import config_context

    rows = _shuffle(cv.groups, np.random.default_rng((seed, number)))
    # Many small matrices: threads would only wait for each other, and checks cost more than fits.
    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        learned = (cv.score(cv.learned_picks(name, rows)) for name in (TREE, LINEAR))
        return max(float(cv.feature_scores(rows).max()), *learned)


def _shuffle(group: Ints, rng: np.random.Generator) -> Ints:
    """Return the row whose features each row gets, (N,): a group gets those of one group.

    Members come in random order; of a larger group some are left out, those of a smaller one are
    repeated. Features that a group's members share stay together, so that chance agreements stay as
    large as in the data.
    """
    members = np.lexsort((rng.random(len(group)), group))
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(group), dtype=np.int64)
    place[members] = np.arange(len(group)) - starts[group[members]]
    giver = rng.permutation(len(sizes))[group]
    rows: Ints = members[starts[giver] + place % sizes[giver]]
    return rows
