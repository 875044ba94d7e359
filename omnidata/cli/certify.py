"""`omnidata certify`: check that a server passes its inputs to the model unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, flag, option, verb
from omnidata.errors import plural

if TYPE_CHECKING:
    from omnidata.certify import Certificate


@verb()
def certify(
    *,
    model: str = argument("The model, e.g. openai:NAME.", "SPEC"),
    out: Path = option("The folder of media, replies and the certificate.", "DIR", default=...),
    against: str | None = option(
        "Ask a reference as well, e.g. hf:PATH of the same weights, and compare.", "SPEC"
    ),
    dialect: str | None = option(
        "Ask for positions in the action format of a model family, e.g. qwen3.", "NAME"
    ),
    coordinates: str = option(
        "Unit of positions in plain questions: px, norm1000 or rel.", "UNIT", default="px"
    ),
    modalities: str = option(
        "Modalities to send in addition to text: I (pictures), V (clips), A (sound).",
        "LETTERS",
        default="I,V,A",
    ),
    asking: args.AskedModel,
    dry_run: bool = flag("Count the requests; send nothing.", "--dry-run"),
    as_json: args.Json = False,
) -> bool:
    """Check a server with probes of known answers, and name its faults.

    The probes are pictures, clips, sounds and texts. Each passes, fails with its cause and fix, or
    is unclear, e.g. because the model is too weak. DIR/certificate.json and .html have all results;
    later runs of the same model at the same address record them. The same command resumes an
    interrupted call. Exit code 1: a probe fails.

    Example: omnidata certify openai:NAME --base-url http://127.0.0.1:8000/v1 --out certificate
    """
    from omnidata.certify import certify as ask
    from omnidata.certify import count_requests

    if dry_run:
        counts = count_requests(modalities)
        total = sum(counts.values()) * (2 if against else 1)
        if as_json:
            terminal.print_json({"requests": total, "probes": counts})
            return False
        rows = [[name, str(count)] for name, count in counts.items()]
        terminal.print_table("requests", ("probe", "requests"), rows)
        terminal.say(f"{plural(total, 'request')} in all")
        return False
    with terminal.resumable(), terminal.progress(model) as progress:
        found = ask(
            asking.recipe(model),
            out,
            against=asking.recipe(against) if against else None,
            dialect=dialect or "",
            coordinates=coordinates,
            modalities=modalities,
            limits=asking.limits,
            progress=progress,
        )
    if as_json:
        terminal.print_json(found.as_dict())
    else:
        _print(found)
        terminal.note(f"written: {out / 'certificate.json'} and .html")
    return bool(found.faults)


def _print(found: Certificate) -> None:
    rows = []
    for finding in found.findings:
        state = finding.state.upper() if finding.state == "fail" else finding.state
        right = f"{finding.right}/{finding.asked}" if finding.asked else ""
        agreed = terminal.percent(found.agreement.get(finding.probe))
        cells = (finding.probe, state, right, *([agreed] if found.reference else []))
        rows.append((*cells, finding.why or finding.claim))
    header = ("probe", "", "right", *(["agreed"] if found.reference else []), "what")
    terminal.say(f"{found.model}, {found.date}")
    terminal.print_folded(header, rows)
    for fix in dict.fromkeys(finding.fix for finding in found.faults):
        terminal.say(f"fix: {fix}")
    if found.differs:
        terminal.say(
            f"first difference, {found.differs['question']}: {found.differs['model']!r:.80}, "
            f"reference {found.differs['reference']!r:.80}"
        )
    states = [finding.state for finding in found.findings]
    terminal.say(
        f"{states.count('pass')} pass, {states.count('fail')} fail, {states.count('unclear')} "
        f"unclear, {states.count('left out')} left out; {plural(found.requests, 'request')}, "
        f"{found.tokens:,} tokens"
    )
