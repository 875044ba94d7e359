"""Classifiers on the form of prompts: folds of near-duplicates, cross-validation, chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from omnidata.analysis.prompt_features import Features
from omnidata.errors import RunError
from omnidata.metrics.intervals import Floats, Ints
from omnidata.run.engines import Cluster, Lost, each
from omnidata.types import Conversation, Progress, Step

FOLDS: Final = 5
TREE: Final = "tree of depth 3"
LINEAR: Final = "linear classifier"

SHUFFLES: Final = 199
ALPHA: Final = 0.005


def group_near_duplicates(steps: Sequence[Step], prompts: Sequence[Conversation]) -> Ints:
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
    # A graph whose first nodes are the steps, and whose other nodes are what they share.
    shared: dict[Hashable, int] = {}
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
        for key in keys:
            edges.append((number, len(steps) + shared.setdefault(key, len(shared))))
    size = len(steps) + len(shared)
    graph = coo_array((np.ones(len(edges)), np.array(edges).T), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    groups: Ints = component[: len(steps)].astype(np.int64)
    return groups


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

        order = np.argsort(-hits.sum(axis=1), kind="stable")  # the choices, the best first
        is_right = hits[order] > 0
        labels = np.where(is_right.any(axis=0), order[is_right.argmax(axis=0)], -1)
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
                learn = _learn_tree if name == TREE else _learn_ridge
                picks[test] = learn(matrix[train], self.labels[train])(matrix[test])
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
        tree = _tree().fit(self.features.numbers[train], self.labels[train])
        classes = [names[choice] for choice in tree.classes_]
        text: str = export_text(tree, feature_names=self.features.columns, class_names=classes)
        return text


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0)


def _learn_tree(matrix: npt.NDArray[np.float32], labels: Ints) -> Callable[[Any], Ints]:
    return partial(_tree().fit(matrix, labels, check_input=False).predict, check_input=False)


def _learn_ridge(matrix: Floats, labels: Ints) -> Callable[[Floats], Ints]:
    """Return the predictions of scikit-learn's `RidgeClassifier(alpha=10)`.

    Its checks take several times as long as these sums on matrices of a few hundred rows.
    """
    from scipy.linalg import solve

    classes = np.unique(labels)
    signs = np.where(labels[:, None] == classes, 1.0, -1.0)
    center, bias = matrix.mean(axis=0), signs.mean(axis=0)
    centered = matrix - center
    gram = centered.T @ centered
    np.fill_diagonal(gram, gram.diagonal() + 10)
    weights = solve(gram, centered.T @ (signs - bias), assume_a="pos")

    def predict(rows: Floats) -> Ints:
        found: Ints = classes[((rows - center) @ weights + bias).argmax(axis=1)]
        return found

    return predict


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
    one_thread = _thread_pools().limit(limits=1)
    with one_thread, config_context(assume_finite=True, skip_parameter_validation=True):
        learned = (cv.score(cv.learned_picks(name, rows)) for name in (TREE, LINEAR))
        return max(float(cv.feature_scores(rows).max()), *learned)


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the pools of the loaded libraries; to find them takes as long as a shuffle."""
    return ThreadpoolController()


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
