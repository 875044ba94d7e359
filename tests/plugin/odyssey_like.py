"""Episodes across phone apps, in the layout of GUI-Odyssey: one JSON file each, and screenshots."""

import json
import math
from typing import TypedDict

import msgspec

from omnidata.actions import Action, Point, finger_way, heading
from omnidata.dialects import CannotSayError
from omnidata.errors import Finding
from omnidata.jsontext import objects
from omnidata.loaders.files import RowFiles
from omnidata.loaders.row_files import head_of
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer, Rule, Speech, UnreadError
from omnidata.tasks.totals import Column, EpisodeTotals
from omnidata.types import PLACE, MediaRef, Step, Target

TAPS = {"CLICK": "TAP", "LONG_PRESS": "LONG_PRESS"}
OTHERS = {
    "TYPE": "INPUT",
    "KEY_HOME": "HOME",
    "KEY_BACK": "BACK",
    "COMPLETE": "TASK_COMPLETE",
    "IMPOSSIBLE": "TASK_IMPOSSIBLE",
}
NAMES = {label: name for name, label in (TAPS | OTHERS).items()}


class Written(TypedDict):
    """An action as rows and answers write it: a text, or places."""

    action: str
    info: str | list[tuple[float, float]]


def action_of(row):
    """Return the action of a row or of an answer; a KeyError or ValueError if there is none."""
    found = msgspec.convert(row, Written)
    name, info = found["action"], found["info"]
    words = f"{name} {info}".strip()
    if isinstance(info, str):
        label = OTHERS[info if info.startswith("KEY_") else name]
        return Action.of(label, text=info if name == "TYPE" else None, words=words)
    places = [Point(x, y, "norm1000") for x, y in info]
    if name == "SCROLL":
        start, end = places
        return Action("swipe", (start,), (end,), direction=heading(*info), words=words)
    (place,) = places
    return Action.of(TAPS[name], (place,), words=words)


def no_action(name, error):
    expected = f"SCROLL, or one of {', '.join(TAPS | OTHERS)}"
    what, remedy = f"the row has no action: {error}", "correct the row"
    return Finding("action-unknown", "warning", name, what, expected, remedy, (name,))


class Ams(Rule):
    """A step is right by its kind, and by its place (14 % of the screen) or its text."""

    name = "odyssey-ams"
    totals = EpisodeTotals(
        [Column("AMS", metric="EM"), Column("SR")],
        values=("exact_match", "type_match"),
        by={"category": (), "device": ()},
    )

    def judge(self, step, parsed):
        wanted = step.action
        if wanted is None:
            return (None, None)  # no target: the step is counted and left out
        if parsed is None or parsed.value.label != wanted.label:
            return (False, False)
        right = True
        if wanted.kind in ("tap", "long_press"):
            (said,), (place,) = parsed.value.start, wanted.start
            right = math.dist((said.x, said.y), (place.x, place.y)) <= 140
        elif wanted.kind == "type":
            right = (parsed.value.text or "").casefold() == wanted.text.casefold()
        return (right, True)


class Phone(Speech):
    """Takes the actions that a model writes in a dialect."""

    asked = "action"

    def adopt(self, actions, step, receipt):
        (action,) = actions
        if way := finger_way(action):
            action = Action("swipe", action.start, action.end, direction=way)
        name = "SCROLL" if way else NAMES.get(action.label)
        if name is None or (name in TAPS and not action.start):
            raise CannotSayError(action.label)
        places = [[point.x, point.y] for point in (*action.start, *action.end)]
        record = {"action": name, "info": places or action.text or ""}
        return ParsedAnswer(action, record, written=(action,))


class Odyssey(Benchmark):
    """Episodes across phone apps: screenshots; the next action towards a goal."""

    card = Card(
        title="Odyssey",
        holds="the next action towards a goal, across apps of a phone",
        platform="mobile",
        tags=("category", "device"),
        roles={"screenshot": "image"},
        answer_type=Written,
    )
    question = 'Goal: {instruction}\nDone: {history}\nNext, as {"action": ..., "info": ...}?'
    allowed = {"history": ("gold", "none", "predicted"), "coordinates": ("norm1000",)}
    baselines = ("oracle", "majority", "center")
    rules = (Ams(),)
    speech = Phone()
    files = RowFiles(
        "a JSON file for each episode, with task_info, device_info and steps",
        lambda path: "known" if b'"task_info"' in head_of(path) else "other",
    )

    def steps(self, data, note):
        for line in self.files.rows(self.files.find(data), note):
            episode, rows = line.row, line.row["steps"]
            task, device = episode["task_info"], episode["device_info"]
            screen, actions = (device["w"], device["h"]), []
            for number, row in enumerate(rows):
                name = f"{episode['episode_id']}/{number}"
                shot = MediaRef("image", data / "screenshots", row["screenshot"])
                try:
                    action = action_of(row)
                except (KeyError, ValueError) as error:
                    action = None
                    note(no_action(name, error))
                yield Step(
                    sample_id=name,
                    episode_id=episode["episode_id"],
                    step_index=number,
                    num_steps=len(rows),
                    instruction=task["instruction"],
                    screen=screen,
                    media={"screenshot": shot},
                    history=tuple(actions),
                    history_screens=(screen,) * number,
                    action=action,
                    tags={"category": task["category"], "device": device["product"]},
                    source=row,
                    group=task["meta_task"],
                )
                actions.append(action)

    def parse(self, text, step, receipt):
        for row in objects(text):
            try:
                action = action_of(row)
            except (KeyError, ValueError):
                continue
            record = {"action": row["action"], "info": row["info"]}
            return ParsedAnswer(action, record, written=(action,))
        raise UnreadError("no JSON object with an action and its info")

    def target(self, step, *, space=None, size=None):
        if step.action is None:
            return None
        name, info = step.source["action"], step.source["info"]
        text = json.dumps({"action": name, "info": info})
        if isinstance(info, str):
            return Target(text, text)
        places = ", ".join([PLACE] * len(info))
        template = json.dumps({"action": name, "info": []}).replace("[]", f"[{places}]")
        return Target(text, template, tuple(map(tuple, info)))
