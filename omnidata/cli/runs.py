"""Printing of runs: tables, missing answers, and the command that resumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.cli import terminal
from omnidata.errors import plural

if TYPE_CHECKING:
    from omnidata.metrics.paired import Unit
    from omnidata.run.errata import Errata
    from omnidata.run.evaluate import Count
    from omnidata.run.suite import Outcome
    from omnidata.tasks.asking import Asking
    from omnidata.tasks.profile import Profile
    from omnidata.types import LoadedDataset, Step

_SIZES = ("steps", "without_usable_target")
_ANSWERED = ("ok", "unparsed")
"""Outcomes of steps that got an answer."""


@contextmanager
def counting() -> Iterator[Count]:
    """Print, after the block, how many steps were asked and how many answers were reused.

    Yield the function that takes each run's counts. Without any, nothing is printed.
    """
    found: list[tuple[int, int]] = []
    try:
        yield lambda asked, reused: found.append((asked, reused))
    finally:
        if found:
            asked, reused = map(sum, zip(*found, strict=True))
            terminal.note(f"asked {asked}, reused {reused}")


def lacking(results: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of steps without an answer, and with an answer to some of their media.

    Steps after the end of a rollout are not counted.
    """
    failed = sum(n for outcome, n in results["outcomes"].items() if outcome not in _ANSWERED)
    failed -= results.get("patched", {}).get("not_asked", 0)
    return failed, results["counts"].get("degraded", 0)


def is_doubtful(results: Mapping[str, Any]) -> bool:
    """Return whether the numbers should not be published as they are (exit code 1)."""
    return any(lacking(results)) or bool(results.get("headline"))


def _headline(results: Mapping[str, Any]) -> str:
    """Return how many steps have no full answer, for a table's headline; empty if none.

    Examples:
        >>> _headline({"outcomes": {"ok": 14, "missing": 135}, "counts": {}})
        '135 of 149 steps have no full answer (135 missing) and count as wrong'
    """
    failed = lacking(results)[0]
    if not failed:
        return ""
    steps = sum(results["outcomes"].values())
    kinds = {name: n for name, n in results["outcomes"].items() if name not in _ANSWERED}
    if "missing" in kinds:
        kinds["missing"] -= results.get("patched", {}).get("not_asked", 0)
    told = ", ".join(f"{n} {name}" for name, n in kinds.items() if n)
    has, count = ("has", "counts") if failed == 1 else ("have", "count")
    return f"{failed} of {plural(steps, 'step')} {has} no full answer ({told}) and {count} as wrong"


def legend_of(profile: Profile) -> Mapping[str, str]:
    """Return the meanings of the profile's column names, if it has any."""
    return {name: profile.legend[name] for name in profile.columns if name in profile.legend}


def episode_metrics(profile: Profile) -> list[str]:
    """Return the profile's columns over whole episodes, if it declares them."""
    return [
        name for name in profile.columns if profile.metrics.get(name, "").startswith(("SR", "GP"))
    ]


def print_results(
    results: Mapping[str, Any], task: Asking, as_json: bool, steps: Sequence[Step] = ()
) -> None:
    """Print results as a table or as JSON.

    Args:
        results: the content of `results.json`.
        task: the benchmark.
        as_json: as JSON.
        steps: the steps of the run, which the intervals are over; empty if unknown.
    """
    if as_json:
        terminal.print_headline(results, to=terminal.note)
        if lacks := _headline(results):
            terminal.note(lacks)
        terminal.print_json(results)
    else:
        profile = task.profiles[results["profile"]]
        named = legend_of(profile), episode_metrics(profile)
        terminal.print_results(results, profile.columns, *named, lacks=_headline(results))
        print_errata(results, profile)
        if line := _format_resampling(results, steps):
            terminal.note(line)


def print_errata(results: Mapping[str, Any], profile: Profile) -> None:
    """Print the totals without and with errata side by side, and the effect of each errata."""
    if "with_errata" not in results:
        return
    usual, corrected = results, results["with_errata"]
    rows = [
        [
            name,
            *terminal.cells(each["overall"], profile.columns),
            *(str(each["counts"][size]) for size in ("steps",) if size in each["counts"]),
        ]
        for name, each in (("without errata", usual), ("with errata", corrected))
    ]
    names = ", then ".join(f"{one['name']} {one['version']}" for one in results["errata"])
    sizes = ("steps",) if "steps" in usual["counts"] else ()
    title = f"{results['task']} by {results['profile']} (%), errata: {names}"
    terminal.print_table(title, ("", *profile.columns, *sizes), rows)
    for line in map(_format_effect, results["errata"]):
        terminal.note(line)


def _format_effect(one: Mapping[str, Any]) -> str:
    unknown = one.get("unknown")
    return (
        f"errata {one['name']} {one['version']} ({one['hash'][:12]}): "
        f"{plural(one['steps'], 'step')}, {plural(one['verdicts_changed'], 'verdict')} changed "
        f"({one['now_right']} now right, {one['now_wrong']} now wrong), {one['dropped']} dropped"
        + (f", {plural(unknown, 'id')} not in the data" if unknown else "")
    )


def note_other_data(errata: Sequence[Errata], source: LoadedDataset) -> None:
    """Print which errata were made for data with another fingerprint."""
    for one in errata:
        if one.fingerprint and one.fingerprint != source.fingerprint:
            terminal.note(
                f"errata {one.name} {one.version} were made for other data: fingerprint "
                f"{one.fingerprint[:16]}, and {source.fingerprint[:16]} of {source.root}"
            )


def _format_resampling(results: Mapping[str, Any], steps: Sequence[Step]) -> str:
    episodes = {step.episode for step in steps}
    groups = {step.group for step in steps}
    if len(groups) >= len(episodes) or len(episodes) != results["counts"].get("episodes"):
        return ""
    return (
        f"95 % intervals: {plural(len(episodes), 'episode')} form {plural(len(groups), 'group')} "
        "of related episodes; the bootstrap resamples groups"
    )


_MEANT: Mapping[str, str] = {
    "GP_ratio": "goal progress: the share of an episode's steps that are right",
    "GP_prefix": "goal progress: the share of an episode's steps before the first wrong one",
}


def _headers(profiles: Sequence[Profile]) -> list[dict[str, str]]:
    """Return by profile the header of each column: its metric, if the name has several meanings."""
    metrics = [
        {name: each.metric_of(name) if name in each.metrics else name for name in each.columns}
        for each in profiles
    ]
    meanings: dict[str, set[str]] = {}
    for own in metrics:
        for name, metric in own.items():
            meanings.setdefault(name, set()).add(metric)
    return [
        {name: metric if len(meanings[name]) > 1 else name for name, metric in own.items()}
        for own in metrics
    ]


def print_profiles(
    found: Mapping[str, Mapping[str, Any]],
    task: Asking,
    as_json: bool,
    options: Mapping[str, str] = {},
) -> None:
    """Print one run by every profile, side by side, with the profiles' sources and gaps.

    A metric that means different things in two profiles has a column for each meaning.

    Args:
        found: the results by profile.
        task: the benchmark.
        options: of the task when the answers were requested, as far as known.
        as_json: as an object of results, each with its profile's `source` and `leaves_out`.
    """
    about = {
        name: {key: getattr(task.profiles[name], key, "") for key in ("source", "leaves_out")}
        for name in found
    }
    terminal.print_headline(*found.values(), to=terminal.note if as_json else terminal.say)
    if as_json:
        terminal.print_json({name: {**results, **about[name]} for name, results in found.items()})
        return
    units = {name: task.profiles[name].columns for name in found}
    headers = dict(zip(found, _headers([task.profiles[name] for name in found]), strict=True))
    columns = dict.fromkeys(header for of in headers.values() for header in of.values())
    rows = []
    for name, results in found.items():
        headed = headers[name].values()
        values = dict(zip(headed, terminal.cells(results["overall"], units[name]), strict=True))
        ends = {
            headers[name][column]: terminal.interval(results["ci95"][column], unit)
            for column, unit in units[name].items()
        }
        counts = results["counts"]
        left_out = str(counts.get("without_usable_target", 0))
        rows.append([name, *(values.get(each, "-") for each in columns)])
        rows[-1] += [str(counts["steps"]), left_out]
        rows.append(["  95 % interval", *(ends.get(each, "") for each in columns), "", ""])
        if with_errata := results.get("with_errata"):
            own = terminal.cells(with_errata["overall"], units[name])
            values = dict(zip(headed, own, strict=True))
            rows.append(["  with errata", *(values.get(each, "-") for each in columns)])
            rows[-1] += [str(with_errata["counts"].get(key, 0)) for key in _SIZES]
    known = ", ".join(f"{name}={value}" for name, value in options.items() if value)
    title = " ".join(filter(None, (task.name, known and f"({known})")))
    legend = {
        headers[each][name]: _MEANT.get(headers[each][name], words)
        for each in found
        for name, words in legend_of(task.profiles[each]).items()
    }
    header = ("", *columns, "steps", "left out")
    lacks = max(found.values(), key=lambda results: sum(results["outcomes"].values()))
    title = ": ".join(filter(None, (f"{title} by every profile (%)", _headline(lacks))))
    terminal.print_table(title, header, rows, legend)
    for name, said in about.items():
        leaves_out = said["leaves_out"] and f"leaves out: {said['leaves_out']}"
        terminal.say(f"{name}: {'; '.join(filter(None, (said['source'], leaves_out))) or '-'}")
    for name, results in found.items():
        line = terminal.outcome_line(results, episode_metrics(task.profiles[name]))
        terminal.note(f"{name}: {line}")
        for one in results.get("errata", ()):
            terminal.note(f"{name}: {_format_effect(one)}")


def print_samples(table: Mapping[str, Any], task: Asking) -> None:
    """Print the joint results of several answers per step (`omnidata.run.sampling`)."""
    share: Mapping[str, Unit] = {"pass@k": "share", "pass^k": "share"}
    with_errata = table.get("with_errata", {"k": {}})["k"]
    rows = [
        [
            label,
            *terminal.cells(row, share),
            *[terminal.interval(row["ci95"][name], unit) for name, unit in share.items()],
        ]
        for k, usual in table["k"].items()
        for label, row in ((f"k = {k}", usual), ("  with errata", with_errata.get(k)))
        if row
    ]
    heads = [f"{name} {told}" for told in ("", "95 % interval") for name in share]
    terminal.print_table(
        f"{plural(table['samples'], 'sample')} of {plural(table['steps'], 'step')} (%)",
        ("", *(head.strip() for head in heads)),
        rows,
    )
    units = task.profiles[table["profile"]].columns
    chosen = [(name, table[name]) for name in ("majority", "best") if name in table]
    terminal.print_table(
        "one answer chosen per step (%)",
        ("", *units, "steps", "run"),
        [
            [label, *terminal.cells(of["overall"], units), str(each["steps"]), each["run"]]
            for name, each in chosen
            for label, of in ((name, each), ("  with errata", each.get("with_errata")))
            if of
        ],
    )
    agreed = table["agreement"]["agreement"]
    told = "-" if agreed is None else f"{agreed:.1%}"
    terminal.say(f"agreement: {told} of the pairs of answers to a step are the same action")
    sure = table["calibration"]
    if sure["rows"]:
        terminal.say(
            f"votes as confidence in the majority: ECE {sure['ece']:.3f}, Brier "
            f"{sure['brier']:.3f}, AURC {sure['aurc']:.3f}; samples.json has the curves"
        )
    if unscored := table.get("best", {}).get("unscored"):
        terminal.note(f"the verifier has no score for {plural(unscored, 'answer')}")
    if "cost" in table["usage"]:
        terminal.say(f"cost of all samples: {_format_cost(table['usage'])}")
    if failed := {name: n for name, n in table["deliveries"].items() if name != "ok"}:
        told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in failed.items())
        terminal.note(f"missing answers count as wrong in pass@k: {told}")
    if table["samples"] < table["asked_for"]:
        terminal.note(f"{table['samples']} of {table['asked_for']} samples are complete")


def note_outcome(outcome: Outcome) -> None:
    """Print the outcome of a suite's run in one line."""
    said, planned = f"failed: {outcome.error}", outcome.planned
    if planned.note:
        terminal.note(planned.note)
    if outcome.results:
        profile = planned.asking.profiles[outcome.results["profile"]]
        said = terminal.outcome_line(outcome.results, episode_metrics(profile))
    counts = f"asked {outcome.asked}, reused {outcome.reused}"
    terminal.note(f"{planned.out}: {counts}; {said}")


def note_cost(run: Path) -> None:
    """Print the cost of a run, if prices are known, and the number of answers without one."""
    from omnidata.run.run_info import read_info

    usage = read_info(run).get("usage") or {}
    if "cost" in usage:
        terminal.note(f"cost: {_format_cost(usage)}")


def _format_cost(usage: Mapping[str, Any]) -> str:
    cost = f"{terminal.money(usage['cost'])} {usage.get('currency', '')}"
    if unknown := usage.get("unmetered"):
        cost += f", without {plural(unknown, 'answer')} of unknown tokens"
    return cost


def print_run(
    results: Mapping[str, Any],
    task: Asking,
    out: Path,
    as_json: bool,
    source: LoadedDataset | None = None,
) -> None:
    """Print the results of a run, its folder, and how to resume it if it stopped."""
    from omnidata.run.recorded import recorded_steps
    from omnidata.run.run_info import read_info

    print_results(
        results,
        task,
        as_json,
        recorded_steps(read_info(out), source, out) if source and not as_json else (),
    )
    terminal.note(f"run folder: {out}")
    note_cost(out)
    if failed := lacking(results)[0]:
        wrong = "counts as wrong" if failed == 1 else "count as wrong"
        final = sum(results["outcomes"].get(each, 0) for each in ("refused", "truncated"))
        again = "the same command asks again"
        if final:
            again += f" about {failed - final} of them" if final < failed else " about none of them"
            again += ": refused and truncated answers are final"
        terminal.note(f"{plural(failed, 'step')} got no full answer and {wrong}; {again}")
    if stopped := results.get("stopped"):
        terminal.note(f"the run stopped: {stopped}")
        terminal.note(f"the same command resumes: {terminal.command()}")


# What `--dry-run` prints.


def print_preview(seen: Mapping[str, Any], as_json: bool) -> None:
    """Print the first conversation and the estimate (see `omnidata.run.dry_run`) on stdout."""
    if as_json:
        terminal.print_json(seen)
        return
    terminal.say(f"first conversation, for {seen['model']} and {seen['sample_id']}:")
    for message in seen["conversation"]:
        terminal.say(f"--- {message['role']}")
        for part in message["parts"]:
            terminal.say(part["text"] if "text" in part else _medium(part))
    terminal.say("--- estimate")
    terminal.say(f"steps: {seen['steps']}, {seen['answered']} already answered")
    if seen["model"].startswith("baseline:"):
        terminal.say("to send: nothing, a baseline answers on this machine without a model")
    else:
        terminal.say(f"requests: {seen['requests']}")
        terminal.say(
            f"to send: {seen['bytes']:,} bytes (average of {plural(seen['prepared'], 'step')})"
        )
        print_estimate(seen)
    for problem in seen["unreadable"]:
        terminal.note(f"cannot be sent: {problem}")
    terminal.note("dry run: nothing was sent or written")


def print_estimate(found: Mapping[str, Any], at: str = "") -> None:
    """Print the tokens and the cost of requests, as far as they are known.

    Args:
        found: may have "tokens" and "cost".
        at: the price, if it is not the usual one.
    """
    if tokens := found.get("tokens"):
        terminal.say(
            f"tokens: {tokens['input']:,} of input, {tokens['output']:,} of output "
            f"({tokens['how']})"
        )
    if cost := found.get("cost"):
        price = f"prices of {cost['prices_of']}{at}, for these tokens"
        terminal.say(f"cost: {terminal.money(cost['amount'])} {cost['currency']} ({price})")


def _medium(part: Mapping[str, Any]) -> str:
    """Describe a medium in one line.

    Examples:
        >>> _medium({"role": "video", "kind": "video", "path": "a/1.mp4", "as": "frames",
        ...          "mime": "image/png", "width": 720, "height": 1600, "frames": 2,
        ...          "times_s": [0.0, 1.5], "bytes": 91234})
        '[video a/1.mp4: 2 frames at 0.0, 1.5 s, image/png, 720x1600, 91,234 bytes]'
        >>> _medium({"role": "audio", "kind": "audio", "path": "a/1.wav", "dropped": "no ears"})
        '[audio a/1.wav: left out: no ears]'
    """
    said: list[str] = []
    if "dropped" in part:
        said.append(f"left out: {part['dropped']}")
    elif "frames" in part:
        times = ", ".join(map(str, part.get("times_s", ())))
        said.append(f"{plural(part['frames'], 'frame')} at {times} s")
    elif "as" in part:
        said.append(part["as"])
    if "mime" in part:
        said.append(part["mime"])
    if part.get("width"):
        said.append(f"{part['width']}x{part['height']}")
    if "scale" in part:
        said.append(f"scaled by {part['scale']:.3f}")
    if "seconds" in part:
        said.append(f"{part['seconds']:.2f} s")
    if "bytes" in part:
        said.append(f"{part['bytes']:,} bytes")
    head = " ".join(filter(None, (part.get("role") or part["kind"], part.get("path"))))
    return f"[{head}: {', '.join(said)}]" if said else f"[{head}]"
