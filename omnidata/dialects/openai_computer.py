"""OpenAI's computer tools: `computer_call` with one action or several, in pixels as sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from omnidata.actions import Action, Button, Direction, Point, Screen
from omnidata.dialects.base import (
    DIRECTIONS,
    Asked,
    CannotSayError,
    Frame,
    Platform,
    Rules,
    UnreadError,
    kinds,
    press,
)
from omnidata.dialects.provider_calls import (
    ProviderDialect,
    content_way,
    keys_in,
    number_in,
    place_of,
    text_in,
    whole,
)
from omnidata.jsontext import is_integer, is_number

_BUTTONS: Final[Mapping[str, Button]] = {
    "left": "left",
    "right": "right",
    "wheel": "middle",
    "middle": "middle",
    "forward": "x",
}
_OF_BUTTON: Final = {"left": "left", "right": "right", "middle": "wheel"}
_SAYS: Final = kinds("tap drag scroll move type keys hotkey enter wait look done")
_KEYS: Final[Mapping[str, str]] = {
    **{f"ARROW{way.upper()}": way for way in DIRECTIONS},
    **{"CTRL": "ctrl", "CONTROL": "ctrl", "ALT": "alt", "OPTION": "alt", "SHIFT": "shift"},
    **dict.fromkeys(("META", "SUPER", "WIN"), "win"),
    **{"ENTER": "enter", "RETURN": "enter", "PAGE_UP": "pageup", "PAGE_DOWN": "pagedown"},
}


class _OpenAi(ProviderDialect):
    frame = Frame("px")
    key_names = _KEYS
    says: ClassVar = {
        "mobile": _SAYS | {"swipe", "back"},
        "desktop": _SAYS,
        "web": _SAYS | {"back"},
    }

    def plain_keys(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return plain keys; a capital letter beside other capitals is the key itself."""
        capitals = len(keys) > 1 and all(key == key.upper() for key in keys)
        named = super().plain_keys(keys)
        return tuple(key.lower() if capitals and len(key) == 1 else key for key in named)

    def message(self, text: str) -> dict[str, Any]:
        return {"type": "message", "content": [{"type": "output_text", "text": text}]}

    unit = "Coordinates are pixels of the screenshot"
    pointing = "Use the computer once: click in"
    acting = "act by using the computer"
    manners = (
        "You need not ask for a screenshot: you get one after every action. Nobody can answer "
        "questions."
    )
    phone = (
        "a click is a tap of the finger, a drag is its swipe, a scroll shows what lies in its "
        "direction, and a click with the button back goes back."
    )
    last = ("answer with a message", "the message")

    def write_action(self, action: Action, fed: Screen) -> dict[str, Any]:
        at, end = place_of(action.start), place_of(action.end)
        held = {"keys": list(action.held)} if action.held else {}
        spot = {"x": at[0], "y": at[1], **held} if at else {}
        match action.kind:
            case "tap" if at and action.count == 2 and action.button == "left":
                return {"type": "double_click", **spot}
            case "tap" if at and action.count == 1 and action.button in _OF_BUTTON:
                return {"type": "click", "button": _OF_BUTTON[action.button], **spot}
            case "drag" | "swipe" if at and end:
                between = [(whole(point.x), whole(point.y)) for point in action.path]
                path = [{"x": x, "y": y} for x, y in (at, *between, end)]
                return {"type": "drag", "path": path, **held}
            case "scroll" | "swipe":
                x, y = at or _middle(fed)
                return {"type": "scroll", "x": x, "y": y, **_distance(action, fed), **held}
            case "move" if at:
                return {"type": "move", **spot}
            case "back":
                x, y = _middle(fed)
                return {"type": "click", "button": "back", "x": x, "y": y}
            case "type":
                return {"type": "type", "text": action.text or ""}
            case "keys" | "hotkey":
                return {"type": "keypress", "keys": [*action.keys]}
            case "enter":
                return {"type": "keypress", "keys": ["ENTER"]}
            case "wait":
                return {"type": "wait"}
            case "look":
                return {"type": "screenshot"}
        raise self.refusal(action)

    def actions(self, leaf: Mapping[str, Any], fed: Screen, rules: Rules) -> list[Action]:
        if rules == "lenient" and leaf.get("type") in _TYPES:
            return _read_action(leaf)
        if leaf.get("type") != "computer_call":
            raise UnreadError(f"no call of the computer: {str(leaf)!r:.100}")
        called = self.actions_of_call(leaf, rules)
        if rules == "strict":
            actions = [action for each in called for action in self.read_released(each)]
        else:
            actions = [action for each in called for action in _read_action(each)]
        return [
            *actions,
            *_consent_request(leaf.get("pending_safety_checks"), strict=rules == "strict"),
        ]

    def actions_of_call(self, leaf: Mapping[str, Any], rules: Rules) -> list[Any]:
        several, one = leaf.get("actions"), leaf.get("action")
        if isinstance(several, list) and several:
            return several
        if one is None:
            raise UnreadError("the call of the computer has no action")
        return [one]

    def read_released(self, given: Any) -> list[Action]:
        raise NotImplementedError


def _middle(fed: Screen) -> tuple[float, float]:
    if min(fed) < 1:
        raise CannotSayError("the tool wants a place, and the screen's size is unknown")
    return fed[0] // 2, fed[1] // 2


def _distance(action: Action, fed: Screen) -> dict[str, Any]:
    way = content_way(action)
    upright = way in ("up", "down")
    amount = action.amount
    if amount is None:
        amount = _middle(fed)[upright]
    far = whole(amount if way in ("down", "right") else -amount)
    return {"scroll_x": 0, "scroll_y": far} if upright else {"scroll_x": far, "scroll_y": 0}


def _read_action(given: Any) -> list[Action]:
    if not isinstance(given, Mapping):
        raise UnreadError(f"the action is no object: {given!r:.100}")
    kind, held = given.get("type"), _keys(given.get("keys"))
    match kind:
        case "click":
            button = given.get("button", "left")
            if button == "back":
                return [Action("back")]
            if not isinstance(button, str) or button not in _BUTTONS:
                raise UnreadError(f"the mouse has no button {button!r:.100}")
            return [Action("tap", _spot(given), button=_BUTTONS[button], held=held)]
        case "double_click":
            return [Action("tap", _spot(given), count=2, held=held)]
        case "move":
            return [Action("move", _spot(given), held=held)]
        case "drag":
            path = given.get("path")
            if not isinstance(path, list) or len(path) < 2:
                raise UnreadError("the drag has no path")
            return [_drag(path, held)]
        case "scroll":
            far = [number_in(given.get(name, 0), name) for name in ("scroll_x", "scroll_y")]
            return _scrolls(_spot(given), far[0], far[1], held)
        case "type":
            return [Action("type", text=text_in(given.get("text"), "text"))]
        case "keypress":
            if not held:
                raise UnreadError("keypress names no key")
            return [press(held)]
        case "wait":
            return [Action("wait")]
        case "screenshot":
            return [Action("look")]
    raise UnreadError(f"the computer has no action {kind!r:.100}")


def _drag(path: Sequence[Any], held: tuple[str, ...] = ()) -> Action:
    first, *others = [_spot(point) for point in path]
    between = tuple(point for [point] in others[:-1])
    return Action("drag", first, others[-1] if others else first, path=between, held=held)


def _spot(given: Any) -> tuple[Point, ...]:
    if isinstance(given, list) and len(given) == 2:
        given = {"x": given[0], "y": given[1]}
    if not isinstance(given, Mapping):
        raise UnreadError(f"there is no place in {given!r:.100}")
    return (Point(number_in(given.get("x"), "x"), number_in(given.get("y"), "y"), "px"),)


def _keys(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return keys_in(value)
    if not isinstance(value, list):
        raise UnreadError(f"keys is no list: {value!r:.100}")
    return tuple(text_in(key, "keys") for key in value)


def _scrolls(
    start: tuple[Point, ...], across: float, down: float, held: tuple[str, ...] = ()
) -> list[Action]:
    """Return one scroll per axis that moves; the vertical one first."""
    ways: list[tuple[Direction | None, float]] = []
    if down:
        ways.append(("down" if down > 0 else "up", abs(down)))
    if across:
        ways.append(("right" if across > 0 else "left", abs(across)))
    return [
        Action("scroll", start, direction=way, sense="content" if way else None, amount=far,
               amount_unit="px", held=held)
        for way, far in ways or [(None, 0)]
    ]  # fmt: skip


def _consent_request(checks: Any, *, strict: bool) -> list[Action]:
    if not checks:
        return []
    if not isinstance(checks, list) or not all(isinstance(check, Mapping) for check in checks):
        raise UnreadError(f"pending_safety_checks is no list of checks: {checks!r:.100}")
    if strict and not all("message" in check for check in checks):
        raise UnreadError("a safety check has no message")
    said = (check.get("message") or check.get("code") for check in checks)
    return [Action("ask", text="\n".join(str(text) for text in said if text))]


class OpenAiPreview(_OpenAi):
    """The tool of `computer-use-preview`: a call has one action."""

    name = "openai-computer-preview"
    title = "OpenAI computer use, the tool computer_use_preview"
    checkpoints = ("computer-use-preview", "computer-use-preview-2025-03-11")
    source = "openai/openai-cua-sample-app@eb2d58ba77ffd3206d3346d6357093647d29d99c"
    tool = "computer_use_preview"

    def tool_declarations(
        self, asked: Asked, platform: Platform, fed: Screen
    ) -> Sequence[Mapping[str, Any]]:
        width, height = self.tool_size(fed)
        environment = "linux" if platform == "desktop" else "browser"  # it has no phone
        size = {"display_width": width, "display_height": height}
        return [{"type": self.tool, **size, "environment": environment}]

    def calls(self, action: Action, fed: Screen, platform: Platform) -> list[dict[str, Any]]:
        return [{"type": "computer_call", "action": self.write_action(action, fed)}]

    def actions_of_call(self, leaf: Mapping[str, Any], rules: Rules) -> list[Any]:
        """Return the actions of a call; strictly those in the form of this tool."""
        if rules == "lenient":
            return super().actions_of_call(leaf, rules)
        return [leaf.get("action")]

    def read_released(self, given: Any) -> list[Action]:
        """Return an action as the sample's computer, a page in Playwright, accepts it.

        The wheel's click scrolls there, by as many pixels as its place has; a button that is not
        known is the left one; nothing takes keys that are held.
        """
        if not isinstance(given, Mapping) or given.get("type") not in _TYPES:
            raise UnreadError(f"the computer has no method for {given!r:.100}")
        kind = given["type"]
        needs = set(_SAMPLE[kind].split())
        takes = needs | _OPTIONAL.get(kind, set())
        names = given.keys() - {"type"}
        if not needs <= names or not names <= takes:
            raise UnreadError(f"{kind} takes {', '.join(sorted(takes)) or 'nothing'}")
        turning = kind == "click" and given.get("button") in ("back", "forward")
        for name in () if turning else sorted(names & {"x", "y"}):
            if not is_number(given[name]):
                raise UnreadError(f"{name} is no number: {given[name]!r:.100}")
        if kind == "click":
            return _sample_click(given)
        if kind == "drag":
            return _sample_drag(given["path"])
        if kind == "keypress":
            keys = given["keys"]
            if not isinstance(keys, list | str | Mapping):
                raise UnreadError("keys is no list")
            return [press(tuple(text_in(key, "keys") for key in keys))]
        if kind == "wait":
            milliseconds = given.get("ms", 1000)
            if not isinstance(milliseconds, int | float) or not milliseconds >= 0:
                raise UnreadError("ms is no time")
            return [Action("wait", seconds=milliseconds / 1000 if "ms" in given else None)]
        return _read_action(given)


_SAMPLE: Final = {
    "click": "x y",
    "double_click": "x y",
    "drag": "path",
    "keypress": "keys",
    "move": "x y",
    "screenshot": "",
    "scroll": "x y scroll_x scroll_y",
    "type": "text",
    "wait": "",
}
"""The parameters that the sample's methods need."""
_TYPES: Final = tuple(_SAMPLE)
_OPTIONAL: Final = {"click": {"button"}, "wait": {"ms"}}


def _sample_click(given: Mapping[str, Any]) -> list[Action]:
    button = given.get("button", "left")
    if button == "back":
        return [Action("back")]
    if button == "forward":  # the page goes on, wherever that is clicked
        return [Action("tap", button="x")]
    spot = _spot(given)
    if button == "wheel":
        return _scrolls((), given["x"], given["y"])
    if not isinstance(button, str | int | float | bool | None):
        raise UnreadError("button is no name")
    return [Action("tap", spot, button="right" if button == "right" else "left")]


def _sample_drag(path: Any) -> list[Action]:
    if not path:
        return [Action("none")]
    if not isinstance(path, list) or not all(isinstance(point, Mapping) for point in path):
        raise UnreadError("path is no list of places")
    if not all(is_number(point.get(name)) for point in path for name in "xy"):
        raise UnreadError("path has a place without numbers")
    return [_drag(path)]


class OpenAi(_OpenAi):
    """The tool of the general models: a call has a list of actions."""

    name = "openai-computer"
    title = "OpenAI computer use, the tool computer"
    checkpoints = ("gpt-5.4",)
    source = "documentation: the types ComputerAction of openai-python 3.52.0"
    tool = "computer"

    def tool_declarations(
        self, asked: Asked, platform: Platform, fed: Screen
    ) -> Sequence[Mapping[str, Any]]:
        return [{"type": self.tool}]

    def calls(self, action: Action, fed: Screen, platform: Platform) -> list[dict[str, Any]]:
        return [{"type": "computer_call", "actions": [self.write_action(action, fed)]}]

    def merge_calls(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        joined: list[dict[str, Any]] = []
        for item in items:
            if joined and item["type"] == joined[-1]["type"] == "computer_call":
                joined[-1]["actions"] += item["actions"]
            else:
                joined.append(item)
        return joined

    def actions_of_call(self, leaf: Mapping[str, Any], rules: Rules) -> list[Any]:
        """Return the actions of a call; strictly those in the form of this tool."""
        if rules == "lenient":
            return super().actions_of_call(leaf, rules)
        several = leaf.get("actions")
        if not isinstance(several, list) or not several:
            raise UnreadError("the call of the computer has no actions")
        return several

    def read_released(self, given: Any) -> list[Action]:
        """Return an action as the SDK's types describe it: whole numbers, and nothing missing."""
        if not isinstance(given, Mapping) or given.get("type") not in _TYPES:
            raise UnreadError(f"the computer has no action {given!r:.100}")
        for name, fits in _SCHEMA[given["type"]].items():
            if not fits(given.get(name)):
                raise UnreadError(f"{name} does not fit: {given.get(name)!r:.100}")
        if given["type"] == "keypress" and not given["keys"]:
            return [Action("keys")]
        if given["type"] == "drag" and len(given["path"]) < 2:
            return _sample_drag(given["path"])
        return _read_action(given if "keys" in _SCHEMA[given["type"]] else {**given, "keys": None})


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_path(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and is_integer(each.get("x")) and is_integer(each.get("y"))
        for each in value
    )


_Tests = Mapping[str, Callable[[Any], bool]]
_HELD: Final[_Tests] = {"keys": lambda value: value is None or _is_names(value)}
_PLACE: Final[_Tests] = {"x": is_integer, "y": is_integer}
_SCHEMA: Final[Mapping[str, _Tests]] = {
    "click": {
        **_PLACE,
        "button": lambda value: value in ("left", "right", "wheel", "back", "forward"),
        **_HELD,
    },
    "double_click": {**_PLACE, **_HELD},
    "drag": {"path": _is_path, **_HELD},
    "keypress": {"keys": _is_names},
    "move": {**_PLACE, **_HELD},
    "screenshot": {},
    "scroll": {**_PLACE, "scroll_x": is_integer, "scroll_y": is_integer, **_HELD},
    "type": {"text": lambda value: isinstance(value, str)},
    "wait": {},
}
"""The parameters of each action, and tests of their values."""

DIALECTS = (OpenAiPreview(), OpenAi())
