"""Homely, a made-up app for a smart home, in English and Chinese."""

from __future__ import annotations

from omnidata.actions import Direction
from omnidata.media import Samples
from omnidata.synth import sounds
from omnidata.synth.drawing import (
    BACK,
    COMPLETE,
    GREEN,
    RED,
    WAIT,
    WHITE,
    Theme,
    across,
    shade,
    swipe,
)
from omnidata.synth.sample import phone
from omnidata.synth.sample.phone import WIDTH, Canvas, Screen
from omnidata.synth.sample.script import Cue, Moment, Script, Task, tap

_DEVICES = ("lamp", "door", "oven", "fan", "camera", "bell")


def episodes(*, seed: int) -> Script:
    """Devices that ask for something by a light or a sound."""
    script = Script("Homely", seed=seed)
    theme = Theme.light("Homely", hue=0.45 + script.rng.uniform(-0.03, 0.03))
    devices = script.rng.sample(_DEVICES, 6)
    house = _house(theme, devices)
    _blinking(script, theme, devices)
    _alert(script, theme, house)
    _alarm(script)
    _passing(script, theme, house)
    _lighting(script, theme, devices)
    _reading(script, theme, house)
    return script


def _house(theme: Theme, devices: list[str], *, on: str | None = None) -> Screen:
    """A grid of devices; one target per device, and `log` (a button)."""
    canvas = Canvas(theme, title="Homely")
    canvas.text("All devices", (36, 216), size=36, fill=theme.ink, anchor="lm", bold=True)
    for k, device in enumerate(devices):
        left, top = (24, 372)[k % 2], 260 + 360 * (k // 2)
        rect = (left, top, left + 324, top + 336)
        active = device == on
        canvas.fill(rect, theme.accent if active else theme.card, radius=32)
        canvas.disc((left + 92, top + 100), 62, WHITE if active else theme.soft)
        canvas.icon(device, (left + 92, top + 100), size=76, fill=theme.accent)
        ink = WHITE if active else theme.ink
        name = device.capitalize()
        canvas.text(name, (left + 34, top + 226), size=36, fill=ink, anchor="lm", bold=True)
        state = "On" if active else "Off"
        ink = WHITE if active else theme.faint
        canvas.text(state, (left + 34, top + 278), size=28, fill=ink, anchor="lm")
        canvas.target(device, rect)
    canvas.button("log", (24, 1352, 696, 1444), "Event log", icon="clock")
    canvas.navigation(("home", "bell", "shield", "person"), active=0)
    return canvas.finish()


def _notice(theme: Theme) -> Screen:
    """A page for an alert that does not say which; targets `unlock`, `call` and `ignore`."""
    canvas = Canvas(theme, title="Alert")
    canvas.disc((360, 520), 210, theme.soft)
    canvas.icon("bell", (360, 520), size=240, fill=theme.accent)
    canvas.text("Your home wants you", (360, 840), size=46, fill=theme.ink, bold=True)
    canvas.text("What do you hear?", (360, 904), size=32, fill=theme.faint)
    canvas.button("unlock", (60, 1020, 660, 1130), "Unlock the door", colour=GREEN, icon="door")
    canvas.button("call", (60, 1160, 660, 1270), "Call for help", colour=RED, icon="phone")
    canvas.button("ignore", (60, 1300, 660, 1410), "Ignore")
    return canvas.finish()


def _clock(theme: Theme, *, hue: float) -> Screen:
    """An alarm that rings; targets `knob`, `snooze` and `stop`."""
    canvas = Canvas(theme)
    canvas.gradient((0, 0, WIDTH, 1600), shade(hue, 0.12, 0.5), shade(hue + 0.25, 0.42, 0.5))
    canvas.status_bar(WHITE)
    canvas.icon("clock", (360, 380), size=150, fill=WHITE)
    canvas.text("6:30", (360, 620), size=170, fill=WHITE)
    canvas.text("Alarm", (360, 750), size=38, fill=WHITE)
    canvas.fill((40, 1180, 680, 1340), shade(hue + 0.1, 0.3, 0.4), radius=80)
    canvas.text("Snooze", (150, 1260), size=34, fill=WHITE)
    canvas.text("Stop", (580, 1260), size=34, fill=WHITE)
    canvas.disc((360, 1260), 72, WHITE)
    canvas.icon("bell", (360, 1260), size=76, fill=shade(hue + 0.1, 0.35, 0.5))
    canvas.target("knob", (288, 1188, 432, 1332))
    canvas.target("snooze", (40, 1180, 240, 1340))
    canvas.target("stop", (480, 1180, 680, 1340))
    return canvas.finish()


def _hall(theme: Theme) -> Screen:
    """The picture of a camera; targets `picture`, `record` and `talk`."""
    canvas = Canvas(theme, title="Hall camera", back=True)
    canvas.gradient((24, 200, 696, 900), shade(0.58, 0.4, 0.2), shade(0.08, 0.3, 0.2), radius=30)
    canvas.fill((80, 380, 220, 800), shade(0.07, 0.2, 0.4), radius=6)
    canvas.fill((500, 380, 640, 800), shade(0.07, 0.2, 0.4), radius=6)
    canvas.fill((24, 800, 696, 806), shade(0.08, 0.15, 0.2))
    canvas.disc((70, 240), 12, RED)
    canvas.text("LIVE", (94, 240), size=26, fill=WHITE, anchor="lm")
    canvas.target("picture", (24, 200, 696, 900))
    canvas.text("Swipe to turn the camera", (360, 980), size=30, fill=theme.faint)
    canvas.round_button(
        "record", (240, 1180), "camera", radius=74, colour=theme.accent, label="Record"
    )
    canvas.round_button("talk", (480, 1180), "mic", radius=74, colour=theme.accent, label="Talk")
    canvas.navigation(("home", "bell", "shield", "person"), active=2)
    return canvas.finish()


def _blinking(script: Script, theme: Theme, devices: list[str]) -> None:
    house = _house(theme, devices)
    sound = script.hear(seconds=2.0)
    times = script.rng.choice((2, 3))
    endings = []
    for device in devices[:3]:
        cue = Cue("flash", (house.targets[device],), times, theme.accent)
        after = _house(theme, devices, on=device)
        endings.append(
            [Moment(house, tap(house, device), sound, cue), Moment(after, COMPLETE, script.hear())]
        )
    script.twins(
        Task(
            "localization",
            "critical",
            "en",
            "One device blinks for a moment. Tap that device.",
            "有一个设备会闪烁片刻，请点击那个设备。",
        ),
        "video",
        start=[Moment(house, WAIT, script.hear())],
        endings=endings,
    )


def _alert(script: Script, theme: Theme, house: Screen) -> None:
    notice = _notice(theme)
    bell = sounds.chime((script.rng.uniform(640, 700), script.rng.uniform(500, 540)))
    smoke = sounds.beeps(9, frequency=script.rng.uniform(2700, 3100), every=0.14)
    endings = []
    for name, cue, title in (
        ("unlock", bell, "Door unlocked"),
        ("call", smoke, "Help is coming"),
    ):
        after = phone.done(theme, title=title, note="Homely")
        endings.append(
            [
                Moment(notice, tap(notice, name), script.hear(cue, seconds=2.0)),
                Moment(after, COMPLETE, script.hear()),
            ]
        )
    script.twins(
        Task(
            "cross_modal_discrimination",
            "critical",
            "en",
            "When the alert comes, listen: for the soft two-note doorbell unlock the door, for "
            "the fast high beeps of the smoke alarm call for help.",
            "收到提醒时请听：柔和的两声门铃就开门，急促的高音烟雾警报就呼叫求助。",
        ),
        "audio",
        start=[Moment(house, WAIT, script.hear())],
        endings=endings,
    )


def _alarm(script: Script) -> None:
    hue = 0.7 + script.rng.uniform(-0.1, 0.1)
    theme = Theme.dark("Homely", hue=hue)
    clock = _clock(theme, hue=hue)
    frequency = script.rng.uniform(800, 1000)
    slow = sounds.beeps(2, frequency=frequency, every=0.6)
    fast = sounds.beeps(8, frequency=frequency, every=0.15)
    endings = []
    slides: tuple[tuple[Direction, str, Samples, str], ...] = (
        ("left", "snooze", slow, "Ten more minutes"),
        ("right", "stop", fast, "Good morning"),
    )
    for way, place, cue, title in slides:
        slide = swipe(way, clock.targets["knob"], clock.targets[place])
        after = phone.done(theme, title=title, note="6:30")
        endings.append(
            [
                Moment(clock, slide, script.hear(cue, seconds=2.0)),
                Moment(after, COMPLETE, script.hear()),
            ]
        )
    script.twins(
        Task(
            "instant_response",
            "critical",
            "zh",
            "If the alarm beeps slowly, slide the knob left to snooze; if it beeps fast, slide it "
            "right to stop.",
            "闹钟响声慢就向左滑动按钮稍后提醒，响声急促就向右滑动按钮停止。",
        ),
        "audio",
        start=[Moment(clock, WAIT, script.hear())],
        endings=endings,
    )


def _passing(script: Script, theme: Theme, house: Screen) -> None:
    hall = _hall(theme)
    picture = hall.targets["picture"]
    sound = script.hear(seconds=2.0)
    after = phone.done(theme, title="Camera turned", note="Hall")
    ways: tuple[tuple[Direction, int], ...] = (("left", -1), ("right", 1))
    endings = [
        [
            Moment(hall, across(kind, picture), sound, Cue("move", (picture,), way, WHITE)),
            Moment(after, COMPLETE, script.hear()),
        ]
        for kind, way in ways
    ]
    script.twins(
        Task(
            "temporal_reasoning",
            "critical",
            "zh",
            "Open the camera. A ball rolls through the hall. Swipe the picture in the direction "
            "in which it rolled.",
            "打开摄像头，会有一个球滚过走廊，请在画面上朝球滚动的方向滑动。",
        ),
        "video",
        start=[Moment(house, tap(house, "camera"), script.hear())],
        endings=endings,
    )


def _lighting(script: Script, theme: Theme, devices: list[str]) -> None:
    off, on = _house(theme, devices), _house(theme, devices, on="lamp")
    click = sounds.pluck(2000, seconds=0.08)
    script.add(
        Task(
            "semantic_understanding",
            "supportive",
            "en",
            "It is dark at home: switch on the device that gives light and check that it clicks.",
            "家里很暗：请打开能照明的设备，并确认听到开关声。",
        ),
        Moment(off, tap(off, "lamp"), script.hear()),
        Moment(on, COMPLETE, script.hear(click)),
    )


def _reading(script: Script, theme: Theme, house: Screen) -> None:
    entries = [
        ("door", "Door opened", "8:02"),
        ("lamp", "Lamp on", "8:05"),
        ("camera", "Somebody in the hall", "8:11"),
        ("fan", "Fan on", "9:30"),
        ("oven", "Oven at 180 degrees", "12:00"),
        ("bell", "Doorbell", "12:20"),
        ("door", "Door closed", "12:21"),
        ("lamp", "Lamp off", "13:00"),
        ("oven", "Oven off", "13:10"),
        ("fan", "Fan off", "17:45"),
        ("bell", "Doorbell", "18:02"),
    ]
    top = phone.rows(theme, title="Event log", entries=entries, back=True)
    low = phone.rows(theme, title="Event log", entries=entries, first=3, back=True)
    hum = script.hear(sounds.babble(script.noise, seconds=0.9) * 0.25)
    script.add(
        Task(
            "temporal_reasoning",
            "present",
            "zh",
            "Open the event log, scroll to its end, scroll up again and go back.",
            "打开事件记录，滚动到末尾，再向上滚动回去，然后返回。",
        ),
        Moment(house, tap(house, "log"), hum),
        Moment(top, across("up", top.targets["list"]), hum),
        Moment(low, across("down", low.targets["list"]), hum),
        Moment(top, BACK, hum),
        Moment(house, COMPLETE, hum),
    )
