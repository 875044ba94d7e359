"""`omnidata score`: the answers of a model, or the records of an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.answers import SKIP_BAD, GivenAnswers, find_answers, read_counted
from omnidata.cli.declare import argument, flag, option, verb
from omnidata.cli.score_published import (
    fetch_published,
    find_differences,
    note_compared,
    note_uncompared,
)
from omnidata.cli.score_recorded import (
    ALL,
    find_scorer,
    refuse_for_records,
    score_recorded,
)
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.predictions import Prediction
    from omnidata.run.engines import Cluster
    from omnidata.run.errata import Errata
    from omnidata.run.run_files import Run
    from omnidata.tasks.asking import Asking
    from omnidata.tasks.profile import Profile
    from omnidata.types import LoadedDataset, Step


@verb(args.reading_data, args.listing_findings)
def score(
    *,
    task: str = argument("The benchmark, e.g. omnigui; or a published run, hf://ORG/RUN.", "TASK"),
    task_options: args.TaskOptions,
    steps: args.ChosenSteps,
    data: Path | None = args.data_argument(
        "The dataset: a folder or file, hf://ORG/NAME, or auto. Default with hf://ORG/RUN: "
        "the dataset that the run names.",
        default=None,
    ),
    predictions: Path | None = argument(
        'Answers: JSON lines of {"sample_id", "output"}, a run folder, a log (--from), '
        "DATA again if its rows hold answers, or records of an environment.",
        "PREDICTIONS",
        default=None,
    ),
    actions: Path | None = option(
        "Log of an agent's actions for the benchmark's own evaluator, in place of PREDICTIONS.",
        "LOG",
    ),
    profile: str | None = option("Rules for scoring, or all. Default: those of the task's paper."),
    out: Path | None = option(
        "Write scores.jsonl and results.json into this folder; several agents or profiles "
        "get subfolders."
    ),
    harness: str | None = option(
        "The program that wrote PREDICTIONS: lmms-eval, clawgui-eval, inspect, vlmevalkit "
        "or gui-r1; with --rows a trainer: llamafactory, swift, verl or trl.",
        "HARNESS",
        name="--from",
    ),
    rows: Path | None = option(
        "With a trainer's predictions: the rows that it predicted on, or the folder from "
        "`omnidata export`.",
        "EXPORT",
    ),
    dialect: str | None = option(
        "Read the answers in the action format of a model family; short for -T "
        "dialect=NAME. --profile PROFILE+strict reads them as its released parser does.",
        "NAME",
    ),
    errata: args.Errata,
    skip_bad: bool = flag(
        "Skip lines that cannot be scored; their steps count as missing.", SKIP_BAD
    ),
    strict: args.Strict = False,
    changed_media: args.ChangedMedia = False,
    workers: int | None = option(
        "Number of processes. Default: 1, from 200,000 steps on one per core, with ray "
        "all that fit.",
        min=1,
    ),
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Score existing answers from a run, a file, a log or a trainer.

    Steps without an answer count as wrong (`missing`), and the exit code is 1. A run folder is
    scored on the steps that it asked about, a trainer's predictions on the rows of the export;
    --where, --exclude and --limit choose among them. --profile all compares all rule profiles of
    the task. Records of an environment (completed subtasks, success) are scored without text; the
    page of the benchmark describes their form. Several agents get one table each.

    `omnidata score hf://ORG/RUN` checks a published run: it scores the answers again, and exits
    with 1 if the published results differ.

    Example: omnidata score omnigui omnidata-demo/data runs/center --profile omnigui-release

    Example: omnidata score androidcontrol DATA runs/mine --profile all

    Example: omnidata score omnigui DATA answers.jsonl --dialect ui-tars-1.5

    Example: omnidata score omnigui DATA generated_predictions.jsonl --from llamafactory --rows OUT

    Example: omnidata score hf://ORG/RUN
    """
    from omnidata.loaders.hub import copy_of, parse_address
    from omnidata.run.errata import read_all
    from omnidata.run.recorded import recorded_task
    from omnidata.run.run_info import ANSWERS, INFO, RESULTS, SCORES
    from omnidata.run.scoring import get_profile
    from omnidata.run.selection import select

    published = None
    if parse_address(task):
        task, data, predictions, published = fetch_published(task, data)
        profile = profile or published.profile
    elif predictions is not None and (address := parse_address(predictions)):
        predictions = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    usage = f"omnidata score {task} DATA"
    if data is None:
        raise UsageError("no data is named", expected=f"{usage}, or omnidata score hf://ORG/RUN")
    scorer = find_scorer(
        task,
        task_options,
        usage,
        predictions=predictions,
        actions=actions,
        profile=profile,
        has_log=bool(harness),
    )
    if scorer:
        unknown = {
            f"-T {name}={value}": name not in scorer.options for name, value in task_options.items()
        }
        refuse_for_records(
            {
                **unknown,
                f"--from {harness}": harness,
                f"--rows {rows}": rows,
                **steps.options,
                "--errata": errata,
                SKIP_BAD: skip_bad,
                "--workers, --engine": workers or cluster,
            }
        )
        score_recorded(
            scorer, data, predictions, profile, out, actions, strict=strict, as_json=as_json
        )
        if published:
            note_uncompared(published)
        return False
    if predictions is None:
        raise UsageError("no predictions are named", expected=f"{usage} PREDICTIONS")
    options = args.add_option(task_options, "dialect", dialect)
    answers = find_answers(task, data, predictions, options, harness=harness, rows=rows)
    answers.check_skipping(skip_bad)
    corrections = read_all(errata, task)
    asking = recorded_task(answers.settings, task, options)
    every = profile == ALL and ALL not in asking.profiles
    rules = [get_profile(asking, name) for name in (asking.profiles if every else [profile])]
    source = asking.load(data, check_media=False, strict=strict)
    terminal.print_findings(source)
    runs.note_other_data(corrections, source)
    chosen = answers.steps(source, asking)
    if steps.is_given:
        chosen = select(chosen, **steps.read(source.steps), task=asking)
    scoring = _Scoring(
        answers,
        asking,
        source,
        chosen,
        corrections,
        predictions=predictions,
        skip_bad=skip_bad,
        changed_media=changed_media,
        workers=workers,
        cluster=cluster,
    )
    compared = published if published and not steps.is_given else None
    found, differing = scoring.score(rules, out, every=every, compared=compared)
    if every:
        known = {**answers.settings.get("options", {}), **options}
        runs.print_profiles(found, asking, as_json, known)
    else:
        runs.print_results(found[rules[0].name], asking, as_json, chosen)
    _note_unread(found[rules[0].name], asking)
    if published and differing is not None:
        note_compared(published, found[published.profile], differing)
        return bool(differing)
    if published:
        note_uncompared(published)
    return any(map(runs.is_doubtful, found.values()))


@dataclass(frozen=True, slots=True)
class _Scoring:
    """Answers of a model, and how they are scored."""

    answers: GivenAnswers
    asking: Asking
    source: LoadedDataset
    steps: Sequence[Step]
    errata: Sequence[Errata]
    _: KW_ONLY
    predictions: Path
    skip_bad: bool
    changed_media: bool
    workers: int | None
    cluster: Cluster | None

    def score(
        self, rules: Sequence[Profile], out: Path | None, *, every: bool, compared: Run | None
    ) -> tuple[dict[str, dict[str, Any]], list[str] | None]:
        """Score the answers by each profile.

        Args:
            rules: the profiles.
            out: the folder for scores and results; None to write none.
            every: whether each profile gets a folder of its own in `out`.
            compared: the published run to compare with; None for none.

        Returns:
            The results by profile; the differences to the published ones, None if not compared.
        """
        from omnidata.run.run_info import model_name
        from omnidata.run.scoring import check_agent_folders
        from omnidata.storage import file_name

        outs = [out / file_name(rule.name) if out and every else out for rule in rules]
        if out is not None:
            check_agent_folders(out, [place for place in outs if place], self.predictions)
        # Folders of profiles have their names, so the results name the agent.
        agent = (model_name(self.answers.settings) or out.resolve().name) if out and every else ""
        found: dict[str, dict[str, Any]] = {}
        differing: list[str] | None = None
        for rule, place in zip(rules, outs, strict=True):
            with TemporaryDirectory(prefix="omnidata-") as scratch:
                is_compared = compared is not None and rule.name == compared.profile
                if is_compared:  # the lines of scores are compared too
                    place = place or Path(scratch)
                found[rule.name] = self._score_by(rule, place, agent, is_first=not found)
                if is_compared and compared and place:
                    differing = find_differences(compared, found[rule.name], place)
        return found, differing

    def _score_by(
        self, rule: Profile, out: Path | None, agent: str, *, is_first: bool
    ) -> dict[str, Any]:
        from omnidata.loaders.steps import Positions
        from omnidata.run.bad_lines import BadLines
        from omnidata.run.scoring import score
        from omnidata.run.selection import whole_episodes

        bad = BadLines(self.answers.lines, skip=self.skip_bad, flag=self.answers.flag)
        lines = read_counted(self.answers, self.source, self.asking, bad)
        if is_first:
            lines = _check_media(
                lines, self.steps, allowed=self.changed_media, where=self.predictions
            )
        results = score(
            self.asking,
            rule,
            self.steps,
            lines,
            whole=whole_episodes(self.source.steps, self.steps),
            out=out,
            origin=self.answers.lines,
            ignored=Positions(self.source.steps),
            agent=agent,
            source=self.source,
            workers=self.workers,
            cluster=self.cluster,
            bad=bad,
            errata=self.errata,
        )
        for line in bad.summary() if is_first else ():
            terminal.note(line)
        return results


def _note_unread(results: Mapping[str, Any], asking: Asking) -> None:
    """Print that the answers may be in a dialect, if none of them can be read."""
    unread = results["outcomes"].get("unparsed") and not results["outcomes"].get("ok")
    explained = any(reason["kind"] == "dialect" for reason in results.get("headline", ()))
    if unread and not explained and not asking.options.get("dialect"):
        terminal.note(
            "no answer could be read. If the model answers in its own action format, name it with "
            "--dialect NAME (`omnidata info dialects` lists them)"
        )


def _check_media(
    answers: Iterator[Prediction], steps: Sequence[Step], *, allowed: bool, where: Path
) -> Iterator[Prediction]:
    """Yield the answers; after the last, print how many media have changed, or raise."""
    from omnidata.loaders.steps import Positions
    from omnidata.run.media_stamps import Seen

    seen, places = Seen(), Positions(steps)
    for answer in answers:
        if (number := places.get(answer.sample_id)) is not None:
            seen.look(steps[number], answer.delivery, answer.receipt)
        yield answer
    if changed := seen.check(allowed=allowed, where=str(where)):
        terminal.note(f"{changed} media have changed since the model was asked")
