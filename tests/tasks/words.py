"""A plug-in that asks which of two words is longer, and the rows that it reads."""

from __future__ import annotations

from pathlib import Path

from tests import plugs
from tests.cli.running import here

PLUGIN = '''
"""A benchmark of another distribution: which of two words is longer."""

import json
from dataclasses import replace

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.loaders.files import RowFiles
from omnidata.loaders.row_files import head_of
from omnidata.tasks.benchmark import (
    Benchmark, Card, Paper, ParsedAnswer, Rule, Speech, UnreadError, Wordings,
)
from omnidata.tasks.totals import Column, RowTotals
from omnidata.types import Explanation, MediaRef, Step, Target, Verdict


class Exact(Rule):
    name = "words-exact"
    totals = RowTotals(by={"language": ()})

    def judge(self, step, parsed):
        if not step.source["longer"]:
            return Verdict("ok", (None,))
        return (parsed is not None and parsed.value == step.source["longer"],)


class Words(Benchmark):
    card = Card(title="Words")
    question = "Which is longer: {instruction}?"
    rules = (Exact(),)
    allowed = {"case": ("kept", "lower")}

    def steps(self, data, note):
        data = data / "words.jsonl" if data.is_dir() else data
        rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
        for number, row in enumerate(rows):
            yield Step(
                sample_id=row.get("id", f"{data.stem}/{number}"),
                episode_id=str(number),
                step_index=0,
                num_steps=1,
                instruction=row["words"],
                screen=(0, 0),
                media={},
                history=(),
                history_screens=(),
                action=Action("back"),
                tags={"language": row["language"]},
                source=row,
            )

    def parse(self, text, step, receipt):
        word = text.strip()
        if not word:
            raise UnreadError("no word")
        return ParsedAnswer(word, {"word": word})

    def target(self, step, *, space=None, size=None):
        word = step.source["longer"]
        return Target(word, word) if word else None


class Ruleless(Words):
    """Judges nothing."""

    rules = ()


class Walked(Exact):
    totals = RowTotals(by={"app": ()})


class Walk(Words):
    """An episode of several steps, which names its app with each."""

    card = Card(title="Walk", tags=("app",))
    rules = (Walked(),)

    def steps(self, data, note):
        steps = [*super().steps(data, note)]
        rows = [step.source for step in steps]
        for step, row in zip(steps, rows):
            count = sum(row["episode"] == other["episode"] for other in rows)
            yield replace(
                step, episode_id=row["episode"], step_index=row["step"],
                num_steps=row.get("held", count), tags={"app": row["app"]}, episode="", group="",
            )


class Shown(Words):
    """Has a picture in a folder beside its rows."""

    card = Card(title="Shown", roles={"screenshot": "image"})

    def steps(self, data, note):
        for step in super().steps(data, note):
            path = step.source.get("shot", "a.png")
            shot = MediaRef("image", data.parent / "media", path)
            yield replace(step, media={"screenshot": shot})


class Placed(Words):
    """Has a target, which is a box of its row."""

    def steps(self, data, note):
        for step in super().steps(data, note):
            box = Box(*step.source["box"], step.source["unit"])
            screen = tuple(step.source["screen"])
            yield replace(step, screen=screen, action=Action("tap", (box,)))


class Explaining(Words):
    """Says itself why an answer is wrong."""

    def explain(self, step, verdict, parsed, profile, receipt):
        said = parsed.value if parsed else ""
        sentence = f"{said} is shorter" if verdict else ""
        return Explanation("wrong" if verdict else None, sentence, "word", said, noun="word")


class Known(Words):
    """Has all that loading asks for."""

    card = Card(
        title="The longer word",
        holds="two words; which is longer",
        tags=("language",),
        roles={},
        subsets=("en",),
    )
    files = RowFiles(
        "pairs of words", lambda path: "known" if b'"words"' in head_of(path) else "other"
    )

    def steps(self, data, note):
        for path in self.files.find(data):
            yield from super().steps(path, note)

    def group(self, step):
        return replace(step, episode="of " + step.source["language"], group=step.instruction)


def nothing(name, options):
    return object()
'''
MEMBERS = '''
import numpy as np

from omnidata.metrics.paired import Fractions, Measures, Sums
from omnidata.metrics.rollouts import Attempt, behaviour
from omnidata.tasks.rollouts import OfflineScorer, Scored
from omnidata.tasks.overview import Table, View
from omnidata.tasks.totals import with_steps
from omnidata.tasks.published import Best, BestScores, Published, PublishedRow, TableSpec


class Graded(Exact):
    """Means under names of its own."""

    name = "words-graded"
    columns = (Column("found", "score"), Column("letters", unit="number"))
    totals = RowTotals(columns, by={"language": ()})

    def judge(self, step, parsed):
        found, letters = super().judge(step, parsed), len(parsed.value) if parsed else 0
        if isinstance(found, Verdict):
            return Verdict("ok", (None, letters))
        return (*found, letters)


class Rate(RowTotals):
    """Words found by letter written: no mean of rows."""

    values = ("score", "letters")
    columns = {"rate": "number"}
    by = {"language": ()}

    def _table(self, steps, rows, mask):
        found, letters = (rows.values[name][mask].sum() for name in self.values)
        rate = float(found / letters) if letters else None
        return with_steps({"rate": rate, "ci95": {"rate": None}, "rows": int(mask.sum())})

    def measures(self, steps, a, b):
        parts = [np.column_stack([rows.values[name] for name in self.values]) for rows in (a, b)]
        judged = ~np.isnan(parts[0]).any(axis=1)

        def sums(chosen):
            kept = chosen & judged
            return Sums(parts[0][kept], parts[1][kept], Fractions(1), Fractions(1).uses)

        return Measures(self.columns, self.by, None, judged, sums)


class Rated(Graded):
    name = "words-rated"
    totals = Rate()


class Letters(View):
    published = {"paper": "the paper's Table 1"}

    def tables(self):
        rows = [[step.instruction, str(len(step.instruction))] for step in self.source.steps]
        return [Table("Letters of the questions", ("", "letters"), rows)]

    def differences(self, table):
        found = len(self.source.steps)
        return [] if found == 4 else [f"there are {found} questions, published 4"]


class Votes(OfflineScorer):
    profiles = {"words-votes": {"agreement": "share"}}
    right = "agreement"

    def takes(self, answers):
        return answers.read_text("utf-8").startswith('{"vote"')

    def score(self, data, answers, *, profile, strict=False):
        votes = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
        lines = [
            {"sample_id": one["vote"], "outcome": "ok", "profile": profile, "agreement": one["is"]}
            for one in votes
        ]
        mean = sum(line["agreement"] for line in lines) / len(lines)
        results = {
            "task": "words",
            "profile": profile,
            "overall": {"agreement": mean},
            "ci95": {"agreement": None},
            "by": {},
            "rollouts": behaviour([Attempt(one["vote"], one["is"], "finished") for one in votes]),
            "counts": {"tasks": len(lines)},
            "outcomes": {"ok": len(lines)},
        }
        return [Scored("", results, lines)], []


PUBLISHED = Published(
    rows=[
        PublishedRow(
            "main", "Reader 1", {"case": "kept"}, "Words, Table 2", 3,
            {("", "found"): 0.75, ("de", "found"): 0.5},
        ),
        PublishedRow("main", "Reader 2", {"case": "lower"}, "Words, Table 2", 3, {}),
        PublishedRow("language", "Reader 3", {}, "Words, Figure 1", 3, {("DE", "found"): 0.25}),
    ],
    settings=[BestScores(3, {}, {"found": Best(0.75, "Reader 1", "Words, Table 2")})],
    notes={"words-graded": {"found": "Found counts as Reader 1 counts."}},
)


class Spelled(Wordings):
    def spelling(self, tag, value):
        return {"german": "de"}.get(value.lower(), value.lower())

    def spoken_texts(self, step):
        return [step.instruction, step.tags["language"]]


class Told(Words):
    """Says all that a benchmark can say of itself."""

    rules = (Graded(), Rated())
    rollouts = Votes()
    wordings = Spelled()
    paper = Paper(
        published=lambda: PUBLISHED,
        tables=(TableSpec("main", "By tongue", "language", {"de": "German", "en": "English"}),),
        overview=Letters,
    )
'''
ROWS = [
    {"words": "fig or melon", "longer": "melon", "language": "en"},
    {"words": "Birne oder Ei", "longer": "Birne", "language": "de"},
    {"words": "oak or elm", "longer": "", "language": "en"},
]


def install(folder: Path, code: str = "", points: str = "words = words_plugin:Words") -> Path:
    """The plug-in, with more code at its end."""
    text = f"{PLUGIN}{MEMBERS}\n\n{code}\n"
    (folder / "words_plugin.py").write_text(text, encoding="utf-8")
    plugs.install(folder, "omnidata-words", "omnidata.tasks", points)
    return folder


def told(*arguments: str | Path, code: int = 0) -> str:
    """What the command prints, and what it says beside that."""
    done = here(*arguments, code=code)
    return done.stdout + done.stderr
