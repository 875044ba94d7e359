"""A map of instructions: similar wordings are near each other (OSWorld, Figure 7).

The paper embeds instructions with a model behind an API. Here they are vectors of their characters,
which needs no network and works for any language: the map shows wordings, so two instructions with
one meaning may be far apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from omnidata.errors import DataError
from omnidata.figures import spellings
from omnidata.types import LoadedDataset

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.figure import Figure

SAMPLE: Final = 300
"""Instructions of each dataset, drawn at random, as many as in the paper's figure."""
FEWEST: Final = 5
_SEED: Final = 0
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS: Final = "os^Dv"
_GROUPS: Final = len(_COLOURS) * len(_MARKERS)
_LONGEST: Final = 40
"""Characters of a name in the legend, at most."""


def sample(sources: Mapping[str, LoadedDataset]) -> dict[str, list[str]]:
    """Return different instructions of each dataset, at most `SAMPLE`; equal for equal data.

    A single dataset is grouped by its first tag that has several values, and no more than the
    figure has signs for. An instruction is in the group of the first step that has it.

    Args:
        sources: name in the legend -> dataset.

    Returns:
        Group -> its instructions.
    """
    import numpy as np

    groups: dict[str, list[str]] = {}
    for name, source in sources.items():
        tag = _tag_of_groups(source) if len(sources) == 1 else None
        group_of: dict[str, str] = {}
        for step in source.steps:
            if step.instruction.strip():
                group = f"{tag}: {step.tags.get(tag, '(none)')}" if tag else name
                group_of.setdefault(step.instruction, group)
        texts = list(group_of)
        drawn = np.random.default_rng(_SEED).permutation(len(texts))[:SAMPLE]
        for place in sorted(drawn.tolist()):
            groups.setdefault(group_of[texts[place]], []).append(texts[place])
    return groups


def _tag_of_groups(source: LoadedDataset) -> str | None:
    values = {tag: {step.tags.get(tag, "") for step in source.steps} for tag in source.tags}
    return next((tag for tag, found in values.items() if 1 < len(found) <= _GROUPS), None)


def places(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return a position for each instruction; similar instructions are close together.

    Each text becomes TF-IDF weights of n-grams of 2 to 4 characters, reduced to their 50 main
    directions, and t-SNE maps these to the plane: with a perplexity of 30, or less for fewer than
    91 texts, and a fixed seed.

    Args:
        texts: N instructions, at least `FEWEST`.

    Returns:
        float64 (N, 2); the axes have no unit.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.manifold import TSNE

    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    grams = vectors.fit_transform(texts)
    width = min(50, *(side - 1 for side in grams.shape))
    reduced = TruncatedSVD(width, random_state=_SEED).fit_transform(grams)
    perplexity = min(30, (len(texts) - 1) / 3)
    made = TSNE(perplexity=perplexity, init="random", random_state=_SEED).fit_transform(reduced)
    return made.astype("float64")  # type: ignore[no-any-return]  # scikit-learn has no types


def figure(sources: Mapping[str, LoadedDataset]) -> Figure:
    """Draw the map, a colour and a sign for each dataset, or for each value of a tag.

    Args:
        sources: name in the legend -> dataset.

    Raises:
        DataError: they have fewer than `FEWEST` instructions.
    """
    from matplotlib.figure import Figure

    groups = sample(sources)
    texts = [text for own in groups.values() for text in own]
    if len(texts) < FEWEST:
        raise DataError(
            f"there are {len(texts)} different instructions",
            where=", ".join(str(source.root) for source in sources.values()),
            expected=f"{FEWEST} at least, for a map",
            remedy="leave --map out",
        )
    positions = places(texts)
    made = Figure(figsize=(7, 6.4), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings(groups)
    start = 0
    for number, (name, own) in enumerate(groups.items()):
        part = positions[start : start + len(own)]
        start += len(own)
        axes.scatter(
            part[:, 0], part[:, 1], s=14, alpha=0.7, linewidths=0,
            c=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number // len(_COLOURS) % len(_MARKERS)],
            label=f"{written[name][:_LONGEST]} ({len(own)})",
        )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title("Instructions by wording (t-SNE)", loc="left", fontsize=10)
    legend = made.legend(
        loc="outside lower center", ncols=2, frameon=False, prop={"family": families, "size": 8}
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return made
