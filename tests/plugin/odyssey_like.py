"""Episodes across phone apps, in the layout of GUI-Odyssey: one JSON file each, and screenshots."""

import json
import math

from omnidata.actions import Action, Point
from omnidata.errors import Finding
from omnidata.jsontext import json_file, objects
from omnidata.loaders import files
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import EpisodeProfile
from omnidata.types import PLACE, MediaRef, Step, Target, Verdict

KINDS = {"CLICK": "TAP", "LONG_PRESS": "LONG_PRESS", "TYPE": "INPUT", "KEY_BACK": "BACK"}
KINDS |= {f"SCROLL_{way}": f"SWIPE_{way}" for way in ("UP", "DOWN", "LEFT", "RIGHT")}
KINDS |= {"COMPLETE": "TASK_COMPLETE", "IMPOSSIBLE": "TASK_IMPOSSIBLE", "KEY_HOME": "HOME"}


def label_of(row):
    """Return the action in one word: a key by its name, a scroll with its direction."""
    if row["action"] == "SCROLL":
        (x, y), (to_x, to_y) = row["info"]
        across = abs(to_x - x) > abs(to_y - y)
        return f"SCROLL_{('LEFT', 'RIGHT')[to_x > x] if across else ('UP', 'DOWN')[to_y > y]}"
    return str(row["info"] if str(row["info"]).startswith("KEY_") else row["action"])


def action_of(row):
    """Return the action of a row or an answer, which have the same form; None if there is none."""
    try:
        name, info = label_of(row), row["info"]
        at = [(Point(x + 0, y + 0, "norm1000"),) for x, y in (info if type(info) is list else ())]
        start = at[0] if name in ("CLICK", "LONG_PRESS") or row["action"] == "SCROLL" else ()
        text, words = info + "" if name == "TYPE" else None, f"{name} {info}".strip()
        return Action.of(KINDS[name], start, at[1] if at[1:] else (), text=text, words=words)
    except (LookupError, TypeError, ValueError):
        return None


class Ams(EpisodeProfile):
    """A step is right by its kind, and by its place (14 % of the screen) or its text."""

    name = "odyssey-ams"
    values = ("exact_match", "type_match")
    columns = {"AMS": "share", "SR": "share"}
    metrics = {"AMS": "EM", "SR": "SR"}
    by = {"category": (), "device": ()}

    def judge(self, step, text, receipt=None):
        answer, target = next(filter(action_of, objects(text)), None), step.source
        if step.action is None:
            return Verdict("ok", (None, None))  # no target: counted and left out
        if answer is None:
            return Verdict("unparsed", (False, False))
        right = same = label_of(answer) == label_of(target)
        if same and label_of(answer) in ("CLICK", "LONG_PRESS"):
            right = math.dist(answer["info"][0], target["info"][0]) <= 140
        elif same and answer["action"] == "TYPE":
            right = answer["info"].casefold() == target["info"].casefold()
        return Verdict("ok", (right, same), {key: answer[key] for key in ("action", "info")})


class Odyssey(Benchmark):
    """Episodes across phone apps: screenshots; the next action towards a goal."""

    question = 'Goal: {instruction}\nDone: {history}\nNext, as {"action": ..., "info": ...}?'
    profiles = {"odyssey-ams": Ams()}
    allowed = {"history": ("gold", "none", "predicted"), "coordinates": ("norm1000",)}
    tags = ("category", "device")

    def steps(self, data, note):
        rows = (json_file(path, 1 << 24) for path in files.walk(data) if path.suffix == ".json")
        for episode in (row for row in rows if isinstance(row, dict) and "task_info" in row):
            own, task, device = (episode[k] for k in ("episode_id", "task_info", "device_info"))
            screen, actions = (device["w"], device["h"]), [*map(action_of, episode["steps"])]
            for number, row in enumerate(episode["steps"]):
                if actions[number] is None:
                    problem = f"{own}/{number}", f"no action: {row['action']}", f"{[*KINDS]}"
                    note(Finding("action-unknown", "warning", *problem, "correct it", problem[:1]))
                yield Step(
                    f"{own}/{number}", own, number, len(actions), task["instruction"], screen,
                    {"screenshot": MediaRef("image", data, f"screenshots/{row['screenshot']}")},
                    tuple(actions[:number]), (screen,) * number, actions[number],
                    {"category": task["category"], "device": device["product"]}, row,
                    group=task["meta_task"],
                )  # fmt: skip

    def target(self, step, *, space=None, size=None):
        row = {key: step.source[key] for key in ("action", "info")}
        points = row["info"] if isinstance(row["info"], list) else []
        template = json.dumps({**row, "info": [PLACE] * len(points)} if points else row)
        template = template.replace(f'"{PLACE}"', PLACE)
        return Target(json.dumps(row), template, tuple(map(tuple, points))) if step.action else None

    def read(self, text, receipt=None):
        return next(filter(None, map(action_of, objects(text))), None)
