"""Which colour is the square? Pictures, and a JSON object for each."""

from omnidata.loaders.files import RowFiles
from omnidata.loaders.row_files import head_of
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer, Rule, UnreadError
from omnidata.tasks.totals import RowTotals
from omnidata.types import MediaRef, Step, Target


class OneWord(Rule):
    """The answer is the colour."""

    name = "colours-word"
    totals = RowTotals(by={"size": ("small", "large")})

    def judge(self, step, parsed):
        return (parsed is not None and parsed.value == step.source["colour"],)


class Colours(Benchmark):
    """Squares on a white ground: which colour is the square?"""

    card = Card(title="Colours", tags=("size",), roles={"screenshot": "image"})
    question = "{instruction} Answer with one word."
    rules = (OneWord(),)
    files = RowFiles(
        "rows with image, colour and size",
        lambda path: "known" if b'"colour"' in head_of(path) else "other",
    )

    def steps(self, data, note):
        for line in self.files.rows(self.files.find(data), note):
            yield Step(
                sample_id=f"colours/{line.number}",
                episode_id=str(line.number),
                step_index=0,
                num_steps=1,
                instruction="Which colour is the square?",
                screen=(64, 64),
                media={"screenshot": MediaRef("image", line.path.parent, line.row["image"])},
                history=(),
                history_screens=(),
                action=None,
                tags={"size": line.row["size"]},
                source=line.row,
            )

    def parse(self, text, step, receipt):
        word = text.strip().lower()
        if not word:
            raise UnreadError("the answer is empty")
        return ParsedAnswer(word, {"said": word})

    def target(self, step, *, space=None, size=None):
        return Target(step.source["colour"], step.source["colour"])
