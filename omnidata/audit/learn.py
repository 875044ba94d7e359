"""Shallow learners that choose an answer by the form of the prompt, and their cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from omnidata.audit.features import Features

FOLDS = 5
DEPTH = 3
LEAF = 5
RIDGE = 10.0
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Exam:
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
    def of(cls, features: Features, hits: Floats, groups: Ints, *, seed: int) -> Exam:
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

    def __call__(self, exam: Exam, rows: Ints, train: Bools, test: Bools) -> Ints:
        """The picks for the prompts in `test`; prompt i has the features of prompt `rows[i]`."""


def tree(exam: Exam, rows: Ints, train: Bools, test: Bools) -> Ints:
    """A decision tree of depth 3."""
    numbers = exam.features.numbers
    known = train & (exam.labels >= 0)
    grown = _grown(numbers[rows[known]], exam.labels[known])
    picks: Ints = grown.predict(numbers[rows[test]])
    return picks


def linear(exam: Exam, rows: Ints, train: Bools, test: Bools) -> Ints:
    """A linear classifier (ridge regression on the choices) over the bins of all features."""
    from sklearn.linear_model import Ridge

    matrix = exam.features.matrix
    known = train & (exam.labels >= 0)
    wanted = np.eye(len(exam.hits))[exam.labels[known]]
    model = Ridge(alpha=RIDGE).fit(matrix[rows[known]], wanted)
    picks: Ints = model.predict(matrix[rows[test]]).argmax(axis=1)
    return picks


LEARNERS: Mapping[str, Learner] = {
    "tree of depth 3": tree,
    "linear classifier": linear,
}


def cross_validated(exam: Exam, learner: Learner, rows: Ints | None = None) -> Ints:
    """The pick for each prompt, (N,), learned from the other folds.

    Args:
        exam: what is asked.
        learner: who answers.
        rows: int64 (N,), whose features each prompt has; its own unless given.
    """
    rows = np.arange(len(exam.labels)) if rows is None else rows
    picks = np.zeros(len(exam.labels), dtype=np.int64)
    for fold in np.unique(exam.folds):
        test = exam.folds == fold
        if (exam.labels[~test] >= 0).any():
            picks[test] = learner(exam, rows, ~test, test)
    return picks


def by_feature(exam: Exam, rows: Ints | None = None) -> Ints:
    """The pick for each prompt by each feature alone, (N, F), learned from the other folds.

    For each value of the feature it is the choice that is right most often; where that is a tie, or
    the value is new, the one that is best over all.
    """
    rows = np.arange(len(exam.labels)) if rows is None else rows
    starts, codes, matrix = exam.features.starts, exam.features.codes, exam.features.matrix
    picks = np.zeros(codes.shape, dtype=np.int64)
    for fold in np.unique(exam.folds):
        test = exam.folds == fold
        counts = matrix[rows[~test]].T @ exam.hits[:, ~test].T
        overall = exam.hits[:, ~test].mean(axis=1)
        best = (counts + 0.5 * overall).argmax(axis=1)
        picks[test] = best[starts + codes[rows[test]]]
    return picks


def marks(exam: Exam, rows: Ints | None = None) -> Floats:
    """What each feature alone gets, (F,)."""
    picks = by_feature(exam, rows)
    found: Floats = exam.hits[picks, np.arange(len(picks))[:, None]].mean(axis=0)
    return found


def ranked(exam: Exam) -> list[tuple[int, float]]:
    """Every feature with what it gets alone; the best first, of equal ones that with few values."""
    levels = exam.features.codes.max(axis=0).tolist()
    alone = enumerate(marks(exam).tolist())
    return sorted(alone, key=lambda item: (-item[1], levels[item[0]]))


def described_tree(exam: Exam, names: Sequence[str]) -> str:
    """The tree over all prompts as text, with the choices by their names, (C,)."""
    from sklearn.tree import export_text

    known = exam.labels >= 0
    grown = _grown(exam.features.numbers[known], exam.labels[known])
    met = [names[choice] for choice in grown.classes_]
    text: str = export_text(grown, feature_names=exam.features.cuts, class_names=met)
    return text


def _grown(numbers: Floats, labels: Ints) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    grown = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    return grown.fit(numbers, labels)
