"""Ask a model all probes, and write the certificate."""

from __future__ import annotations

import datetime
import platform
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from omnidata.actions import Point
from omnidata.adapters.keys import without_credentials
from omnidata.certify.benchmark import Probes
from omnidata.certify.findings import (
    MOST,
    Finding,
    Reply,
    compare_tokens,
    doubt_faults,
    judge_probe,
    leave_out,
    pair_replies,
)
from omnidata.certify.page import write_page
from omnidata.certify.probes import Probe
from omnidata.dialects import UnreadError, get_dialect
from omnidata.errors import UnansweredError, UnansweredWarning, UsageError
from omnidata.jsontext import hash_of
from omnidata.predictions import Prediction, parts, read_final
from omnidata.remote import cache_folder
from omnidata.run.asker import OpenModel, Recipe
from omnidata.run.certificates import MODALITIES, Certified, store_certificate
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.evaluate import UNLIMITED, evaluate
from omnidata.run.run_info import ANSWERS
from omnidata.storage import atomic_write, write_json
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_in_dialect import AskingInDialect, unit_for
from omnidata.tasks.coordinates import resizing
from omnidata.types import Adapter, GenerationParams, LoadedDataset, Modality, Progress, Step

FILE, PAGE = "certificate.json", "certificate.html"
_GREEDY: Final = {"temperature": 0.0, "max_new_tokens": 512}


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The results of all probes of a model behind a server.

    Attributes:
        model: the SPEC.
        settings: of the model, without keys.
        dialect: of the prompts about places; empty for plain words.
        coordinates: the unit of places.
        modalities: those that a probe passes, beside text.
        date: when the probes were asked, ISO 8601 in UTC.
        versions: of omnidata and Python.
        findings: one for each probe.
        requests: how many questions were asked.
        tokens: of all prompts and answers, as the server counts them.
        reference: the SPEC of the reference; empty without one.
        agreement: probe -> the share of questions to which both give the same answer.
        differs: the id and both answers of the first question that they answer differently; empty
            if there is none.
    """

    model: str
    settings: Mapping[str, Any]
    dialect: str
    coordinates: str
    modalities: Sequence[Modality]
    date: str
    versions: Mapping[str, str]
    findings: Sequence[Finding]
    requests: int
    tokens: int
    reference: str = ""
    agreement: Mapping[str, float]
    differs: Mapping[str, str]

    @property
    def faults(self) -> Sequence[Finding]:
        """The findings that fail."""
        return [finding for finding in self.findings if finding.state == "fail"]

    def as_dict(self) -> dict[str, Any]:
        """Return the content of `certificate.json`, with its SHA-256 as `hash`."""
        found = asdict(self)
        found["findings"] = [asdict(finding) for finding in self.findings]
        return {**found, "hash": hash_of(found)}


def certify(
    model: str | Recipe | Adapter,
    out: Path,
    *,
    against: str | Recipe | Adapter | None = None,
    dialect: str = "",
    coordinates: str = "px",
    modalities: str = "I,V,A",
    limits: Limits = UNLIMITED,
    progress: Progress | None = None,
) -> Certificate:
    """Ask a model all probes, judge its replies and write `certificate.json` and `.html`.

    The same call resumes an interrupted one: replies are kept in run folders.

    Args:
        model: a SPEC, how to make a model, or an adapter of your own.
        out: the folder of media, replies and the certificate.
        against: the same for a reference, such as the same weights in this process.
        dialect: whose prompts ask for places; empty for plain words.
        coordinates: the unit of places in plain words: "px", "norm1000" or "rel".
        modalities: letters of those to send: I, V, A.
        limits: on rate, time and cost.
        progress: called while questions are asked.

    Raises:
        UsageError: an argument has no meaning, or the model cannot be made.
        UnansweredError: no question was answered, or a limit stopped the run.
    """
    benchmark, task = _make_task(dialect, coordinates)
    kinds = _read_modalities(modalities)
    if limits.cache:
        raise UsageError(
            "a certificate shows what the server does now",
            where=f"--cache {limits.cache}",
            expected="no answers of earlier runs",
            remedy="drop --cache",
        )
    with _writing("--out", out):
        source = benchmark.draw(out / "media", kinds)
    asked = _ask(benchmark, task, source, model, out / "replies", limits, progress)
    findings = [
        asked.left_out.get(name) or judge_probe(probe, asked.replies[name], benchmark.space)
        for name, probe in benchmark.probes.items()
    ]
    if not any(asked.replies.values()):
        raise UsageError(
            "no probe can be asked",
            where=f"--modalities {modalities}",
            expected="a model that accepts text, or one of the modalities",
        )
    findings = doubt_faults(findings, benchmark.probes, asked.replies)
    agreement: dict[str, float] = {}
    differs: dict[str, str] = {}
    reference = ""
    if against is not None:
        folder = out / "reference"
        other = _ask(benchmark, task, source, against, folder, limits, progress)
        reference = other.name
        # Two samplers draw other answers from the same distribution.
        greedy = {
            name: asked.replies[name]
            for name, probe in benchmark.probes.items()
            if not probe.settings.get("temperature")
        }
        agreement, differs = _compare(greedy, other.replies)
        findings.append(compare_tokens(*(_of_pictures(benchmark, each) for each in (asked, other))))
    replies = [reply for some in asked.replies.values() for reply in some]
    found = Certificate(
        model=asked.name,
        settings=without_credentials(asked.settings),
        dialect=dialect,
        coordinates=benchmark.space,
        modalities=sorted(
            {
                kind
                for finding in findings
                if finding.state == "pass" and finding.probe in benchmark.probes
                for kind in benchmark.probes[finding.probe].media
            }
        ),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions={"omnidata": version("omnidata"), "python": platform.python_version()},
        findings=findings,
        requests=len(replies),
        tokens=asked.tokens,
        reference=reference,
        agreement=agreement,
        differs=differs,
    )
    _write(found, asked.settings, out)
    return found


def _write(found: Certificate, settings: Mapping[str, Any], out: Path) -> None:
    """Write a certificate and its page, and leave it for later runs of the model."""
    content = found.as_dict()
    with _writing("--out", out):
        write_json(out / FILE, content)
        with atomic_write(out / PAGE) as file:
            file.write(write_page(found, content["hash"]).encode())
    states = Counter(finding.state for finding in found.findings)
    certified = Certified(
        hash=content["hash"],
        date=found.date,
        passed=states["pass"],
        unclear=states["unclear"],
        faults={finding.probe: finding.cause for finding in found.faults},
        modalities=tuple(found.modalities),
    )
    with _writing("OMNIDATA_CACHE", cache_folder()):
        store_certificate(found.model, settings, certified)


@contextmanager
def _writing(name: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the folder takes no files: {error.strerror}",
            where=f"{name} {folder}",
            expected="a folder with space on its disk, or a new one",
            remedy="free the disk, or name another folder",
        ) from error


def count_requests(modalities: str = "I,V,A") -> Mapping[str, int]:
    """Return how many questions each probe asks."""
    benchmark, _ = _make_task("", "px")
    with TemporaryDirectory() as folder:
        benchmark.draw(Path(folder), _read_modalities(modalities))
    return {name: len(probe.questions) for name, probe in benchmark.probes.items()}


def _make_task(dialect: str, coordinates: str) -> tuple[Probes, Asking]:
    if not dialect:
        benchmark = Probes({"coordinates": coordinates})
        return benchmark, Asking(benchmark)
    words = get_dialect(dialect)
    if coordinates != "px":
        raise UsageError(
            f"the dialect {words.name} has a unit of its own",
            where=f"--dialect {dialect} --coordinates {coordinates}",
            expected="one of the two",
            remedy="drop --coordinates",
        )
    unit = unit_for(Probes({}), words)
    benchmark = Probes({"coordinates": unit} if unit else {})
    return benchmark, AskingInDialect(Asking(benchmark), words)


def _read_modalities(letters: str) -> frozenset[Modality]:
    named = [each for each in letters.replace(",", "").upper() if not each.isspace()]
    if unknown := [each for each in named if each not in MODALITIES]:
        raise UsageError(
            f"there is no modality {unknown[0]!r}",
            where=f"--modalities {letters}",
            expected="letters of I (pictures), V (clips) and A (sound)",
            remedy="e.g. --modalities I,A",
        )
    return frozenset(MODALITIES[each] for each in named)


# Asking.


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str
    settings: Mapping[str, Any]
    replies: Mapping[str, Sequence[Reply]]
    left_out: Mapping[str, Finding]
    tokens: int


def _ask(
    benchmark: Probes,
    task: Asking,
    source: LoadedDataset,
    model: str | Recipe | Adapter,
    out: Path,
    limits: Limits,
    progress: Progress | None,
) -> _Asked:
    made = Recipe(model) if isinstance(model, str) else model
    lines: dict[str, Prediction] = {}
    left_out: dict[str, Finding] = {}
    unanswered: UnansweredError | None = None
    with OpenModel(made) as opened:
        adapter = opened.adapter(task, source.steps)
        for probe in benchmark.probes.values():
            if why := _lack(probe, adapter):
                left_out[probe.name] = leave_out(probe, why)
        asked = [name for name in benchmark.probes if name not in left_out]
        spent = Budget(limits, adapter.name)
        for given in dict.fromkeys(_settings(benchmark.probes[name]) for name in asked):
            some = {name for name in asked if _settings(benchmark.probes[name]) == given}
            if (left := _remaining_limits(limits, spent)) is None:
                break
            settings = dict(given)
            is_special = bool(settings.keys() & {"stop", "special_tokens"})
            folder = out / ("greedy" if settings == _GREEDY else min(some))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnansweredWarning)
                try:
                    evaluate(
                        _AskingWith(benchmark, settings) if is_special else task,
                        _select(source, some),
                        opened,
                        folder,
                        params=GenerationParams(**settings),
                        limits=left,
                        progress=progress,
                        must_judge=False,
                    )
                except UnansweredError as error:
                    if not (folder / ANSWERS).exists():
                        raise
                    unanswered = unanswered or error
            for line in read_final(folder / ANSWERS):
                lines[line.sample_id] = line
                spent.spend(line.usage)
        if unanswered and not any(line.delivery in ("ok", "truncated") for line in lines.values()):
            raise unanswered
        name, model_settings = adapter.name, dict(adapter.settings)
    for probe in benchmark.probes.values():
        if probe.whole_clips and any(
            _has_frames(lines[key]) for key in lines if key.startswith(f"{probe.name}/")
        ):
            left_out[probe.name] = leave_out(probe, "frames of clips are sent: see -M video")
    replies = {
        each: [
            _read_reply(benchmark, task, step, lines[step.sample_id])
            for step in source.steps
            if step.tags["probe"] == each and step.sample_id in lines
        ]
        for each in benchmark.probes
    }
    tokens = sum(Tokens.of(line.usage).total for line in lines.values())
    return _Asked(name, model_settings, replies, left_out, tokens)


def _select(source: LoadedDataset, names: Collection[str]) -> LoadedDataset:
    """Return the steps of some probes.

    The first questions of all probes come first, texts before media: answers among refusals keep
    the run going.
    """
    steps = sorted(
        (step for step in source.steps if step.tags["probe"] in names),
        key=lambda step: (int(step.sample_id.rpartition("/")[2]), len(step.media)),
    )
    return replace(source, steps=steps, row_ids=[step.sample_id for step in steps])


def _remaining_limits(limits: Limits, spent: Budget) -> Limits | None:
    """Return the limits of the next requests; None if nothing is left."""
    cost = limits.max_cost and limits.max_cost - spent.cost
    tokens = limits.max_tokens and limits.max_tokens - spent.tokens.total
    if any(left is not None and left <= 0 for left in (cost, tokens)):
        return None
    return replace(limits, max_cost=cost, max_tokens=tokens)


class _AskingWith(Asking):
    """Ends answers at stop texts, or keeps their special tokens."""

    def __init__(self, benchmark: Probes, settings: Mapping[str, Any]) -> None:
        super().__init__(benchmark)
        self._settings = settings

    @property
    def stop(self) -> Sequence[str]:
        return tuple(self._settings.get("stop", ()))

    @property
    def special_tokens(self) -> bool:
        return "special_tokens" in self._settings


def _settings(probe: Probe) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**_GREEDY, **probe.settings}.items()))


def _lack(probe: Probe, adapter: Adapter) -> str:
    """Return the reason why a probe cannot be asked; empty if it can."""
    if adapter.accepts is not None and (untaken := set(probe.media) - set(adapter.accepts)):
        return f"the model does not accept {', '.join(sorted(untaken))}"
    controls = getattr(adapter, "controls", GenerationParams.__dataclass_fields__)
    if lacking := set(probe.controls) - set(controls):
        return f"the model has no option {', '.join(sorted(lacking))}"
    return ""


def _has_frames(line: Prediction) -> bool:
    """Return whether frames were sent instead of a clip."""
    return any(part.get("as") == "frames" for part in parts(line.receipt))


def _read_reply(benchmark: Probes, task: Asking, step: Step, line: Prediction) -> Reply:
    probe, question = benchmark.question_of(step)
    text, said, point = line.output or "", "", None
    if question.at is None:
        said = probe.read(text)
    else:
        try:
            written = task.parse(text, step, line.receipt).written
        except UnreadError:
            written = ()
        if written and written[0].start and isinstance(place := written[0].start[0], Point):
            point = float(place.x), float(place.y)
    sent = resizing(line.receipt, step.screen, where=step.sample_id)
    return Reply(
        id=step.sample_id,
        question=question,
        delivery=line.delivery,
        text=text,
        said=said,
        point=point,
        size=sent.size if sent else step.screen,
        error=line.error,
        tokens=(spent := Tokens.of(line.usage)).input,
        answer_tokens=spent.output,
    )


def _of_pictures(benchmark: Probes, asked: _Asked) -> list[Reply]:
    shown = [name for name, probe in benchmark.probes.items() if probe.media == ("image",)]
    replies = [reply for name in shown for reply in asked.replies[name]]
    return [reply for reply in replies if any(p.media for p in reply.question.messages[-1].parts)]


def _compare(
    ours: Mapping[str, Sequence[Reply]], theirs: Mapping[str, Sequence[Reply]]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the share of equal answers by probe, and the first question with two answers.

    A probe has no share if the reference answers less than three of four questions.
    """
    agreement: dict[str, float] = {}
    differs: dict[str, str] = {}
    for name in ours:
        pairs = pair_replies(ours[name], theirs[name])
        if not pairs or len(pairs) < MOST * len(ours[name]):
            continue
        same = [a.text == b.text if a.question.at else a.said == b.said for a, b in pairs]
        agreement[name] = sum(same) / len(same)
        if not all(same) and not differs:
            one, other = pairs[same.index(False)]
            differs = {"question": one.id, "model": one.text, "reference": other.text}
    return agreement, differs
