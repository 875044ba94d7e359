"""`omnidata score` of records of an environment: completed subtasks and success, without a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnidata.cli import terminal
from omnidata.errors import DataError, Finding, UnansweredError, UsageError

if TYPE_CHECKING:
    from omnidata.tasks.rollouts import OfflineScorer, Scored

ALL: Final = "all"
"""Stands for all profiles."""


def find_scorer(
    task: str,
    task_options: Mapping[str, str],
    usage: str,
    *,
    predictions: Path | None,
    actions: Path | None,
    profile: str | None,
    has_log: bool,
) -> OfflineScorer | None:
    """Return the scorer of records if records are scored; None for answers of a model.

    Args:
        task: the benchmark.
        task_options: as given with `-T`.
        usage: of the verb, for messages.
        predictions: the file or folder, as the user named it.
        actions: the log of actions, likewise.
        profile: its name, which decides; without one, the form of the file does.
        has_log: whether the predictions are the log of another program.

    Raises:
        UsageError: the scorer does not take the predictions, or actions, by this profile.
    """
    from omnidata.tasks import get_task

    scorer = get_task(task).benchmark.rollouts
    own = {name: task_options[name] for name in task_options if scorer and name in scorer.options}
    if own:
        scorer = get_task(task, own).benchmark.rollouts
    if actions is not None and (predictions is not None or scorer is None):
        raise UsageError(
            "PREDICTIONS and --actions exclude each other"
            if scorer
            else f"{task} has no evaluator of actions",
            where=f"--actions {actions}",
            expected=f"{usage} --actions LOG" if scorer else f"{usage} ANSWERS",
        )
    is_undecided = profile in (None, ALL) and not has_log
    has_records = predictions is None or (is_undecided and scorer and scorer.takes(predictions))
    if scorer is None or not (has_records or profile in scorer.profiles):
        return None
    if actions is None:
        _check_answers(scorer, usage, predictions, None if profile == ALL else profile)
    return scorer


def refuse_for_records(options: Mapping[str, object]) -> None:
    """Refuse options that are for answers of a model alone.

    Args:
        options: as the user wrote them, with their values; false if not given.

    Raises:
        UsageError: one of them is given.
    """
    if refused := [name for name, value in options.items() if value]:
        raise UsageError(
            "this option is for answers of a model, and records of an environment are scored",
            where=refused[0],
            expected="no task options, no choice of steps, no log, no --workers, no --engine",
            remedy="drop it, or name a file of the model's answers",
        )


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


def score_recorded(
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
    """Score records by one profile, or by all, and print the results.

    Args:
        scorer: of the benchmark.
        data: the dataset.
        answers: the records; None if the data hold them.
        profile: its name, or "all"; the first of the scorer's if None.
        out: the folder for scores and results; None to write none.
        actions: a log of actions, in place of the answers.
        strict: whether findings are an error.
        as_json: print JSON.

    Raises:
        UsageError: the profile is for answers of a model.
        UnansweredError: no task of the data has an answer.
        DataError: no profile can score the records.
    """
    from omnidata.files import staying_in
    from omnidata.run.scoring import agent_folders, check_agent_folders, write_scored
    from omnidata.storage import file_name

    given = actions or answers
    every = profile == ALL and ALL not in scorer.profiles
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
        tables = {name: _as_json(scored) for name, scored in found.items()}
        terminal.print_json(tables if every else tables[names[0]])
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
