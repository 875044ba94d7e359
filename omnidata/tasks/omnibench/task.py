"""The task `omnibench`: steps of OmniBench's trajectories, its prompt, and a profile of our own.

The paper scores coverage and consistency of task graphs, which need no model's text: `omnidata
score omnibench TASKS SEQUENCES`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Required, TypedDict

from msgspec.structs import replace

from omnidata.actions import (
    OPPOSITE,
    Action,
    Point,
    Screen,
    Space,
    centre,
    convert,
    finger_way,
)
from omnidata.dialects import CannotSayError
from omnidata.jsontext import compact, hash_of
from omnidata.loaders.subsets import canonical
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    History,
    Note,
    Paper,
    ParsedAnswer,
    Receipt,
    Speech,
    Wordings,
)
from omnidata.tasks.coordinates import Side, answer_space, pair_on_screen, place
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.explaining import SCREENSHOT, explain
from omnidata.tasks.json_answers import Pair
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.omnibench import load as loader
from omnidata.tasks.omnibench.actions import (
    BUTTONS,
    FUNCTIONS,
    Answer,
    call_of,
    parse,
    read_body,
    read_call,
    read_keys,
    words,
    write_keys,
)
from omnidata.tasks.omnibench.load import Metadata
from omnidata.tasks.omnibench.overview import View
from omnidata.tasks.omnibench.rows import (
    action_of,
    subtasks_of,
    table10,
    text_of,
)
from omnidata.tasks.omnibench.rules import StepRule
from omnidata.tasks.omnibench.scoring import INTENT, TABLES, GraphScorer
from omnidata.tasks.pointing import only_box, resizing_of
from omnidata.tasks.profile import Profile
from omnidata.tasks.published import HISTORY, read_published
from omnidata.tasks.sentences import RuleWords, explain_place
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Overlays,
    Part,
    Step,
    Target,
    TaskDiagram,
    Verdict,
)

# The prompt, for a model that sees only the screenshot.
#
# The paper prints the prompt of its trajectory synthesis (Appendix E.1) with an annotated
# screenshot beside a plain one, and a list of all controls. Trajectories have neither, so this
# prompt asks for a point. Every sentence that differs is in this module; the rest is the paper's.

SPACES: tuple[Space, ...] = ("px", "norm1000", "rel")
OPTIONS: Mapping[str, Sequence[str]] = {
    "history": ("gold", "none", "predicted"),
    "intent": ("off", "on"),
    "coordinates": SPACES,
}
"""`intent` shows the task's intent to the model (section 5.3)."""

_UNITS: Mapping[Space, str] = {
    "px": "in pixels of the screenshot",
    "norm1000": "from 0 to 1000 along its width and its height",
    "rel": "from 0 to 1 along its width and its height",
}
_ANNOTATED = """\
- You are provided two versions of screenshots of the current application in a single image, one \
with annotation (right) and one without annotation (left)
- The annotation is to help you identify the control elements on the application
- The annotation is a small rectangle with a number in the center of the rectangle in the top left \
corner of the control item. The number is the label of the control item
- Different types of control items have different colors of annotation
"""
_PLAIN = "- You are provided a screenshot of the current screen\n"
_LIST = "- You are given the information of all available control items"
_OPERATIONS = "\n### Control Operations\n"
_LABEL, _FUNCTION = '  "ControlLabel": <', '  "Function": <'
_POINT = (
    '  "coordinates": <Specify the point to click at as [x, y], {unit}, from its top left corner. '
    "Leave it an empty list [] if the function needs no place or the task is complete>,\n"
)


@cache
def system_prompt(space: Space = "px") -> str:
    """Return the system prompt that asks for coordinates in a unit.

    Examples:
        >>> [line for line in system_prompt().splitlines() if "screenshot of" in line]
        ['- You are provided a screenshot of the current screen']
    """
    text = prompt_text("omnibench", "omnibench_trajectory").replace(_ANNOTATED, _PLAIN)
    text = _replace_between(text, _LIST, _OPERATIONS)
    text = text.replace("consisting of 8 distinct parts", "consisting of 6 distinct parts")
    text = text.replace(
        'the "ControlLabel", "ControlText", "Function"', 'the "coordinates", "Function"'
    )
    text = _replace_between(text, _LABEL, _FUNCTION, _POINT.replace("{unit}", _UNITS[space]))
    return text.replace("{apis}", prompt_text("omnibench", "omnibench_apis"))


def _replace_between(text: str, begin: str, end: str, between: str = "") -> str:
    start = text.index(begin)
    return text[:start] + between + text[text.index(end, start) :]


def _read_place(answer: Answer, step: Step, receipt: Receipt, space: Space) -> ParsedAnswer[Answer]:
    """Return an answer with its point in pixels of the screen."""
    point, written = answer.point, answer.action
    if written:
        where = f"[{point[0]:g}, {point[1]:g}]" if point else ""
        start = (Point(*point, space),) if point else ()
        written = replace(written, start=start, words=words(written, where))
    if point and space == "px":
        resized = resizing_of(step, receipt, space)
        point = resized.to_screen(point) if resized else point
    elif point:
        found = convert(Point(*point, space), "px", step.screen)
        point = found.x, found.y
    return ParsedAnswer(
        replace(answer, point=point),
        answer.as_dict(),
        (written,) if written else (),
        answer.as_prompted,
        answer.fault,
    )


class _Record(TypedDict, total=False):
    function: Required[str]
    args: dict[str, Any]
    coordinates: tuple[Side, Side] | None


class _Speech(Speech):
    asked = "action"

    def __init__(self, space: Space) -> None:
        self._space = space

    def right_actions(self, step: Step) -> Sequence[Action]:
        action = action_of(step.source)
        if action is None or (action.kind == "tap" and not action.start):
            return ()
        return read_keys(action.text or "") if action.kind == "type" else (action,)

    def takes(self, actions: Sequence[Action]) -> int:
        return len(actions)

    def adopt(
        self, actions: Sequence[Action], step: Step, receipt: Receipt
    ) -> ParsedAnswer[Answer]:
        """Return the actions as one call, if one call can type them."""
        first, is_one = actions[0], len(actions) == 1
        point: list[float] = []
        if first.kind == "tap" and is_one:
            if first.count > 2 or first.button not in BUTTONS or first.held:
                raise CannotSayError(f"click_input does no {first.label}")
            if not first.start:
                raise CannotSayError("click_input clicks at no place")
            middle = centre(first.start[0])
            point = [middle.x, middle.y]
        elif first.kind == "scroll" and is_one:
            way = finger_way(first)
            whole = first.amount_unit == "notch" and first.amount and first.amount % 1 == 0
            if way not in ("up", "down") or not whole or first.held:
                raise CannotSayError("wheel_mouse_input turns up or down, by whole notches")
            first = replace(first, direction=OPPOSITE[way], sense=None)
        elif first.kind == "done" and is_one and first.status != "failure":
            first = Action("done", status="success")
        else:
            first = Action("type", text="".join(map(write_keys, actions)))
        found = read_body(_body(first, point))
        assert found
        found = replace(found, as_prompted=found.action is not None)
        return _read_place(found, step, receipt, self._space)


class _Wordings(Wordings):
    task_of = staticmethod(loader.task_of)

    def spelling(self, tag: str, value: str) -> str:
        return canonical(value) if tag == "app" else value

    def application(self, step: Step) -> str:
        """Return the step's app; empty for a task of several apps."""
        found = super().application(step)
        return "" if found == loader.SEVERAL else found


class OmniBench(Benchmark):
    """OmniBench: what does the agent click, turn or type next, given the screen?

    Args:
        name: "omnibench".
        options: `history`, `intent`, `coordinates`; unknown ones are a `UsageError`.
    """

    card = Card(
        title="OmniBench",
        holds="predict the next action on a desktop from screenshots; score graphs of tasks",
        unpublished="no source of the task graphs is known; datasets of this name on the Hub "
        "(lmms-lab's omni_bench, Harold328/OmniBench-99, ModalityDance/Omni-Bench) are other "
        "things",
        platform="desktop",
        tags=loader.TAGS,
        roles=loader.ROLES,
        subsets=("subtask", "task", *dict.fromkeys(table10().values())),
        detailed_actions=True,
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = OPTIONS
    baselines = ("oracle", "center", "majority")
    files = loader.FILES
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.omnibench", "omnibench"),
        tables=TABLES,
        variations=(HISTORY, INTENT),
        overview=View,
    )
    rollouts = GraphScorer()
    wordings = _Wordings()
    library = staticmethod(loader.read_library)

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = answer_space(self.options) or "px"
        self.system = system_prompt(self._space)
        self.prompt_hash = hash_of([dict(self.options), self.system])
        self.speech = _Speech(self._space)
        self.rules = (StepRule(self._space),)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(data, check_media=check_media, strict=strict)

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        return self.load(data, check_media=False).steps

    def group(self, step: Step) -> Step:
        return loader.assign_group(step)

    def prompt(self, step: Step, history: History) -> Conversation:
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        lines = (
            f"\nStep {number}: {action.words}"
            for number, action in enumerate(history.actions(step))
            if action is not None
        )
        asked = f"<Step History:> {''.join(lines) or 'none'}\n"
        intent = step.tags.get("intent") if self.options["intent"] == "on" else None
        if intent:
            asked += f"<Task intent:> {intent}\n"
        asked += f"<Task instruction:> {step.instruction}"
        return (
            Message("system", (Part("text", self.system),)),
            Message("user", (*shown, Part("text", asked))),
        )

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Answer]:
        return _read_place(parse(text), step, receipt, self._space)

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another function, its arguments and control.

        Raises:
            ValueError: the action is no click in one box, turn of the wheel, text or end.
        """
        if action.kind not in ("tap", "scroll", "type", "done"):
            raise ValueError(f"{action.label} is none of {', '.join(filter(None, FUNCTIONS))}")
        function, args = call_of(action)
        row = {**step.source, "function": function, "args": args}
        if action.kind == "tap":
            box = only_box(action, step.screen)
            row["rect"] = [box.left, box.top, box.right, box.bottom]
        return dataclasses.replace(step, action=action_of(row), source=row)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the expert's action as compact JSON, with its description and thought.

        Args:
            step: of OmniBench.
            space: the unit of coordinates; None for that of the prompt.
            size: width and height of the screenshot as sent, in pixels.

        Returns:
            None if the action cannot be read, or is a click without a place or on a screen of
            unknown size.
        """
        action = action_of(step.source)
        if action is None:
            return None
        if action.kind != "tap":
            text = _format_answer(action, [], step)
            return Target(text, text.replace(PLACE, "bbox"))
        if not action.start or min(step.screen) < 1:
            return None
        space, size = space or self._space, size or step.screen
        found = place(action.start[0], step.screen, space=space, size=size)
        template = _format_answer(action, PLACE, step).replace(f'"{PLACE}"', PLACE)
        return Target(_format_answer(action, list(found), step), template, (found,))

    def diagram(self, source: LoadedDataset, step: Step) -> TaskDiagram | None:
        """Return the task's graph, coloured by application (Figure 11); None for a repository."""
        library = source.library if isinstance(source, Metadata) else None
        task = library.tasks.get(step.source.get("task_id", "")) if library else None
        if not (library and task):
            return None
        known = subtasks_of(task.graph.nodes, task.source, library.subtasks)
        labels = {node: subtask.template for node, subtask in known.items() if subtask}
        return TaskDiagram(task.graph, labels, task.applications)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return a baseline.

        `oracle` answers with the expert's action; `center` clicks at the middle of the screen;
        `majority` always gives the data's most frequent call, a click at the middle of the screen.
        """
        space = self._space

        def oracle(step: Step) -> str:
            found, action = self.target(step), action_of(step.source)
            if found is None and action and action.start and space == "px":
                middle = centre(action.start[0])
                return _format_answer(action, [middle.x, middle.y], step)
            return found.text if found else ""

        def blind(step: Step) -> str:
            middle: Pair = (0.5, 0.5)
            if space != "rel":
                screen = step.screen if space == "px" else (1, 1)
                point = convert(Point(*middle, "rel"), space, screen)
                middle = point.x, point.y
            return _format_answer(usual, list(middle) if usual.kind == "tap" else [])

        if name == "oracle":
            return oracle
        usual = read_call("click_input")
        if name == "majority":
            actions = (action for step in steps if (action := action_of(step.source)))
            calls = Counter(replace(action, start=(), words=None) for action in actions)
            usual = calls.most_common(1)[0][0] if calls else read_call("")
        return blind

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Answer] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        wanted = action_of(step.source)
        regions = wanted.start if wanted and wanted.kind == "tap" else ()
        given = parsed.record.get("coordinates") if parsed else None
        point = pair_on_screen(step, given, self._space, receipt)
        written = parsed.written if parsed else ()
        if parsed and not written and parsed.value.function == "click_input":
            # Its arguments cannot be read, but where it clicks can.
            written = (Action("tap", (Point(given[0], given[1], self._space),) if given else ()),)

        def sentence(record: Mapping[str, Any], right: bool) -> str:
            differs = _unlike(wanted, record, right=right)
            return differs or explain_place(
                step, "the point", point, regions, right=right, rule=RuleWords()
            )

        return explain(
            verdict,
            profile,
            sentence,
            target_label=_function_name(call_of(wanted)[0]) if wanted else "",
            answer_label=lambda record: _function_name(str(record["function"])),
            overlays=lambda: {SCREENSHOT: Overlays(regions, (), point)},
            noun="function",
            diagnosis=lambda record: diagnose(
                step, (wanted,) if wanted else (), written, receipt=receipt
            ),
        )


def _format_answer(action: Action, point: Any, step: Step | None = None) -> str:
    return compact(_body(action, point, step))


def _body(action: Action, point: Any, step: Step | None = None) -> dict[str, Any]:
    function, args = call_of(action)
    row: Mapping[str, Any] = step.source if step else {}
    said = (text_of(row, "description"), text_of(row, "thought"))
    if point == PLACE:  # a text may contain the mark of a place
        said = said[0].replace(PLACE, "bbox"), said[1].replace(PLACE, "bbox")
    return {
        "Status": "FINISH" if action.kind == "done" else "CONTINUE",
        "Observation": said[0],
        "Thought": said[1],
        "coordinates": point,
        "Function": function,
        "Args": args,
    }


# How an action differs from the expert's.


def _function_name(function: object) -> str:
    return str(function or "finish")


def _unlike(wanted: Action | None, parsed: Mapping[str, Any], *, right: bool) -> str:
    if wanted is None:
        return "the expert's action cannot be read"
    name, args = call_of(wanted)
    given = parsed.get("function", "")
    if given != name:
        return (
            f"the answer is {_function_name(given)}, the expert's action is {_function_name(name)}"
        )
    said: Mapping[str, Any] = parsed.get("args") or {}
    if wanted.kind == "tap":
        return "" if said == args else _differ(said, args)
    if wanted.kind == "done":
        return "both end the task" if right else "the answer's status is CONTINUE"
    if right:
        return "both type the same keys" if wanted.kind == "type" else "both turn the wheel so"
    if wanted.kind == "scroll":
        return f"{_differ(said, args)}, not the same way and between half and twice as far"
    return _differ(said, args)


def _differ(said: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name} {value!r}" for name, value in said.items()) or "nothing"
    wanted = ", ".join(f"{name} {value!r}" for name, value in args.items())
    return f"the arguments differ: {given} in place of {wanted}"
