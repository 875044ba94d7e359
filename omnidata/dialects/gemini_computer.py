"""Gemini's computer use: function calls with names of their own, places in [0, 1000]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from omnidata.actions import Action, Kind, Point, Screen
from omnidata.dialects.base import Asked, Frame, Platform, Rules, UnreadError, kinds, press
from omnidata.dialects.provider_calls import (
    ProviderDialect,
    chord_of,
    content_way,
    keys_in,
    number_in,
    optional_number,
    place_of,
    text_in,
    way_in,
    whole,
)
from omnidata.dialects.tool_calls import decode_nested
from omnidata.jsontext import is_number

_SAYS: Final = kinds("tap drag scroll move type keys hotkey enter wait done")
_NOT_ON_PHONES: Final = (
    *("open_web_browser", "search", "navigate", "hover_at", "scroll_document", "go_forward"),
)
_POINT: Final[Mapping[str, Any]] = {"x": {"type": "INTEGER"}, "y": {"type": "INTEGER"}}
_OF_PHONES: Final = (
    {
        "name": "open_app",
        "description": "Opens an app of the phone by its name.",
        "parameters": {
            "type": "OBJECT",
            "properties": {"app_name": {"type": "STRING"}, "intent": {"type": "STRING"}},
            "required": ["app_name"],
        },
    },
    {
        "name": "long_press_at",
        "description": "Holds the finger on a place, x and y from 0 to 1000.",
        "parameters": {"type": "OBJECT", "properties": _POINT, "required": ["x", "y"]},
    },
    {"name": "go_home", "description": "Goes to the home screen of the phone."},
)
"""Functions that a phone needs; Google's documentation has them as functions of one's own."""


class GeminiComputer(ProviderDialect):
    """Functions of the tool `computer_use`, with those of a phone where there is one.

    A page scrolls by itself (`scroll_document`) or at a place; a text is typed at a place. Of a
    text that has none the place is left out.
    """

    name = "gemini-computer"
    title = "Gemini computer use"
    checkpoints = (
        "gemini-2.5-computer-use-preview-10-2025", "gemini-3-pro-preview", "gemini-3-flash-preview",
    )  # fmt: skip
    source = "google/computer-use-preview@c0e6049960fec44a965e55d9cb324dbe2fa76886"
    tool = "computer_use"
    frame = Frame("norm1000")
    unit = "Places are whole numbers from 0 to 1000 along both sides of the screenshot"
    pointing = "Call click_at once, in"
    acting = "act by calling functions"
    manners = (
        "You get a new screenshot after every call. Say in a sentence why you act, and call the "
        "function of the next action alone."
    )
    phone = (
        "click_at is a tap of the finger, drag_and_drop is its swipe, scroll_at shows what lies in "
        "its direction, and go_back goes back."
    )
    key_names: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("control", "Control", "CONTROL"), "ctrl"),
        **dict.fromkeys(("meta", "Meta", "META"), "win"),
        **{f"Arrow{way.title()}": way for way in ("up", "down", "left", "right")},
    }
    says: ClassVar = {
        "mobile": (_SAYS - {"move"}) | {"swipe", "back", "home", "long_press", "open_app"},
        "desktop": _SAYS,
        "web": _SAYS | {"back", "open_url"},
    }

    def tool_declarations(
        self, asked: Asked, platform: Platform, fed: Screen
    ) -> Sequence[Mapping[str, Any]]:
        use: dict[str, Any] = {"environment": "ENVIRONMENT_BROWSER"}
        if platform != "mobile":
            return [{"computer_use": use}]
        use["excluded_predefined_functions"] = [*_NOT_ON_PHONES]
        return [{"computer_use": use}, {"function_declarations": [*_OF_PHONES]}]

    def message(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def calls(self, action: Action, fed: Screen, platform: Platform) -> list[dict[str, Any]]:
        name, given = self._call_of(action, platform)
        args = {key: value for key, value in given.items() if value is not None}
        return [{"function_call": {"name": name, "args": args}}]

    def _call_of(self, action: Action, platform: Platform) -> tuple[str, dict[str, Any]]:
        kind, at, end = action.kind, place_of(action.start), place_of(action.end)
        spot = {"x": at[0], "y": at[1]} if at else {}
        match kind:
            case "tap" | "move" | "long_press" if at:
                return next(name for name, one in _POINTED.items() if one == kind), spot
            case "drag" | "swipe" if at and end:
                return "drag_and_drop", {**spot, "destination_x": end[0], "destination_y": end[1]}
            case "scroll" | "swipe":
                way = content_way(action)
                if platform == "mobile" and not at:  # it has no document that scrolls by itself
                    spot = {"x": 500, "y": 500}
                if not spot and action.amount is None:
                    return "scroll_document", {"direction": way}
                magnitude = None if action.amount is None else whole(action.amount)
                return "scroll_at", {**spot, "direction": way, "magnitude": magnitude}
            case "type":
                typed = {"text": action.text or "", "press_enter": action.submit}
                return "type_text_at", {**spot, **typed, "clear_before_typing": action.clear}
            case "keys" | "hotkey":
                return "key_combination", {"keys": chord_of(action.keys)}
            case "enter":
                return "key_combination", {"keys": "enter"}
            case "wait" | "back" | "home":
                return next(name for name, one in _BARE.items() if one.kind == kind), {}
            case "open_url" if action.url is not None:
                return "navigate", {"url": action.url}
            case "open_app" if action.app is not None:
                return "open_app", {"app_name": action.app}
        raise self.refusal(action)

    def actions(self, leaf: Mapping[str, Any], fed: Screen, rules: Rules) -> list[Action]:
        called = leaf.get("function_call", leaf.get("functionCall", leaf))
        name = called.get("name") if isinstance(called, Mapping) else None
        if not isinstance(name, str):
            raise UnreadError(f"no function call: {str(leaf)!r:.100}")
        args = called.get("args", called.get("arguments"))
        if isinstance(args, str) and rules == "lenient":
            args = decode_nested(args)
        if args is None and (rules == "lenient" or name in _WITHOUT):
            args = {}
        if not isinstance(args, Mapping):
            raise UnreadError(f"the arguments of {name:.100} are no object: {args!r:.100}")
        if rules == "strict":  # the agent reckons with true as 1, as Python does
            args = {
                key: int(value) if key in _NUMBERS and isinstance(value, bool) else value
                for key, value in args.items()
            }
            # Check a call as the agent's `handle_action` and its Playwright page do.
            if name not in _NEEDS and name not in _WITHOUT:
                raise UnreadError(f"the agent has no function {name!r:.100}")
            needs = {*_NEEDS.get(name, ())}
            for key in sorted(
                needs | ({"magnitude"} & args.keys() if name == "scroll_at" else set())
            ):
                value = args.get(key)
                if key in _NUMBERS and not is_number(value):
                    raise UnreadError(f"{key} is no number: {value!r:.100}")
                if key not in _NUMBERS and not isinstance(value, str):
                    raise UnreadError(f"{key} is no text: {value!r:.100}")
                if key == "direction" and value not in ("up", "down", "left", "right"):
                    raise UnreadError(f"there is no direction {value!r:.100}")
        return [
            _read_call(name, args),
            *_consent_request(args.get("safety_decision"), strict=rules == "strict"),
        ]


_WITHOUT: Final = frozenset(
    {"open_web_browser", "wait_5_seconds", "go_back", "go_forward", "search"}
)
_POINTED: Final[Mapping[str, Kind]] = {
    "click_at": "tap",
    "hover_at": "move",
    "long_press_at": "long_press",
}
_BARE: Final[Mapping[str, Action]] = {
    "wait_5_seconds": Action("wait", seconds=5),
    "go_back": Action("back"),
    "go_home": Action("home"),
    "open_web_browser": Action("open_app", app="web browser"),
}


def _read_call(name: str, args: Mapping[str, Any]) -> Action:
    if name in _POINTED:
        return Action(_POINTED[name], _spot(args))
    if name in _BARE:
        return _BARE[name]
    nowhere = args.get("x") is args.get("y") is None
    match name:
        case "type_text_at":
            return Action(
                "type",
                () if nowhere else _spot(args),
                text=text_in(args.get("text"), "text"),
                submit=_flag(args, "press_enter"),
                clear=_flag(args, "clear_before_typing"),
            )
        case "scroll_at" | "scroll_document":
            at_place = name == "scroll_at"
            return Action(
                "scroll",
                direction=way_in(args.get("direction"), "direction"),
                amount=optional_number(args, "magnitude") if at_place else None,
                start=_spot(args) if at_place and not nowhere else (),
                sense="content",
                amount_unit="norm1000",
            )
        case "drag_and_drop":
            end = _spot(args, "destination_x", "destination_y")
            return Action("drag", _spot(args), end)
        case "key_combination":
            keys = keys_in(text_in(args.get("keys"), "keys"))
            if not keys:
                raise UnreadError("key_combination names no key")
            return press(keys)
        case "navigate":
            return Action("open_url", url=text_in(args.get("url"), "url"))
        case "open_app":
            return Action("open_app", app=text_in(args.get("app_name"), "app_name"))
    if name in _WITHOUT:
        raise UnreadError(f"{name} is a function of the tool that no action stands for")
    raise UnreadError(f"the tool has no function {name!r:.100}")


def _spot(args: Mapping[str, Any], across: str = "x", down: str = "y") -> tuple[Point, ...]:
    x, y = number_in(args.get(across), across), number_in(args.get(down), down)
    return (Point(x, y, "norm1000"),)


def _flag(args: Mapping[str, Any], name: str) -> bool | None:
    value = args.get(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return bool(value)


def _consent_request(decision: Any, *, strict: bool) -> list[Action]:
    if not decision:
        return []
    if not isinstance(decision, Mapping):
        raise UnreadError(f"safety_decision is no object: {decision!r:.100}")
    wants = decision.get("decision") == "require_confirmation"
    if strict and (not wants or "explanation" not in decision):
        raise UnreadError("the safety decision is not known")
    if not wants:
        return []
    explanation = decision.get("explanation")
    return [Action("ask", text=explanation if isinstance(explanation, str) else "")]


# What the released agent accepts.

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "click_at": ("x", "y"),
    "hover_at": ("x", "y"),
    "type_text_at": ("x", "y", "text"),
    "scroll_document": ("direction",),
    "scroll_at": ("x", "y", "direction"),
    "drag_and_drop": ("x", "y", "destination_x", "destination_y"),
    "key_combination": ("keys",),
    "navigate": ("url",),
}
_NUMBERS: Final = frozenset({"x", "y", "destination_x", "destination_y", "magnitude"})


DIALECTS = (GeminiComputer(),)
