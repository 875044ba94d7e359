"""The task `aitw`: Android in the Wild, Android in the Zoo and CAGUI, by four evaluators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.actions import Action, Pair
from omnidata.loaders.load import load_data
from omnidata.tasks.aitw import aitz_rules, rules
from omnidata.tasks.aitw import load as loader
from omnidata.tasks.aitw.rows import FILES, truth_of
from omnidata.tasks.benchmark import Card, Note, Paper, hub_publication
from omnidata.tasks.phones import agentcpm, answers
from omnidata.tasks.phones.actions import direction_of
from omnidata.tasks.phones.rules import Evaluator
from omnidata.tasks.phones.task import PhoneBenchmark, PhoneRecord, PhoneView, Wording
from omnidata.types import LoadedDataset, Publication, Remote, Step

_AITW = "Android in the Wild (Rawles et al., 2023)"
_AGENTCPM = "AgentCPM-GUI (Zhang et al., 2025)"
_AITZ = "Android in the Zoo (Zhang et al., 2024)"
_CORRECTED = ", with its faults corrected"
_UNSIZED = "clicks on screens of unknown size"
_POINT = "coordinate: [x, y]"
_PLAIN = ("BACK", "HOME", "ENTER", "TASK_COMPLETE", "TASK_IMPOSSIBLE")
_LINE = "start_coordinate: [x, y], end_coordinate: [x, y]"


SOURCES: Final = (
    Publication(
        "Android in the Wild",
        "https://github.com/google-research/google-research/tree/master/android_in_the_wild",
        "cc-by-4.0",
        {"form": "aitw"},
        Remote(
            "gs://gresearch/android-in-the-wild",
            gated=False,
            note="the bucket that the README names, of several TB: take a part, e.g. --only "
            "'general/*'. Size and licence are not verified; on the Hub it is not",
        ),
        paper="2307.10088",
    ),
    Publication(
        "Android in the Zoo",
        "https://github.com/IMNearth/CoAT",
        "apache-2.0",
        {"form": "aitz"},
        by_hand="one zip of about 2.6 GB on Google Drive or Baidu, which its README links to; "
        "no official id on the Hub was found",
        paper="2403.02713",
    ),
    hub_publication(
        "CAGUI",
        "openbmb/CAGUI",
        "cc-by-nc-4.0",
        paper="2506.01391",
        where={"form": "cagui"},
        files=("CAGUI_agent/*",),
        bytes=847_000_000,
        note="the episodes, 847 MB of 1.4 GB; not for commercial use",
    ),
)


class Aitw(PhoneBenchmark):
    """Android in the Wild: what does the agent do next on the phone?"""

    card = Card(
        title="Android in the Wild",
        holds="predict the next action on a phone from screenshots (Android in the Wild, in the "
        "Zoo, CAGUI)",
        platform="mobile",
        sources=SOURCES,
        tags=loader.TAGS,
        roles=loader.ROLES,
        subsets=("aitw", "aitz", "cagui", *loader.SUBSETS),
        detailed_actions=True,
        answer_type=PhoneRecord,
    )
    files = FILES
    paper = Paper(overview=PhoneView)
    truth = staticmethod(truth_of)
    evaluators: ClassVar[Mapping[str, Evaluator]] = {
        "aitw": Evaluator(rules.match_released, 140, "GP_ratio", source=_AITW),
        "aitw-fixed": Evaluator(rules.match_fixed, 140, "GP_ratio", source=_AITW + _CORRECTED),
        "agentcpm": Evaluator(
            agentcpm.match_released, 140, as_released="agentcpm", source=_AGENTCPM
        ),
        "agentcpm-fixed": Evaluator(agentcpm.match_fixed, 140, source=_AGENTCPM + _CORRECTED),
        "aitz": Evaluator(
            aitz_rules.match_released,
            as_released="aitz",
            misses="the released evaluator reads every click as a click at (0, 0)",
            source=_AITZ,
            leaves_out=_UNSIZED,
        ),
        "aitz-fixed": Evaluator(
            aitz_rules.match_fixed, source=_AITZ + _CORRECTED, leaves_out=_UNSIZED
        ),
    }
    """Partial match, the GP of Android in the Wild, is the share of an episode's right steps; that
    of the others is the share of those before the first wrong one."""
    by: ClassVar[Mapping[str, Sequence[str]]] = {
        "form": ("aitw", "aitz", "cagui"),
        "subset": (),
        "device": (),
        "android": (),
    }
    names: ClassVar[Mapping[str, str]] = {
        "WAIT": "NONE",
        **{label: label for label in ("TAP", "DOUBLE_TAP", "LONG_PRESS", *_PLAIN)},
    }
    wording = Wording(
        actions=(
            ("NONE", ""),
            ("TAP", _POINT),
            ("LONG_PRESS", _POINT),
            *((f"SWIPE_{way}", _LINE) for way in ("UP", "DOWN", "LEFT", "RIGHT")),
            ("INPUT", 'text: "string"'),
            *((name, "") for name in _PLAIN),
        ),
        rules=(
            'If the task appears COMPLETE or already done, you MUST output {"action_type": '
            '"TASK_COMPLETE"}.',
            'If the task requires waiting/observing, output {"action_type": "NONE"}.',
            'If the task is impossible, output {"action_type": "TASK_IMPOSSIBLE"}.',
        ),
        examples=(
            ("Tap", '{"action_type": "TAP", "coordinate": [x, y]}'),
            (
                "Swipe up",
                '{"action_type": "SWIPE_UP", "start_coordinate": [x, y], "end_coordinate": [x, y]}',
            ),
            ("Input text", '{"action_type": "INPUT", "text": "hello"}'),
            ("Back", '{"action_type": "BACK"}'),
        ),
    )

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return load_data(
            data,
            self.name,
            loader.tags_of(data),
            lambda: loader.read(data, check_media=check_media),
            strict=strict,
            check_media=check_media,
            depends=(),
        )

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return self.load(data, check_media=False).steps

    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Action, bool]:
        return answers.read_prompted(body, self._space)

    def places(self, action: Action) -> Sequence[Pair]:
        """Return the touched place, and for a swipe the lifted one."""
        if direction_of(action):
            return rules.dual_point(action) or ()
        return super().places(action)

    def body(self, action: Action, places: Sequence[Any]) -> dict[str, Any]:
        if direction := direction_of(action):
            ends = zip(("start_coordinate", "end_coordinate"), places, strict=False)
            return {"action_type": f"SWIPE_{direction.upper()}", **dict(ends)}
        if action.kind == "type":
            return {"action_type": "INPUT", "text": action.text}
        return super().body(action, places)
