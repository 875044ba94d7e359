"""Sonora, a made-up app for music, in English."""

from __future__ import annotations

from omnidata.actions import Direction
from omnidata.synth import sounds
from omnidata.synth.drawing import BACK, COMPLETE, WAIT, WHITE, Theme, across, shade
from omnidata.synth.sample import phone
from omnidata.synth.sample.phone import Canvas, Screen
from omnidata.synth.sample.script import Moment, Script, Task, tap

_SONGS = (
    ("Paper Lanterns", "Mira Sol"),
    ("Night Ferry", "The Low Tides"),
    ("Copper Rain", "Juno Field"),
    ("Slow Orbit", "Halden"),
    ("Green Windows", "Olive Street"),
)


def episodes(*, seed: int) -> Script:
    """Songs to judge by ear, and a player to steer."""
    script = Script("Sonora", seed=seed)
    theme = Theme.dark("Sonora", hue=0.77 + script.rng.uniform(-0.04, 0.04))
    songs = script.rng.sample(_SONGS, 5)
    library = phone.rows(
        theme, title="Library", entries=[("note", title, artist) for title, artist in songs]
    )
    _counting(script, theme)
    _gliding(script, theme, songs)
    _plucked(script, theme, library, songs[0])
    _steering(script, theme, library, songs)
    _looking_around(script, theme, library, songs)
    return script


def _player(theme: Theme, song: tuple[str, str], *, playing: bool, position: float) -> Screen:
    """A page for a song; targets for the cover, the buttons and the bar."""
    canvas = Canvas(theme, title="Now playing", back=True)
    hue = sum(song[0].encode()) % 100 / 100
    canvas.gradient(
        (90, 230, 630, 770), shade(hue, 0.62, 0.6), shade(hue + 0.2, 0.3, 0.6), radius=40
    )
    canvas.disc((360, 500), 150, shade(hue + 0.1, 0.75, 0.5))
    canvas.icon("note", (360, 500), size=180, fill=shade(hue, 0.3, 0.5))
    canvas.target("cover", (90, 230, 630, 770))
    canvas.text(song[0], (90, 850), size=48, fill=theme.ink, anchor="lm", bold=True)
    canvas.text(song[1], (90, 912), size=32, fill=theme.faint, anchor="lm")
    canvas.bar((90, 990, 630, 1002), position)
    canvas.target("bar", (90, 976, 630, 1016))
    canvas.text(
        f"{int(position * 3)}:{int(position * 180) % 60:02d}",
        (90, 1044),
        size=24,
        fill=theme.faint,
        anchor="lm",
    )
    canvas.text("3:00", (630, 1044), size=24, fill=theme.faint, anchor="rm")
    canvas.round_button("previous", (190, 1180), "previous", radius=58, colour=theme.card)
    canvas.round_button(
        "play", (360, 1180), "pause" if playing else "play", radius=84, colour=theme.accent
    )
    canvas.round_button("next", (530, 1180), "next", radius=58, colour=theme.card)
    for k, (name, label) in enumerate((("heart", "Like"), ("save", "Save"), ("share", "Share"))):
        centre = (160 + 200 * k, 1350)
        canvas.round_button(name, centre, name, radius=46, colour=theme.ground, label=label)
    canvas.fill((260, 1580, 460, 1588), theme.faint, radius=4)
    return canvas.finish()


def _quiz(theme: Theme, *, chosen: int | None = None) -> Screen:
    """A listening game; targets `option1` to `option4`."""
    canvas = Canvas(theme, title="Ear training", back=True)
    canvas.disc((360, 470), 190, theme.soft)
    canvas.icon("headphones", (360, 470), size=220, fill=theme.accent)
    canvas.text("How many beeps?", (360, 760), size=46, fill=theme.ink, bold=True)
    for number in range(1, 5):
        left, top = (48, 376)[(number - 1) % 2], 860 + 240 * ((number - 1) // 2)
        rect = (left, top, left + 296, top + 204)
        ink = WHITE if number == chosen else theme.ink
        canvas.fill(rect, theme.accent if number == chosen else theme.card, radius=30)
        canvas.text(str(number), (left + 148, top + 102), size=84, fill=ink, bold=True)
        canvas.target(f"option{number}", rect)
    canvas.fill((260, 1580, 460, 1588), theme.faint, radius=4)
    return canvas.finish()


def _counting(script: Script, theme: Theme) -> None:
    quiz = _quiz(theme)
    frequency = script.rng.uniform(700, 1100)
    endings = []
    for number in (2, 3, 4):
        sound = script.hear(sounds.beeps(number, frequency=frequency), seconds=2.0, at=0.5)
        after = _quiz(theme, chosen=number)
        endings.append(
            [
                Moment(quiz, tap(quiz, f"option{number}"), sound),
                Moment(after, COMPLETE, script.hear(sounds.chime((784, 1047)))),
            ]
        )
    script.twins(
        Task(
            "cross_modal_discrimination",
            "critical",
            "en",
            "Listen and count the beeps, then tap the tile with that number.",
            "听并数一数提示音的次数，然后点击对应数字的方块。",
        ),
        "audio",
        start=[Moment(quiz, WAIT, script.hear())],
        endings=endings,
    )


def _gliding(script: Script, theme: Theme, songs: list[tuple[str, str]]) -> None:
    now = _player(theme, songs[1], playing=True, position=0.4)
    tune = script.hear(sounds.music(script.noise, seconds=1.2) * 0.5)
    low, high = 300 * script.rng.uniform(0.9, 1.1), 1200 * script.rng.uniform(0.9, 1.1)
    cover = now.targets["cover"]
    endings = []
    glides: tuple[tuple[Direction, tuple[float, float], tuple[str, str]], ...] = (
        ("up", (low, high), songs[2]),
        ("down", (high, low), songs[0]),
    )
    for way, ends, song in glides:
        sound = script.hear(sounds.glide(*ends), seconds=2.0)
        after = _player(theme, song, playing=True, position=0.0)
        endings.append(
            [Moment(now, across(way, cover), sound), Moment(after, COMPLETE, script.hear())]
        )
    script.twins(
        Task(
            "temporal_reasoning",
            "critical",
            "en",
            "Wait for the tone. If its pitch rises, swipe up on the cover; if it falls, "
            "swipe down.",
            "等待提示音：音调上升就在封面上向上滑动，音调下降就向下滑动。",
        ),
        "audio",
        start=[Moment(now, WAIT, tune)],
        endings=endings,
    )


def _plucked(script: Script, theme: Theme, library: Screen, song: tuple[str, str]) -> None:
    now = _player(theme, song, playing=True, position=0.1)
    endings = []
    for name, held in (("heart", False), ("share", True)):
        tune = sounds.music(script.noise, seconds=1.4, held=held)
        after = phone.done(theme, title="Thank you", note=song[0])
        endings.append(
            [
                Moment(now, tap(now, name), script.hear(tune, seconds=2.0, at=0.5)),
                Moment(after, COMPLETE, script.hear()),
            ]
        )
    script.twins(
        Task(
            "semantic_understanding",
            "critical",
            "en",
            f"Play {song[0]}. If the tune is played with short plucked notes, tap Like; "
            "if its notes are long and held, tap Share.",
            f"播放 {song[0]}。如果旋律是短促的拨弦音，点击“Like（喜欢）”；"
            "如果是绵长的持续音，点击“Share（分享）”。",
        ),
        "audio",
        start=[Moment(library, tap(library, "row0"), script.hear())],
        endings=endings,
    )


def _steering(script: Script, theme: Theme, library: Screen, songs: list[tuple[str, str]]) -> None:
    still = _player(theme, songs[3], playing=False, position=0.0)
    first = _player(theme, songs[3], playing=True, position=0.2)
    other = _player(theme, songs[4], playing=True, position=0.0)
    script.add(
        Task(
            "localization",
            "supportive",
            "en",
            f"Open {songs[3][0]}, play it, and skip to the next song once the music is running.",
            f"打开 {songs[3][0]} 并播放，音乐响起后切换到下一首。",
        ),
        Moment(library, tap(library, "row3"), script.hear()),
        Moment(still, tap(still, "play"), script.hear()),
        Moment(first, tap(first, "next"), script.hear(sounds.music(script.noise, seconds=1.0))),
        Moment(other, COMPLETE, script.hear(sounds.music(script.noise, seconds=1.0, held=True))),
    )


def _looking_around(
    script: Script, theme: Theme, library: Screen, songs: list[tuple[str, str]]
) -> None:
    now = _player(theme, songs[2], playing=False, position=0.5)
    following = _player(theme, songs[3], playing=False, position=0.0)
    sound = script.hear(sounds.babble(script.noise, seconds=0.8) * 0.25)
    cover = now.targets["cover"]
    script.add(
        Task(
            "instant_response",
            "present",
            "en",
            f"Open {songs[2][0]}, swipe the cover to the left to see the next song, swipe back to "
            "the right, and return to the library.",
            f"打开 {songs[2][0]}，在封面上向左滑动查看下一首，再向右滑动回来，然后返回资料库。",
        ),
        Moment(library, tap(library, "row2"), sound),
        Moment(now, across("left", cover), sound),
        Moment(following, across("right", cover), sound),
        Moment(now, BACK, sound),
        Moment(library, COMPLETE, sound),
    )
