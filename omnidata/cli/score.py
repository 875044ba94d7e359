"""`omnidata score`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.answers import SKIP_BAD, find_answers, read_counted
from omnidata.cli.arguments import argument, flag, option
from omnidata.errors import DataError, Finding, RunError, UnansweredError, UsageError

if TYPE_CHECKING:
    from omnidata.predictions import Prediction
    from omnidata.run.run_files import Run
    from omnidata.tasks.rollouts import OfflineScorer, Scored
    from omnidata.types import Step

_ALL = "all"
"""Stands for all profiles."""


@args.reading_data
@args.finds
@args.on_engine
def score(
    *,
    task: str = argument("The benchmark, e.g. omnigui; or a published run, hf://ORG/RUN.", "TASK"),
    task_options: args.TaskOptions,
    where: args.Where,
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
    exclude: args.Exclude = None,
    limit: args.Limit = None,
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
    cluster: args.Cluster | None,
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
    from omnidata.loaders.steps import Positions
    from omnidata.run.bad_lines import BadLines
    from omnidata.run.errata import read_all
    from omnidata.run.recorded import recorded_task
    from omnidata.run.run_info import ANSWERS, INFO, RESULTS, SCORES, model_name
    from omnidata.run.scoring import check_agent_folders, get_profile
    from omnidata.run.scoring import score as run
    from omnidata.run.selection import read_exclude, select, whole_episodes
    from omnidata.storage import file_name
    from omnidata.tasks import get_task
    from omnidata.tasks.given_options import parse

    published = None
    if parse_address(task):
        task, data, predictions, published = _fetch_published(task, data)
        profile = profile or published.profile
    elif predictions is not None and (address := parse_address(predictions)):
        predictions = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    usage = f"omnidata score {task} DATA"
    if data is None:
        raise UsageError("no data is named", expected=f"{usage}, or omnidata score hf://ORG/RUN")
    choice = {"--where": where, "--exclude": exclude, "--limit": limit}
    scorer = get_task(task).benchmark.rollouts
    heeded = {
        name: task_options[name] for name in task_options if scorer and name in scorer.options
    }
    if heeded:
        scorer = get_task(task, heeded).benchmark.rollouts
    if actions is not None and (predictions is not None or scorer is None):
        raise UsageError(
            "PREDICTIONS and --actions exclude each other"
            if scorer
            else f"{task} has no evaluator of actions",
            where=f"--actions {actions}",
            expected=f"{usage} --actions LOG" if scorer else f"{usage} ANSWERS",
        )
    undecided = profile in (None, _ALL) and not harness
    recorded = predictions is None or (undecided and scorer and scorer.takes(predictions))
    if scorer and (recorded or profile in scorer.profiles):
        if actions is None:
            _check_answers(scorer, usage, predictions, None if profile == _ALL else profile)
        for_texts: dict[str, object] = {
            **{f"-T {name}={value}": name not in heeded for name, value in task_options.items()},
            f"--from {harness}": harness,
            f"--rows {rows}": rows,
            **choice,
            "--errata": errata,
            SKIP_BAD: skip_bad,
            "--workers, --engine": workers or cluster,
        }
        if refused := [name for name, value in for_texts.items() if value]:
            raise UsageError(
                "this option is for answers of a model, and records of an environment are scored",
                where=refused[0],
                expected="no task options, no choice of steps, no log, no --workers, no --engine",
                remedy="drop it, or name a file of the model's answers",
            )
        _score_recorded(
            scorer, data, predictions, profile, out, actions, strict=strict, as_json=as_json
        )
        if published:
            _note_uncompared(published)
        return False
    if predictions is None:
        raise UsageError("no predictions are named", expected=f"{usage} PREDICTIONS")
    own = [*map("=".join, task_options.items()), *([f"dialect={dialect}"] if dialect else [])]
    given = parse(own, "-T")
    answers = find_answers(task, data, predictions, given, harness=harness, rows=rows)
    if skip_bad and not answers.flag:
        raise UsageError(
            "a broken line in a run folder means that the folder is damaged",
            where=SKIP_BAD,
            expected=f"{SKIP_BAD} only with a file of answers",
            remedy=f"name the file: {answers.lines}",
        )
    corrected = read_all(errata, task)
    asking = recorded_task(answers.settings, task, given)
    every = profile == _ALL and _ALL not in asking.profiles
    rules = [get_profile(asking, name) for name in (asking.profiles if every else [profile])]
    source = asking.load(data, check_media=False, strict=strict)
    terminal.print_findings(source)
    runs.note_other_data(corrected, source)
    steps = answers.steps(source, asking)
    if any(choice.values()):
        excluded = read_exclude(exclude, source.steps) if exclude else frozenset[str]()
        steps = select(steps, where=where, exclude=excluded, limit=limit, task=asking)
    outs = [out / file_name(rule.name) if out and every else out for rule in rules]
    if out is not None:
        check_agent_folders(out, [place for place in outs if place], predictions)
    # Folders of profiles have their names, so the results name the agent.
    agent = model_name(answers.settings) or out.resolve().name if out and every else ""
    found: dict[str, dict[str, Any]] = {}
    differing: list[str] | None = None
    for rule, place in zip(rules, outs, strict=True):
        bad = BadLines(answers.lines, skip=skip_bad, flag=answers.flag)
        lines = read_counted(answers, source, asking, bad)
        if not found:
            lines = _check_media(lines, steps, allowed=changed_media, where=predictions)
        with TemporaryDirectory(prefix="omnidata-") as scratch:
            compared = published and rule.name == published.profile and not any(choice.values())
            if compared:  # the lines of scores are compared too
                place = place or Path(scratch)
            found[rule.name] = run(
                asking,
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
                errata=corrected,
            )
            if compared and published and place:
                differing = _differences(published, found[rule.name], place)
        if len(found) == 1:
            for line in bad.summary():
                terminal.note(line)
    first = found[rules[0].name]
    if every:
        options = {**answers.settings.get("options", {}), **given}
        runs.print_profiles(found, asking, as_json, options)
    else:
        runs.print_results(first, asking, as_json, steps)
    unread = first["outcomes"].get("unparsed") and not first["outcomes"].get("ok")
    said = any(reason["kind"] == "dialect" for reason in first.get("headline", ()))
    if unread and not said and not asking.options.get("dialect"):
        terminal.note(
            "no answer could be read. If the model answers in its own action format, name it with "
            "--dialect NAME (`omnidata info dialects` lists them)"
        )
    if published and differing is not None:
        _note_compared(published, found[published.profile], differing)
        return bool(differing)
    if published:
        _note_uncompared(published)
    return any(map(runs.is_doubtful, found.values()))


def _fetch_published(named: str, data: Path | None) -> tuple[str, Path, Path, Run]:
    """Return the task, the data, the folder and the scored run of a run on the Hub.

    Raises:
        DataError: it is no run, or its data cannot be downloaded.
        RunError: a file is broken, or the task or profile is unknown.
    """
    from omnidata.loaders.fetch import AUTO
    from omnidata.loaders.hub import copy_of, parse_address
    from omnidata.run.run_files import read_run
    from omnidata.run.run_info import ANSWERS, INFO, RESULTS, SCORES
    from omnidata.tasks import get_task
    from omnidata.tasks.common_options import OPTIONS

    address = parse_address(named)
    assert address is not None
    run = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    published = read_run(run)
    info = published.settings
    if not info:
        raise RunError(
            "the run has no run.json",
            where=named,
            expected="a run published with `omnidata push`",
            remedy="ask its publisher to push it again",
        )
    known = {*get_task(info["task"]).allowed, *OPTIONS}
    if unknown := sorted(info.get("options", {}).keys() - known):
        terminal.note(f"unknown options of the run, not checked: {', '.join(unknown)}"[:500])
    said = str(info.get("data") or "")
    # A published run must not open files of this machine: only the Hub is allowed.
    place = said if parse_address(said) else AUTO
    if data is None:
        terminal.note(f"its data: {place}")
        data = args.data_of(info["task"], Path(place))
    return info["task"], data, run, published


_NOT_SCORED = frozenset({"agent", "stopped", "places", "headline", "errata", "with_errata"})
"""Keys of results that depend on the command, not on the answers."""
_SHOWN = 20
"""Differences that are listed."""


def _differences(said: Run, found: Mapping[str, Any], scored: Path) -> list[str]:
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
        pairs = [(key, said.get(key), found.get(key)) for key in dict.fromkeys([*said, *found])]
        return [line for key, *pair in pairs for line in _unlike(f"{place}.{key}", *pair)]
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        both = enumerate(zip(said, found, strict=True))
        return [line for number, pair in both for line in _unlike(f"{place}.{number}", *pair)]
    if _is_same(said, found):
        return []
    return [f"{place:.200}: published {_brief(said)}, computed {_brief(found)}"]


def _brief(value: object) -> str:
    if isinstance(value, dict | list):
        return "something" if value else "nothing"
    return "nothing" if value is None else f"{value!s:.60}"


def _is_same(said: Any, found: Any) -> bool:
    if isinstance(said, bool) or isinstance(found, bool):
        return said is found
    try:
        return said == found or math.isclose(said, found, rel_tol=0, abs_tol=1e-9)
    except (TypeError, OverflowError):  # no number, or a huge one
        return False


def _note_compared(said: Run, found: Mapping[str, Any], differing: Sequence[str]) -> None:
    for line in differing[:_SHOWN]:
        terminal.note(line)
    if len(differing) > _SHOWN:
        terminal.note(f"and {len(differing) - _SHOWN:,} more")
    besides = ["the README", *sorted(said.results.keys() - (found.keys() - _NOT_SCORED))]
    terminal.note(f"not compared: {', '.join(besides)}"[:500])
    verb = "do not follow" if differing else "follow"
    terminal.note(f"the published results {verb} from the published answers")


def _note_uncompared(said: Run) -> None:
    terminal.note(
        "not compared: the published results are for all steps of the run and the profile "
        f"{said.profile}"
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


def _check_answers(
    scorer: OfflineScorer, usage: str, predictions: Path | None, profile: str | None
) -> None:
    if profile is not None and profile not in scorer.profiles:
        raise UsageError(
            f"the profile {profile} needs predictions",
            expected=f"{usage} PREDICTIONS",
            remedy=f"name predictions, or a profile without: {', '.join(scorer.profiles)}",
        )
    if predictions is None and scorer.needs_answers:
        raise UsageError("no predictions are named", expected=f"{usage} PREDICTIONS")
    if predictions is not None and not scorer.needs_answers:
        raise UsageError(
            f"{profile} takes no predictions: the data hold the records to score",
            where=str(predictions),
            expected=usage,
            remedy="drop the file, or name a profile for a model's answers",
        )


def _score_recorded(
    scorer: OfflineScorer,
    data: Path,
    answers: Path | None,
    profile: str | None,
    out: Path | None,
    actions: Path | None,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    from omnidata.files import staying_in
    from omnidata.run.scoring import agent_folders, check_agent_folders, write_scored
    from omnidata.storage import file_name

    given = actions or answers
    every = profile == _ALL and _ALL not in scorer.profiles
    names = [*scorer.profiles] if every else [profile or next(iter(scorer.profiles))]
    if names[0] not in scorer.profiles:
        raise UsageError(
            f"{names[0]} does not score records",
            where=f"--profile {names[0]}",
            expected=f"one of {', '.join(scorer.profiles)}",
        )
    found: dict[str, Sequence[Scored]] = {}
    doubts: list[Finding] = []
    for name in names:
        try:
            with staying_in(data, *filter(None, (actions, answers))):
                if actions:
                    scored, own = scorer.score_actions(data, actions, profile=name, strict=strict)
                else:
                    scored, own = scorer.score(data, answers, profile=name, strict=strict)
        except DataError as error:
            if strict or (name == names[-1] and not found):
                raise
            terminal.note(f"not scored by {name}: {error.what}")  # but perhaps by another one
            continue
        if given and all(one.results["outcomes"].keys() == {"missing"} for one in scored):
            raise UnansweredError(
                "no task of the data has an answer",
                where=str(given),
                expected="an answer to at least one task",
                remedy="name the file that holds the answers",
            )
        found[name] = scored
        doubts += [finding for finding in own if finding not in doubts]
    outs = {name: out and (out / file_name(name) if every else out) for name in found}
    if out is not None:
        places: dict[Path, Scored] = {}
        for name, scored in found.items():
            if place := outs[name]:
                agent = "" if place == out else out.resolve().name
                places |= agent_folders([_with_agent(one, agent) for one in scored], place)
        check_agent_folders(out, list(places), given)
        for place, one in places.items():
            write_scored(place, one)
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


def _with_agent(scored: Scored, name: str) -> Scored:
    if scored.agent or not name:
        return scored
    return replace(scored, results={**scored.results, "agent": name})


def _as_json(scored: Sequence[Scored]) -> Mapping[str, Any]:
    one = scored[0].results
    return one if len(scored) == 1 else {each.agent: each.results for each in scored}


def _print_ranking(scorer: OfflineScorer, scored: Sequence[Scored], profile: str) -> None:
    from omnidata.analysis.rollouts import ranking
    from omnidata.table_formats import text

    results = {one.agent: one.results for one in scored}
    table = ranking(
        results,
        scorer,
        profile,
        names={agent: agent for agent in results},
        head=f"Agents: {scored[0].results['task']} by {profile}",
        tried={one.agent: {line["sample_id"] for line in one.lines} for one in scored},
    )
    terminal.say(text(table, width=terminal.columns_of_stdout()) + "\n")
