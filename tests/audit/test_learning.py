"""The linear classifier of the audit picks what scikit-learn's picks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from omnidata.analysis.audit_learning import FOLDS, LINEAR, CrossValidation
from omnidata.analysis.prompt_features import features
from omnidata.types import Message, Part


@pytest.mark.parametrize("choices", [1, 2, 5])
def test_the_linear_classifier_is_ridge_regression_on_signs(choices: int) -> None:
    rng = np.random.default_rng(choices)
    texts = [["word " * n for n in rng.integers(1, 9, rng.integers(1, 5))] for _ in range(200)]
    prompts = [(Message("user", tuple(Part("text", text) for text in each)),) for each in texts]
    seen = features(prompts)
    hits = (rng.integers(0, choices, 200) == np.arange(choices)[:, None]).astype(np.float64)
    cv = CrossValidation.split(seen, hits, np.arange(200), seed=0)
    expected = np.empty(200, dtype=np.int64)
    for fold in range(FOLDS):
        test = cv.folds == fold
        ridge = RidgeClassifier(alpha=10).fit(seen.bins[~test], cv.labels[~test])
        expected[test] = ridge.predict(seen.bins[test])
    assert len(set(expected.tolist())) == choices
    assert cv.learned_picks(LINEAR).tolist() == expected.tolist()
