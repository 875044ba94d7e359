"""`omnidata audit`: the score of guesses that see no media."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import option, verb
from omnidata.errors import plural

if TYPE_CHECKING:
    from omnidata.analysis.audit import Report
    from omnidata.tasks.published import BestScores

_MANY = 5000


@verb(args.reading_data, args.listing_findings)
def audit(
    task: args.TaskName,
    data: args.Data,
    task_options: args.TaskOptions,
    profile: args.Profile = None,
    seed: int = option("Seed of folds, shuffles and sampled answers.", min=0, default=0),
    workers: int | None = option(
        "Number of processes for the shuffles. Default: 1, from 5,000 steps on one per "
        "core, with ray all that fit.",
        min=1,
    ),
    *,
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Test if answers leak: score guesses that see no media.

    Scores constant answers, and simple classifiers trained on the form of the prompt: the number
    and order of its parts, lengths, texts shared by prompts. The best published score by the
    same rules is shown for comparison. Exit code 1: the form predicts the answer; docs/audit.md has
    the rule.

    Example: omnidata audit omnigui omnidata-demo/data
    """  # fmt: skip
    import msgspec

    from omnidata.analysis.audit import audit as run
    from omnidata.run.scoring import get_profile
    from omnidata.tasks import get_task

    asking = get_task(task, task_options)
    rules = get_profile(asking, profile)
    source = asking.load(data, check_media=False)
    terminal.print_findings(source)
    with terminal.progress("shuffles") as progress:
        few = len(source.steps) < _MANY  # are done before processes have begun
        report = run(
            asking,
            source.steps,
            rules,
            seed=seed,
            workers=1 if workers is None and few else workers,
            cluster=cluster,
            progress=progress,
        )
    found: BestScores | None = asking.benchmark.paper.published().best(asking.options)
    best = found if found and found.has_rules_of(report.profile) else None
    if as_json:
        terminal.print_json({**report.as_dict(), "published": best and msgspec.to_builtins(best)})
    else:
        _print_table(report, best, rules.columns)
        if found and not best:
            sources = " and ".join(dict.fromkeys(one.table for one in found.metrics.values()))
            profiles = " or ".join(found.profiles)
            terminal.note(
                f"Not shown: the best published scores ({sources}), scored by the rules of "
                f"{profiles}. Fix: add --profile {profiles}."
            )
        _print_verdict(report, best)
    return report.leak


def _print_table(report: Report, best: BestScores | None, columns: terminal.Columns) -> None:
    rows = []
    kinds = {"constant": "best constant: ", "learned": "learned: "}
    for rule in report.rules:
        name = kinds.get(rule.kind, "") + rule.name
        rows.append([name, *terminal.cells(rule.overall, columns)])
        spans = [terminal.interval(rule.ci95[name], unit) for name, unit in columns.items()]
        rows.append(["  95 % interval", *spans])
    if best:
        scores = {
            name: best.metrics[name].score if name in best.metrics else None for name in columns
        }
        rows.append(["best published", *terminal.cells(scores, columns)])
    title = f"{report.task} without media, by {report.profile} (%)"
    terminal.print_table(title, ("", *columns), rows)
    terminal.note(
        f"{report.judged} of {plural(report.steps, 'step')} judged, "
        f"{plural(report.groups, 'group')} of near-duplicates"
    )
    if best:
        others = "" if best.steps == report.steps else f", on {plural(best.steps, 'other step')}"
        for name, metric in best.metrics.items():
            terminal.note(f"best published {name}: {metric.model}, {metric.table}{others}")


def _print_verdict(report: Report, best: BestScores | None) -> None:
    without, learned = report.unlearned, report.learned
    metric = report.metric or report.value
    blind = without
    mark = f"{terminal.percent(without.metric)} ({without.name})"
    if learned is None:
        terminal.say(
            "not tested for a leak: too few groups, or nearly all steps have one answer or one form"
        )
    elif report.chance is None:
        terminal.say(f"no leak found: no classifier exceeds {metric} {mark}")
    else:
        found = report.chance
        terminal.say(
            f"{'LEAK' if report.leak else 'no leak found'}: {learned.name} has {metric} "
            f"{terminal.percent(learned.metric)}; the best untrained guess has {mark}, "
            f"the best of {found.shuffles} shuffles {terminal.percent(found.highest)}, "
            f"p = {found.p:.3f}"
        )
    if report.leak and learned:
        blind = learned
        for name, share in report.carriers.items():
            terminal.say(f"  {terminal.percent(share)} with this feature alone: {name}")
        terminal.say(report.tree.rstrip())
    top = best.metrics.get(report.metric) if best else None
    if top and blind.metric > top.score:
        terminal.say(
            f"{blind.name} exceeds the best published {metric}, {terminal.percent(top.score)} "
            f"({top.model}): that score does not show that a model uses the media"
        )
