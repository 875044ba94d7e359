"""`omnidata segment`: a screen recording and an action log become an episode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, option, verb
from omnidata.errors import UsageError, plural
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.loaders.instructions import Language

if TYPE_CHECKING:
    from omnidata.data.segment.many import Done
    from omnidata.run.engines import Cluster


@verb(args.listing_findings)
def segment(
    *,
    places: list[Path] = argument(
        "The screen recording, e.g. an MP4; its action log (JSON lines, or the folder "
        "of a supported recorder); a new folder for the dataset. With --list only OUT.",
        "RECORDING EVENTS OUT",
    ),
    recordings: Path | None = option(
        'Cut many recordings: JSON lines of {"recording": FILE, "events": FILE} and these '
        "options by name, e.g. instruction_en.",
        "FILE",
        name="--list",
    ),
    offset: float = option("Add this to every time in the log.", "SECONDS", default=0.0),
    lead: float | None = option(
        "Take the screenshot this long before the action. Default: 0.5.", "SECONDS"
    ),
    max_clip: float | None = option(
        "Cut longer clips to their last seconds. Default: 10.", "SECONDS"
    ),
    trim: str | None = option("Use only this part of the recording, in seconds.", "START:END"),
    until: str | None = option(
        "Hold the last frame until then, for recorders that write a frame only when the "
        "screen changes.",
        "SECONDS|last-action",
    ),
    app: str | None = option("Name of the app; overrides the log."),
    episode: str | None = option("Name of the episode. Default: the recording's name.", "ID"),
    instruction_en: str | None = option("The instruction in English.", "TEXT"),
    instruction_zh: str | None = option("The instruction in Chinese.", "TEXT"),
    dimension: Dimension | None = option(
        "The cognitive dimension: localization (the default), semantic_understanding, "
        "cross_modal_discrimination, temporal_reasoning or instant_response.",
        "NAME",
    ),
    dependency: Dependency | None = option("How much the task depends on video and audio."),
    language: Language | None = option(
        "Language of the app. Default: that of the only instruction."
    ),
    workers: int | None = option("With --list: number of processes. Default: one per core.", min=1),
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Cut a screen recording and its action log into an episode of steps.

    Each action gets the screenshot just before it, and the clip and audio since the previous
    action, in OmniGUI's layout. docs/segment.md describes the log. The same command resumes an
    interrupted list. Exit code 1: some actions or recordings are left out; the findings list them.

    Example: omnidata segment recording.mp4 actions.jsonl data --app TED --instruction-en "Like it."
    """
    from omnidata.data.segment import segment as run
    from omnidata.data.segment.many import Done, read_list, segment_all
    from omnidata.data.segment.plan import cut_of
    from omnidata.loaders.action_log import Labels

    _check(places, recordings, episode, workers, cluster)
    cut = cut_of("--".__add__, offset=offset, lead=lead, max_clip=max_clip, trim=trim, until=until)
    labels = Labels(
        app=app,
        episode=episode,
        instruction_en=instruction_en,
        instruction_zh=instruction_zh,
        dimension=dimension,
        dependency=dependency,
        language=language,
    )
    out = places[-1]
    if recordings is None:
        with terminal.progress("cutting") as progress:
            done = Done.of(run(*places, labels=labels, cut=cut, progress=progress))
        findings = list(done.findings)
        if as_json:
            terminal.print_json({"out": str(out), **done.as_dict()})
        else:
            _print([done])
    else:
        jobs = read_list(recordings, labels=labels, cut=cut)
        with terminal.resumable(), terminal.progress("recordings") as progress:
            made = segment_all(jobs, out, workers=workers, cluster=cluster, progress=progress)
        findings = [*made.findings, *(each for _, done in made.episodes for each in done.findings)]
        if as_json:
            episodes = [
                {"recording": str(job.recording), **done.as_dict()} for job, done in made.episodes
            ]
            left_out = [finding.as_dict() for finding in made.findings]
            terminal.print_json({"out": str(out), "episodes": episodes, "findings": left_out})
        else:
            _print([done for _, done in made.episodes])
            terminal.print_kinds(made.findings)
            steps = sum(done.steps for _, done in made.episodes)
            terminal.say(
                f"{plural(len(made.episodes), 'episode')}, {plural(steps, 'step')}; "
                f"{plural(len(made.findings), 'recording')} left out"
            )
    if not as_json:
        terminal.note(f"dataset: {out}")
    return any(finding.severity == "error" for finding in findings)


def _check(
    places: Sequence[Path],
    recordings: Path | None,
    episode: str | None,
    workers: int | None,
    cluster: Cluster | None,
) -> None:
    wanted = 3 if recordings is None else 1
    if len(places) != wanted:
        raise UsageError(
            f"{plural(len(places), 'argument')} in place of {wanted}",
            where=" ".join(map(str, places)),
            expected="RECORDING EVENTS OUT, or --list FILE OUT",
        )
    if recordings is not None and episode is not None:
        raise UsageError(
            "one name cannot serve many episodes",
            where=f"--episode {episode}",
            expected='names in the list: {"recording": FILE, "events": FILE, "episode": ID}',
        )
    if recordings is None and (workers or cluster):
        raise UsageError(
            "one recording is cut by one process",
            where=f"--workers {workers}" if workers else "--engine ray",
            expected="--list FILE as well",
        )


def _print(episodes: Sequence[Done]) -> None:
    for done in episodes:
        terminal.print_kinds(done.findings)
        line = f"{done.labels.app}/{done.labels.episode}: {plural(done.steps, 'step')}, "
        line += f"{done.clip_seconds:.1f} s of clips "
        line += f"from a recording of {done.recording_seconds:.1f} s"
        if done.trimmed:
            line += f"; {plural(done.trimmed, 'action')} outside --trim"
        terminal.say(line)
