"""`omnidata score`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.answers import SKIP_BAD, find_answers, read_counted
from omnidata.cli.arguments import finds, on_engine, reading_data
from omnidata.errors import DataError, Finding, RunError, UnansweredError, UsageError

if TYPE_CHECKING:
    from omnidata.predictions import Prediction
    from omnidata.run.engines import Cluster
    from omnidata.run.run_files import Run
    from omnidata.tasks.profiles import OfflineScorer, Scored
    from omnidata.types import Step

_ALL = "all"
"""In place of a profile: each of them."""


@reading_data
@finds
@on_engine
def score(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="The benchmark, e.g. omnigui; or somebody's run, hf://ORG/RUN."
        ),
    ],
    task_options: args.TaskOptions,
    where: args.Where,
    data: Annotated[
        Path | None,
        args.data_argument(
            "The dataset's folder or file, hf://ORG/NAME, or auto; of hf://ORG/RUN that which it "
            "names, unless given."
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Argument(
            metavar="PREDICTIONS",
            help='Lines of {"sample_id", "output"}, a run folder, a log (--from), or DATA again '
            "where its rows have the answers; or what an environment recorded, unless the data "
            "hold it themselves.",
        ),
    ] = None,
    actions: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="In place of PREDICTIONS the log of an agent's actions, for the benchmark's own "
            "evaluator to go through.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="The scoring rules; the task's default follows its paper; all: each of them."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write scores.jsonl and results.json into this folder; of several agents or "
            "profiles, into a folder for each below it."
        ),
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="HARNESS",
            help="Who wrote PREDICTIONS: lmms-eval, clawgui-eval, inspect, vlmevalkit or gui-r1, "
            "whose rows are found by what is said of them; or with --rows a trainer: "
            "llamafactory, swift, verl or trl.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="EXPORT",
            help="With a trainer's predictions: the rows that it predicted on, or the folder that "
            "`omnidata export` wrote.",
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The answers are in the words of a family of models: short for -T dialect=NAME. "
            "PROFILE+strict reads them as its released parser does.",
        ),
    ] = None,
    exclude: args.Exclude = None,
    limit: args.Limit = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            SKIP_BAD,
            help="Leave out lines that cannot be scored: their steps count as missing.",
        ),
    ] = False,
    strict: args.Strict = False,
    changed_media: args.ChangedMedia = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that judge; if left, this one alone, and from 200,000 steps on one per "
            "core; with ray as many as have room.",
        ),
    ] = None,
    *,
    cluster: Cluster | None,
    as_json: args.Json = False,
) -> None:
    """Score answers that exist: of a run, a file, a log or a trainer.

    Steps without an answer are `missing`, which counts as wrong and makes the exit code 1; where no
    step has an answer there is no score. A run folder is scored on the steps that it asked about,
    a trainer's predictions on the rows of the export; --where, --exclude and --limit choose among
    these. What an environment recorded, as the subtasks that an agent completed or whether it
    succeeded, is scored without any text; the page of each benchmark says its form. Where that is
    of several agents, each has a table of its own, and --json is an object of agents' results.
    --profile all scores by every profile of the task, side by side, each with whose rules it has
    and what they leave out; without any text by every profile that needs none. --out then gets a
    folder for each.

    `omnidata score hf://ORG/RUN` scores the answers of a run that somebody has pushed, and exits
    with 1 where the results that were published with them are others.

    Example: omnidata score omnigui omnidata-demo/data runs/center --profile omnigui-release

    Example: omnidata score androidcontrol DATA runs/mine --profile all

    Example: omnidata score omnigui DATA answers.jsonl --dialect ui-tars-1.5

    Example: omnidata score omnigui DATA generated_predictions.jsonl --from llamafactory --rows OUT

    Example: omnidata score hf://ORG/RUN
    """
    from omnidata.loaders.hub import copy_of, parse_address
    from omnidata.loaders.stored_steps import Positions
    from omnidata.run.answer_files import BadLines
    from omnidata.run.folder import file_name
    from omnidata.run.run_files import (
        ANSWERS,
        INFO,
        RESULTS,
        SCORES,
        model_name,
        recorded_task,
    )
    from omnidata.run.scoring import check_agent_folders, check_scores_folder, get_profile
    from omnidata.run.scoring import score as run
    from omnidata.run.selection import read_exclude, select, whole_episodes
    from omnidata.tasks import get_task
    from omnidata.tasks.base import parse

    published = None
    if parse_address(task):
        task, data, predictions, published = _pushed(task, data, profile)
        profile = profile or published.profile
    elif predictions is not None and (address := parse_address(predictions)):
        predictions = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    if data is None:
        raise UsageError(
            "there is no data",
            expected=f"omnidata score {task} DATA, or omnidata score hf://ORG/RUN",
        )
    choice = [
        flag
        for flag, value in (("--where", where), ("--exclude", exclude), ("--limit", limit))
        if value
    ]
    scorer = get_task(task).score_files
    heeded = [
        option for option in task_options if scorer and option.partition("=")[0] in scorer.options
    ]
    if heeded:
        scorer = get_task(task, parse(heeded, "-T")).score_files
    meaningless = [f"-T {option}" for option in task_options if option not in heeded]
    meaningless += [f"--from {harness}"] * bool(harness) + [f"--rows {rows}"] * bool(rows)
    meaningless += (
        choice + [SKIP_BAD] * skip_bad + ["--workers, --engine"] * bool(workers or cluster)
    )
    if actions is not None:
        if predictions is not None or scorer is None:
            raise UsageError(
                "there are predictions beside the log"
                if scorer
                else f"{task} has no evaluator of actions",
                where=f"--actions {actions}",
                expected=f"omnidata score {task} DATA"
                + (" --actions LOG" if scorer else " ANSWERS"),
            )
        _refuse_options(meaningless)
        _score_recorded(scorer, data, None, profile, out, actions, strict=strict, as_json=as_json)
        return
    undecided = profile in (None, _ALL) and not harness
    recorded = predictions is None or (undecided and scorer and scorer.takes(predictions))
    if scorer and (recorded or profile in scorer.profiles):
        _check_answers(scorer, task, predictions, None if profile == _ALL else profile)
        _refuse_options(meaningless)
        _score_recorded(scorer, data, predictions, profile, out, strict=strict, as_json=as_json)
        if published:
            _tell_uncompared(published)
        return
    if predictions is None:
        raise _lacking(task)
    given = parse([*task_options, *([f"dialect={dialect}"] if dialect else [])], "-T")
    answers = find_answers(task, data, predictions, given, harness=harness, rows=rows)
    if skip_bad and not answers.flag:
        raise UsageError(
            "a broken line of a run folder is damage",
            where=SKIP_BAD,
            expected=f"{SKIP_BAD} with a file of answers",
            remedy=f"name the file: {answers.lines}",
        )
    benchmark = recorded_task(answers.settings, task, given)
    every = profile == _ALL and _ALL not in benchmark.profiles
    rules = [get_profile(benchmark, name) for name in (benchmark.profiles if every else [profile])]
    source = benchmark.load(data, check_media=False, strict=strict)
    terminal.print_findings(source)
    steps = answers.steps(source, benchmark)
    if choice:
        steps = select(
            steps,
            where=parse(where, "--where"),
            exclude=read_exclude(exclude, source.steps) if exclude else frozenset(),
            limit=limit,
            spelling=benchmark.spelling,
        )
    outs = [out / file_name(rule.name) if out and every else out for rule in rules]
    if out is not None and every:
        check_agent_folders(out, [place for place in outs if place], predictions)
    elif out is not None:
        check_scores_folder(out, predictions)
    # Folders of profiles are called after them, and say in their results whose the scores are.
    agent = model_name(answers.settings) or out.resolve().name if out and every else ""
    found: dict[str, dict[str, Any]] = {}
    differing: list[str] | None = None
    with ExitStack() as stack:
        for rule, place in zip(rules, outs, strict=True):
            bad = BadLines(answers.lines, skip=skip_bad, flag=answers.flag)
            lines = read_counted(answers, source, benchmark, bad)
            if not found:
                lines = _checked(lines, steps, allowed=changed_media, where=predictions)
            compared = published is not None and rule.name == published.profile and not choice
            if compared and place is None:  # the lines of scores are compared too
                place = Path(stack.enter_context(TemporaryDirectory(prefix="omnidata-")))
            found[rule.name] = run(
                benchmark,
                rule,
                steps,
                lines,
                whole=whole_episodes(source.steps, steps),
                out=place,
                origin=answers.lines,
                ignored=Positions(source.steps),
                agent=agent,
                source=source,
                workers=workers,
                cluster=cluster,
                bad=bad,
            )
            if compared and published and place:
                differing = _differences(published, found[rule.name], place)
            if len(found) == 1:
                for line in bad.summary():
                    terminal.note(line)
    if every:
        options = {**answers.settings.get("options", {}), **given}
        runs.print_profiles(found, benchmark, as_json, options)
    else:
        runs.print_results(found[rules[0].name], benchmark, as_json)
    first = found[rules[0].name]
    unread = first["outcomes"].get("unparsed") and not first["outcomes"].get("ok")
    known = any(reason["kind"] == "dialect" for reason in first.get("headline", ()))
    if unread and not known and not benchmark.options.get("dialect"):
        terminal.note(
            "no answer could be read; if the model answered in words of its own, name them: "
            "--dialect NAME (omnidata info dialects lists them)"
        )
    if published and differing is not None:
        _tell_compared(published, found[published.profile], differing)
        return
    if published:
        _tell_uncompared(published)
    if any(runs.is_doubtful(results) for results in found.values()):
        raise typer.Exit(1)


def _pushed(named: str, data: Path | None, profile: str | None) -> tuple[str, Path, Path, Run]:
    """The task, the data, the folder and the scored run of a run on the Hub.

    Raises:
        DataError: it is no run, or its data cannot be got.
        RunError: a file of it is broken, or this omnidata does not know its task or profile.
    """
    from omnidata.loaders.fetch import AUTO
    from omnidata.loaders.hub import copy_of, parse_address
    from omnidata.run.run_files import (
        ANSWERS,
        INFO,
        RESULTS,
        SCORES,
        read_run,
    )
    from omnidata.tasks import get_task
    from omnidata.tasks.common_options import OPTIONS

    address = parse_address(named)
    assert address is not None  # whoever calls has looked
    run = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    published = read_run(run)
    info = published.settings
    if not info:
        raise RunError(
            "the run has no run.json",
            where=named,
            expected="a run as `omnidata push` publishes it",
            remedy="tell its publisher",
        )
    known = {*get_task(info["task"]).allowed, *OPTIONS}
    if unknown := sorted(info.get("options", {}).keys() - known):
        terminal.note(f"nobody here knows these options of the run: {', '.join(unknown)}"[:500])
    said = str(info.get("data") or "")
    # What somebody has written is no reason to open a file here: only the Hub may be named.
    place = said if parse_address(said) else AUTO
    if data is None:
        terminal.note(f"its data: {place}")
        data = args.data_of(info["task"], Path(place))
    return info["task"], data, run, published


_NOT_SCORED = frozenset({"agent", "stopped", "places", "headline"})
"""Keys of results that whoever scores sets otherwise: whose they are, why a run ended early, and
what was found out about the answers beside the score."""
_SHOWN = 20
"""Differences that are told one by one."""


def _differences(said: Run, found: Mapping[str, Any], scored: Path) -> list[str]:
    """In what published results and lines of scores differ from those that were found, in words.

    Args:
        said: as it was published.
        found: the content of `results.json`.
        scored: the folder that the lines have been written into.

    Raises:
        RunError: a file of the scores is missing or broken.
    """
    from omnidata.run.run_files import read_scores

    whole = json.loads(json.dumps(found))
    differing = [
        line
        for key in whole
        if key not in _NOT_SCORED
        for line in _unlike(key, said.results.get(key), whole[key])
    ]
    ours, theirs = read_scores(scored, said.profile), said.scores
    for name in dict.fromkeys([*theirs, *ours]):
        differing += _unlike(f"the score of {name}", theirs.get(name), ours.get(name))
    return differing


def _unlike(place: str, said: Any, found: Any) -> list[str]:
    if isinstance(said, dict) and isinstance(found, dict):
        keys = dict.fromkeys([*said, *found])
        return [
            line
            for key in keys
            for line in _unlike(f"{place}.{key}", said.get(key), found.get(key))
        ]
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        pairs = enumerate(zip(said, found, strict=True))
        return [line for number, pair in pairs for line in _unlike(f"{place}.{number}", *pair)]
    if _same(said, found):
        return []
    return [f"{place:.200}: {_brief(said)} is said, {_brief(found)} is found"]


def _brief(value: object) -> str:
    """A value for a message; numbers of any length come from outside."""
    if isinstance(value, int) and abs(value) >= _LARGE:
        return "a huge number"
    if isinstance(value, dict | list):
        return "something" if value else "nothing"
    return "nothing" if value is None else f"{value!s:.60}"


_LARGE = 10**18


def _same(said: object, found: object) -> bool:
    if isinstance(said, bool) or isinstance(found, bool):
        return said is found
    if isinstance(said, int | float) and isinstance(found, int | float):
        small = abs(said) < _LARGE and abs(found) < _LARGE
        return said == found or (small and abs(said - found) < 1e-9)
    return said == found


def _tell_compared(said: Run, found: Mapping[str, Any], differing: Sequence[str]) -> None:
    """Say whether the results that were published are those of the answers, and what was not read.

    Raises:
        typer.Exit: with 1 where they are not.
    """
    for line in differing[:_SHOWN]:
        terminal.note(line)
    if len(differing) > _SHOWN:
        terminal.note(f"and {len(differing) - _SHOWN:,} more")
    besides = ["the README", *sorted(said.results.keys() - (found.keys() - _NOT_SCORED))]
    terminal.note(f"not compared: {', '.join(besides)}"[:500])
    if differing:
        terminal.note("the published results are not those of the published answers")
        raise typer.Exit(1)
    terminal.note("the published results are those of the published answers")


def _tell_uncompared(said: Run) -> None:
    terminal.note(
        "nothing was compared: the published results are of all steps of the run, by the profile "
        f"{said.profile}"
    )


def _checked(
    answers: Iterator[Prediction], steps: Sequence[Step], *, allowed: bool, where: Path
) -> Iterator[Prediction]:
    """The answers as they come; after the last, say which media have changed, or raise.

    What the model was shown stands in each line of a run, wherever the line has got to.
    """
    from omnidata.loaders.stored_steps import Positions
    from omnidata.run.media_stamps import Seen

    seen, places = Seen(), Positions(steps)
    for answer in answers:
        if (number := places.get(answer.sample_id)) is not None:
            seen.look(steps[number], answer.delivery, answer.receipt)
        yield answer
    if changed := seen.check(allowed=allowed, where=str(where)):
        terminal.note(f"{changed} media have changed since the model was shown them")


def _check_answers(
    scorer: OfflineScorer, task: str, predictions: Path | None, profile: str | None
) -> None:
    """Whether there are answers where they are needed, and none where they mean nothing."""
    if profile is not None and profile not in scorer.profiles:
        raise UsageError(
            f"there are no predictions for the profile {profile}",
            expected=f"omnidata score {task} DATA PREDICTIONS",
            remedy=f"without any, name another profile: {', '.join(scorer.profiles)}",
        )
    if predictions is None and scorer.needs_answers:
        raise _lacking(task)
    if predictions is not None and not scorer.needs_answers:
        raise UsageError(
            f"{profile} needs no predictions: the data hold what was scored",
            where=str(predictions),
            expected=f"omnidata score {task} DATA",
            remedy="leave the file out, or name a profile for a model's texts",
        )


def _lacking(task: str) -> UsageError:
    return UsageError(
        "there are no predictions", expected=f"omnidata score {task} DATA PREDICTIONS"
    )


def _refuse_options(given: Sequence[str]) -> None:
    """Refuse options that shape a prompt, choose steps, or read and judge a model's text.

    Args:
        given: those that were given, as on the command line.
    """
    if given:
        raise UsageError(
            "nothing here was said by a model",
            where=given[0],
            expected="no task options, no choice of steps, no log, and no processes that judge",
            remedy="leave it out, or give the model's texts",
        )


def _score_recorded(
    scorer: OfflineScorer,
    data: Path,
    answers: Path | None,
    profile: str | None,
    out: Path | None,
    actions: Path | None = None,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Score without any text, and print: each agent by itself, by one profile or by each."""
    from omnidata.run.folder import file_name

    every = profile == _ALL and _ALL not in scorer.profiles
    names = [*scorer.profiles] if every else [profile or next(iter(scorer.profiles))]
    if names[0] not in scorer.profiles:
        raise UsageError(
            f"no log is scored by {names[0]}",
            where=f"--profile {names[0]}",
            expected=f"one of {', '.join(scorer.profiles)}",
        )
    found: dict[str, Sequence[Scored]] = {}
    doubts: list[Finding] = []
    for name in names:
        try:
            if actions:
                scored, own = scorer.score_actions(data, actions, profile=name, strict=strict)
            else:
                scored, own = scorer.score(data, answers, profile=name, strict=strict)
        except DataError as error:
            if strict or (name == names[-1] and not found):
                raise
            terminal.note(f"not scored by {name}: {error.what}")  # but perhaps by another one
            continue
        given = actions or answers
        if given and all(one.results["outcomes"].keys() == {"missing"} for one in scored):
            raise UnansweredError(
                "no task of the data has an answer",
                where=str(given),
                expected="an answer to one task at least: without any there is no score",
                remedy="name the file that the answers are in",
            )
        found[name] = scored
        doubts += [finding for finding in own if finding not in doubts]
    outs = {name: out and (out / file_name(name) if every else out) for name in found}
    if out is not None:
        _write(found, outs, out, actions or answers)
    terminal.print_doubts(doubts)
    if as_json:
        told = {name: _as_json(scored) for name, scored in found.items()}
        terminal.print_json(told if every else told[names[0]])
        return
    for name, scored in found.items():
        if len(scored) > 1:
            _print_ranking(scorer, scored, name)
        for one in scored:
            terminal.print_results(one.results, scorer.profiles[name])
        if len(scored) > 1:
            shown = f"{outs[name]}/*" if out else "DIR/*, after --out DIR,"
            terminal.note(f"`omnidata report {shown}` compares the agents in pairs")


def _write(
    found: Mapping[str, Sequence[Scored]],
    outs: Mapping[str, Path | None],
    out: Path,
    answers: Path | None,
) -> None:
    """Write the scores into the folder of each profile, which may be the one that was named."""
    from omnidata.run.scoring import agent_folders, check_agent_folders, write_scored

    places: dict[Path, Scored] = {}
    for name, scored in found.items():
        if place := outs[name]:
            named = scored if place == out else [_named(one, out.resolve().name) for one in scored]
            places |= agent_folders(named, place)
    check_agent_folders(out, list(places), answers)
    for place, one in places.items():
        write_scored(place, one)


def _named(scored: Scored, name: str) -> Scored:
    """The same, with a name for an agent that has none: the folder will have the profile's."""
    return scored if scored.agent else replace(scored, results={**scored.results, "agent": name})


def _as_json(scored: Sequence[Scored]) -> Mapping[str, Any]:
    """The results of one agent, or by agent."""
    one = scored[0].results
    return one if len(scored) == 1 else {each.agent: each.results for each in scored}


def _print_ranking(scorer: OfflineScorer, scored: Sequence[Scored], profile: str) -> None:
    """A row for each agent, the best first."""
    from omnidata.analysis.rollouts import ranking
    from omnidata.analysis.tables import text

    results = {one.agent: one.results for one in scored}
    table = ranking(
        results,
        scorer.profiles[profile],
        scorer.ranked_by,
        names={agent: agent for agent in results},
        head=f"Agents: {scored[0].results['task']} by {profile}",
        tried={one.agent: {line["sample_id"] for line in one.lines} for one in scored},
    )
    terminal.say(text(table, width=terminal.columns_of_stdout()))
