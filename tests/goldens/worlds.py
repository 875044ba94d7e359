"""A small dataset of every benchmark and form, the same on every machine."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.data.converting import small
from tests.loaders import agentstudio, desk, every, neighbours, omnibench, osworld, phones
from tests.loaders import published_forms as forms
from tests.sample import write_sample

World = Callable[[Path], Path]
"""Writes a dataset into a folder that is not there yet, and gives what a user would name."""

_CODES = (
    "pyautogui.click(x=0.25, y=0.5)",
    "pyautogui.doubleClick(x=0.1, y=0.9)",
    "pyautogui.rightClick(x=0.31, y=0.77)",
    "pyautogui.moveTo(x=0.2, y=0.2)\npyautogui.dragTo(x=0.6, y=0.4, button='left')",
    "pyautogui.write(message='hello; wörld')",
    "pyautogui.hotkey(['ctrl', 's'])",
    "pyautogui.press('enter')",
    "pyautogui.scroll(-5)",
    "computer.wait(2)",
    "computer.terminate(status='success')",
)
_TURNS = (
    "pyautogui.click(96, 54)",
    "pyautogui.doubleClick(20, 30)",
    "pyautogui.write('a;b')",
    "pyautogui.hotkey('ctrl', 'c')",
    "pyautogui.moveTo(10, 20); pyautogui.dragTo(50, 60, button='left')",
    "pyautogui.scroll(-3)",
    "WAIT",
    "import time; time.sleep(1); pyautogui.press('enter')",
    "DONE",
)
_CONTROL: tuple[Mapping[str, Any], ...] = (
    phones.CLICK,
    phones.SCROLL,
    {"action_type": "long_press", "x": 9, "y": 20},
    {"action_type": "open_app", "app_name": "Clock"},
    {"action_type": "type", "x": 45, "y": 100, "text": "7:30"},
    {"action_type": "input_text", "text": "7:30"},
    {"action_type": "navigate_home"},
    {"action_type": "navigate_back"},
    {"action_type": "wait"},
)


@functools.cache
def _sample() -> Path:
    """The sample, written once in a process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_sample(folder / "whole", fps=15)


def _omnigui(folder: Path) -> Path:
    return Path(shutil.copytree(_sample(), folder))


def _omnigui_few(folder: Path) -> Path:
    """Two episodes of the sample: for what writes media."""
    episodes = "C001", "C002"
    with tempfile.TemporaryDirectory() as whole:
        return small(folder, write_sample(Path(whole), fps=15, media_of=episodes), *episodes)


def _omnigui_judged(folder: Path) -> Path:
    """The same two, one of which succeeds."""
    for path in sorted(_omnigui_few(folder).rglob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        judged = [{**row, "is_success": "C001" in json.dumps(row)} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in judged), encoding="utf-8")
    return folder


def _studio(task: str) -> World:
    def write(folder: Path) -> Path:
        acts = [agentstudio.act(n, operation=op) for n, op in enumerate(("CLICK", "TYPE"))]
        rows = {
            "groundui": [
                agentstudio.ground(image=f"{n}.png", bbox=[9 * n, 5, 9 * n + 12, 30], platform=p)
                for n, p in enumerate(("web", "desktop", "mobile"))
            ],
            "idm-single": [
                agentstudio.single(**agentstudio.act(n, operation=op))
                for n, op in enumerate(agentstudio.SPACE)
            ],
            "idm-multiple": [agentstudio.trajectory(*acts), agentstudio.trajectory(acts[1])],
            "criticbench": [
                agentstudio.trajectory(*acts),
                agentstudio.trajectory(acts[0], is_success=False),
            ],
        }[task]
        names = [*(f"{n}.png" for n in range(3)), *(f"m2w/{n}.png" for n in range(5))]
        agentstudio.pictures(folder / "images", names)
        return agentstudio.write(folder / "rows.jsonl", *rows)

    return write


def _omnibench(folder: Path) -> Path:
    return omnibench.library(folder)


def _osworld(folder: Path) -> Path:
    film = osworld.recording((11.0, 21.0, 41.0), 95.0)
    lines = [osworld.line(n, action) for n, action in enumerate(_TURNS, 1)]
    osworld.rollout(folder, *lines, film=film)
    failed = f"{osworld.RUN}/gimp/e2"
    osworld.rollout(folder, osworld.line(1), osworld.line(2, "FAIL"), place=failed, result="0.0")
    return folder


def _aitw(folder: Path) -> Path:
    up = phones.example(1, results__yx_touch=[0.75, 0.5], results__yx_lift=[0.25, 0.5])
    typed = phones.example(2, results__action_type=[3], results__type_action=["7:30"])
    others = [
        phones.example(3 + n, results__action_type=[code])
        for n, code in enumerate((5, 6, 7, 10, 11))
    ]
    path = folder / "google_apps-00000-of-00001"
    phones.records(path, phones.example(), up, typed, *others)
    return folder


def _zoo(folder: Path) -> Path:
    for name in ("GENERAL-5", "GENERAL-6"):
        rows = [
            phones.zoo(episode_length=4, episode_id=name[-1]),
            phones.zoo(
                1,
                episode_length=4,
                episode_id=name[-1],
                result_touch_yx="[0.8, 0.4]",
                result_lift_yx="[0.2, 0.4]",
            ),
            phones.zoo(
                2,
                episode_length=4,
                episode_id=name[-1],
                result_action_type=3,
                result_action_text="7:30",
            ),
            phones.zoo(3, episode_length=4, episode_id=name[-1], result_action_type=10),
        ]
        for row in rows:
            row["image_path"] = f"general/{name}/{name}_{row['step_id']}.png"
        phones.zoo_episode(folder / "general", *rows, name=name)
    return folder


def _cagui(folder: Path) -> Path:
    rows = [phones.cagui(episode_length=2), phones.cagui(1, result_action_type=1, episode_length=2)]
    phones.zoo_episode(folder / "domestic", *rows, name="77")
    return folder


def _control(folder: Path) -> Path:
    phones.records(
        folder / "android_control",
        phones.episode(*_CONTROL),
        phones.episode(phones.SCROLL, number=4),
    )
    (folder / "splits.json").write_text('{"train": [3], "test": [4]}')
    return folder


def _agentnet(folder: Path) -> Path:
    rows = [desk.trajectory(*_CODES), desk.trajectory(*_CODES[:3], _CODES[-1], own="t2")]
    return desk.agentnet(folder, *rows)


def _agentnetbench(folder: Path) -> Path:
    first = desk.bench_step(0, desk.click(0.5, 0.5, [0.4, 0.4, 0.6, 0.6]))
    typed = desk.bench_step(1, desk.gold("write", content="hello"), desk.click(0.1, 0.2))
    keys = desk.bench_step(2, desk.gold("hotkey", keys=["ctrl", "s"]))
    scroll = desk.bench_step(3, desk.gold("scroll", pixels=-5))
    last = desk.bench_step(4, desk.gold("terminate", status="success"))
    return desk.bench(folder, first, typed, keys, scroll, last)


def _screenspot(folder: Path) -> Path:
    rows = [
        desk.spot(),
        desk.spot(data_type="icon", img_filename="web_2.png"),
        desk.spot(bbox=[0, 0, 20, 12], instruction="close it"),
    ]
    return desk.screenspot(folder, *rows)


def _screenspot_pro(folder: Path) -> Path:
    rows = [desk.pro(), desk.pro(id="photoshop_windows_2", bbox=[1, 2, 9, 8], ui_type="text")]
    return desk.screenspot(folder, *rows, name="photoshop_windows.json")


def _odyssey(folder: Path) -> Path:
    return forms.odyssey(forms.odyssey(folder), forms.TAP, forms.ACTS[-1], own="E2")


def _mind2web(folder: Path) -> Path:
    return neighbours.mind2web(folder, *neighbours.three_steps(), *neighbours.three_steps("t2"))


def _osworld_g(folder: Path) -> Path:
    return neighbours.osworld_g(folder)


def _androidworld(folder: Path) -> Path:
    rows = [neighbours.episode(), neighbours.episode("CameraTakePhoto", 0.0)]
    failed = neighbours.episode("CameraTakePhoto", None, exception_info="timeout")
    return neighbours.androidworld(folder, {"m3a": rows, "t3a": [rows[0], failed]})


def _online_mind2web(folder: Path) -> Path:
    return neighbours.online_mind2web(folder)


def _cagui_grounding(folder: Path) -> Path:
    functions = [forms.function(), forms.function(1, text="返回上一页。")]
    return forms.grounding(folder, functions, [forms.label()])


def _critic(task: str) -> World:
    def write(folder: Path) -> Path:
        folder.mkdir()
        agentstudio.pictures(folder / "media", ["a.png"], size=(72, 160))
        return every.rows_of(task, folder)

    return write


WORLDS: Mapping[str, tuple[str, World]] = {
    "omnigui": ("omnigui", _omnigui),
    "omnigui-few": ("omnigui", _omnigui_few),
    **{task: (task, _studio(task)) for task in agentstudio.REAL},
    "omnibench": ("omnibench", _omnibench),
    "osworld": ("osworld", _osworld),
    "aitw": ("aitw", _aitw),
    "aitz": ("aitw", _zoo),
    "cagui": ("aitw", _cagui),
    "androidcontrol": ("androidcontrol", _control),
    "agentnet": ("agentnet", _agentnet),
    "agentnetbench": ("agentnet", _agentnetbench),
    "screenspot": ("screenspot", _screenspot),
    "screenspot-pro": ("screenspot", _screenspot_pro),
    "gui-odyssey": ("gui-odyssey", _odyssey),
    "mind2web": ("mind2web", _mind2web),
    "online-mind2web": ("online-mind2web", _online_mind2web),
    "androidworld": ("androidworld", _androidworld),
    "osworld-g": ("osworld-g", _osworld_g),
    "cagui-grounding": ("cagui-grounding", _cagui_grounding),
    "omnigui-idm": ("omnigui-idm", _omnigui_few),
    "omnigui-critic": ("omnigui-critic", _omnigui_judged),
    "step-critic": ("step-critic", _critic("step-critic")),
    "trajectory-critic": ("trajectory-critic", _critic("trajectory-critic")),
}
"""Name -> the task, and what writes its data."""


KEPT = frozenset({"aitw", "androidcontrol"})
"""Worlds in TFRecords, whose writer does not give the same bytes twice: their files are frozen."""

HOME = Path(__file__).with_name("frozen") / "data"


def build(name: str, folder: Path) -> Path:
    """The data of that world, in a folder of its own below `folder`."""
    place = folder / name / "data"
    shutil.rmtree(place.parent, ignore_errors=True)
    place.parent.mkdir(parents=True)
    if name not in KEPT:
        return WORLDS[name][1](place)
    if not (HOME / name).exists():
        WORLDS[name][1](HOME / name)
    return Path(shutil.copytree(HOME / name, place))
