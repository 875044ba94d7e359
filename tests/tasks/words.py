"""A plug-in that asks which of two words is longer, and the rows that it reads."""

from __future__ import annotations

from pathlib import Path

from tests import plugs
from tests.cli.running import here

PLUGIN = '''
"""A benchmark of another distribution: which of two words is longer."""

import hashlib
import json
from dataclasses import replace

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import RowProfile
from omnidata.types import Explanation, MediaRef, LoadedDataset, Step, Verdict


class Exact(RowProfile):
    name = "words-exact"
    by = {"language": ()}

    def judge(self, step, text, receipt=None):
        said = text.strip()
        if not step.source["longer"]:
            return Verdict("ok", (None,))
        right = said == step.source["longer"]
        return Verdict("ok" if said else "unparsed", (right,), {"word": said})


class Words(Benchmark):
    question = "Which is longer: {instruction}?"
    profiles = {"words-exact": Exact()}
    allowed = {"case": ("kept", "lower")}

    def load(self, data, *, check_media=True, strict=False):
        data = data / "words.jsonl" if data.is_dir() else data
        rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
        steps = [
            Step(
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
            for number, row in enumerate(rows)
        ]
        fingerprint = hashlib.sha256(data.read_bytes()).hexdigest()
        names = [step.sample_id for step in steps]
        return LoadedDataset(self.name, data, steps, [], 0, fingerprint, names, ("language",), {})

    def answer(self, step):
        return step.source["longer"] or None


class Ruleless(Words):
    """Judges nothing."""

    profiles = {}


class Walked(Exact):
    by = {"app": ()}


class Walk(Words):
    """An episode of several steps, which names its app with each."""

    profiles = {"words-exact": Walked()}

    def load(self, data, *, check_media=True, strict=False):
        found = super().load(data)
        rows = [step.source for step in found.steps]
        held = [sum(row["episode"] == other["episode"] for other in rows) for row in rows]
        steps = [
            replace(
                step, episode_id=row["episode"], step_index=row["step"],
                num_steps=row.get("held", count), tags={"app": row["app"]}, episode="", group="",
            )
            for step, row, count in zip(found.steps, rows, held)
        ]
        return replace(found, steps=steps, tags=("app",))


class Shown(Words):
    """Has a picture in a folder beside its rows."""

    def load(self, data, **options):
        found = super().load(data)
        steps = [
            replace(
                step,
                media={
                    "screenshot": MediaRef(
                        "image", data.parent / "media", step.source.get("shot", "a.png")
                    )
                },
            )
            for step in found.steps
        ]
        return replace(found, steps=steps, roles={"screenshot": "image"})


class Placed(Words):
    """Has a target, which is a box of its row."""

    def load(self, data, **options):
        found = super().load(data)
        steps = [
            replace(
                step,
                screen=tuple(step.source["screen"]),
                action=Action("tap", (Box(*step.source["box"], step.source["unit"]),)),
            )
            for step in found.steps
        ]
        return replace(found, steps=steps)


class Listed(Shown):
    """Gives its steps, and leaves the rest of loading to the defaults."""

    load = Benchmark.load

    def steps(self, data, note):
        return Shown.load(self, data).steps


class Explaining(Words):
    """Says itself why an answer is wrong."""

    def explain(self, step, verdict, *, profile, receipt=None):
        said = (verdict and verdict.parsed or {}).get("word", "")
        sentence = f"{said} is shorter" if verdict else ""
        return Explanation("wrong" if verdict else None, sentence, "word", said, noun="word")


class Known(Words):
    """Has all that loading asks for."""

    title = "The longer word"
    holds = "two words; which is longer"
    tags = ("language",)
    roles = {}
    subsets = ("en",)

    def detect(self, data):
        with data.open(encoding="utf-8") as rows:
            try:
                return "words" in json.loads(rows.readline())
            except ValueError:
                return False

    def load(self, data, **options):
        try:
            return super().load(data, **options)
        except (AttributeError, KeyError, ValueError):
            raise DataError("these are no pairs of words", where=str(data)) from None

    def named(self, step):
        return replace(step, episode="of " + step.source["language"], group=step.instruction)


def nothing(name, options):
    return object()
'''
MEMBERS = '''
import numpy as np

from omnidata.metrics.paired import Fractions, Measures, Sums
from omnidata.metrics.rollouts import Attempt, behaviour
from omnidata.tasks.profiles import OfflineScorer, Scored
from omnidata.tasks.overview import Table, View
from omnidata.tasks.totals import sized
from omnidata.tasks.published import Best, BestScores, Published, PublishedRow, TableSpec


class Graded(Exact):
    """Means under names of its own."""

    name = "words-graded"
    values = ("score", "letters")
    columns = {"found": "share", "letters": "number"}

    def judge(self, step, text, receipt=None):
        found = super().judge(step, text)
        return Verdict(found.outcome, (*found.values, len(text.strip())), found.parsed)


class Rated(Graded):
    """Words found by letter written: no mean of rows."""

    name = "words-rated"
    columns = {"rate": "number"}

    def _table(self, steps, rows, mask):
        found, letters = (rows.values[name][mask].sum() for name in self.values)
        rate = float(found / letters) if letters else None
        return sized({"rate": rate, "ci95": {"rate": None}, "rows": int(mask.sum())})

    def measures(self, steps, a, b):
        parts = [np.column_stack([rows.values[name] for name in self.values]) for rows in (a, b)]
        judged = ~np.isnan(parts[0]).any(axis=1)

        def sums(chosen):
            kept = chosen & judged
            return Sums(parts[0][kept], parts[1][kept], Fractions(1), Fractions(1).uses)

        return Measures(self.columns, self.by, None, judged, sums)


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


class Told(Words):
    """Says all that a benchmark can say of itself."""

    profiles = {"words-graded": Graded(), "words-rated": Rated()}
    overview = Letters
    score_files = Votes()
    tables = (TableSpec("main", "By tongue", "language", {"de": "German", "en": "English"}),)
    published = Published(
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

    def spelling(self, tag, value):
        return {"german": "de"}.get(value.lower(), value.lower())

    def spoken(self, step):
        return [step.instruction, step.tags["language"]]
'''
ROWS = [
    {"words": "fig or melon", "longer": "melon", "language": "en"},
    {"words": "Birne oder Ei", "longer": "Birne", "language": "de"},
    {"words": "oak or elm", "longer": "", "language": "en"},
]


def install(
    folder: Path, name: str = "omnidata-words", points: str = "words = words_plugin:Words"
) -> Path:
    (folder / "words_plugin.py").write_text(PLUGIN + MEMBERS, encoding="utf-8")
    plugs.install(folder, name, "omnidata.tasks", points)
    return folder


def told(*arguments: str | Path, code: int = 0) -> str:
    """What the command prints, and what it says beside that."""
    done = here(*arguments, code=code)
    return done.stdout + done.stderr
