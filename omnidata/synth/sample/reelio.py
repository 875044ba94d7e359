"""Reelio, a made-up app for short films, in Chinese."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.synth import sounds
from omnidata.synth.drawing import COMPLETE, HOME, RED, WAIT, WHITE, Theme, across, shade, type_in
from omnidata.synth.sample import phone
from omnidata.synth.sample.phone import WIDTH, Canvas, Screen
from omnidata.synth.sample.script import Cue, Moment, Script, Task, tap

_FILMS = ("Harbour at Dawn", "Two Left Shoes", "The Clockmaker", "Windmill Road")
_COMMENTS = ("Lovely light", "Who made this?", "Again!", "So calm", "The ending...", "First")


def episodes(*, seed: int) -> Script:
    """Films to react to while they run."""
    script = Script("Reelio", seed=seed)
    theme = Theme.dark("Reelio", hue=0.98 + script.rng.uniform(-0.03, 0.03))
    films = script.rng.sample(_FILMS, 4)
    _audience(script, theme, films[0])
    _red_flash(script, theme, films[1])
    _blinking(script, theme, films[2])
    _commenting(script, theme, films[3])
    _leaving(script, theme, films)
    return script


def _film(
    theme: Theme,
    title: str,
    *,
    playing: bool = True,
    position: float = 0.3,
    comments: Sequence[str] = _COMMENTS[:4],
) -> Screen:
    """A page for a film; targets for the picture, the buttons, `comments` and `field`."""
    canvas = Canvas(theme, title="Reelio", back=True)
    hue = sum(title.encode()) % 100 / 100
    canvas.gradient((0, 160, WIDTH, 566), shade(hue, 0.7, 0.5), shade(hue + 0.1, 0.35, 0.5))
    canvas.disc((540, 260), 54, shade(hue + 0.5, 0.85, 0.7))
    for k, height in enumerate((120, 190, 90, 150)):
        left = 180 * k
        canvas.fill((left, 566 - height, left + 180, 566), shade(hue + 0.05 * k, 0.22, 0.4))
    canvas.disc((360, 363), 56, (20, 20, 24))
    canvas.icon("pause" if playing else "play", (360, 363), size=60, fill=WHITE)
    canvas.target("picture", (0, 160, WIDTH - 1, 566))
    canvas.target("play", (304, 307, 416, 419))
    canvas.bar((0, 566, WIDTH, 576), position)
    canvas.text(title, (30, 632), size=42, fill=theme.ink, anchor="lm", bold=True)
    canvas.text("2.4k views", (30, 686), size=26, fill=theme.faint, anchor="lm")
    for k, (name, icon) in enumerate((("like", "heart"), ("share", "share"), ("save", "save"))):
        centre = (130 + 230 * k, 790)
        label = name.capitalize()
        canvas.round_button(name, centre, icon, radius=56, colour=theme.soft, label=label)
    canvas.text("Comments", (30, 930), size=32, fill=theme.ink, anchor="lm", bold=True)
    for k, comment in enumerate(comments):
        tint = shade(0.2 * k + 0.1, 0.5, 0.5)
        top = 966 + 124 * k
        canvas.disc((70, top + 50), 32, tint)
        canvas.icon("person", (70, top + 50), size=38, fill=WHITE)
        canvas.text(comment, (126, top + 50), size=30, fill=theme.ink, anchor="lm")
    canvas.target("comments", (0, 960, WIDTH - 1, 1450))
    canvas.fill((24, 1480, 696, 1562), theme.card, radius=40)
    canvas.text("Add a comment", (64, 1521), size=29, fill=theme.faint, anchor="lm")
    canvas.target("field", (24, 1480, 696, 1562))
    return canvas.finish()


def _audience(script: Script, theme: Theme, film: str) -> None:
    page = _film(theme, film)
    murmur = script.hear(sounds.babble(script.noise, seconds=0.9) * 0.3)
    endings = []
    for name, cue in (
        ("share", sounds.laughter(script.noise)),
        ("like", sounds.applause(script.noise)),
    ):
        after = phone.done(theme, title=name.capitalize() + "d", note=film)
        endings.append(
            [
                Moment(page, tap(page, name), script.hear(cue, seconds=2.0, at=0.5)),
                Moment(after, COMPLETE, script.hear()),
            ]
        )
    script.twins(
        Task(
            "semantic_understanding",
            "critical",
            "zh",
            "Listen to the audience. If you hear laughter, tap Share; if you hear applause, "
            "tap Like.",
            "听观众的反应：听到笑声就点击“Share（分享）”，听到掌声就点击“Like（喜欢）”。",
        ),
        "audio",
        start=[Moment(page, WAIT, murmur), Moment(page, WAIT, murmur)],
        endings=endings,
    )


def _red_flash(script: Script, theme: Theme, film: str) -> None:
    page, paused = _film(theme, film), _film(theme, film, playing=False)
    flash = Cue("flash", (page.targets["picture"],), script.rng.choice((1, 2)), RED)
    sound = script.hear(sounds.music(script.noise, seconds=1.2) * 0.4, seconds=2.0)
    stop, end = tap(page, "play"), Moment(paused, COMPLETE, script.hear())
    script.twins(
        Task(
            "instant_response",
            "critical",
            "zh",
            "Watch the film and pause it as soon as the picture flashes red.",
            "观看影片，画面一闪红光就立即暂停。",
        ),
        "video",
        start=[Moment(page, WAIT, sound)],
        endings=[
            [Moment(page, stop, sound, flash), end],
            [Moment(page, WAIT, sound), Moment(page, stop, sound, flash), end],
        ],
    )


def _blinking(script: Script, theme: Theme, film: str) -> None:
    page = _film(theme, film, position=0.6)
    picture = page.targets["picture"]
    sound = script.hear(sounds.music(script.noise, seconds=1.2, held=True) * 0.4, seconds=2.0)
    after = phone.done(theme, title="Noted", note=film)
    endings = [
        [
            Moment(page, tap(page, "picture", kind), sound, Cue("flash", (picture,), times)),
            Moment(after, COMPLETE, script.hear()),
        ]
        for kind, times in (("DOUBLE_TAP", 1), ("LONG_PRESS", 3))
    ]
    script.twins(
        Task(
            "cross_modal_discrimination",
            "critical",
            "zh",
            "The picture lights up once or three times. Once: double-tap it. Three times: "
            "press and hold it.",
            "画面会亮一次或三次：亮一次就双击画面，亮三次就长按画面。",
        ),
        "video",
        start=[Moment(page, WAIT, script.hear())],
        endings=endings,
    )


def _commenting(script: Script, theme: Theme, film: str) -> None:
    text = script.rng.choice(("很好看", "太美了", "喜欢这部"))
    page = _film(theme, film)
    lower = _film(theme, film, comments=_COMMENTS[2:])
    typing = phone.search(theme, title="Comment", hint="Say something")
    tune = [script.hear(sounds.music(script.noise, seconds=1.0) * 0.5) for _ in range(3)]
    script.add(
        Task(
            "localization",
            "supportive",
            "zh",
            f'Scroll down the comments while the film runs, then add the comment "{text}".',
            f"影片播放时向下浏览评论，然后发表评论“{text}”。",
        ),
        Moment(page, across("up", page.targets["comments"]), tune[0]),
        Moment(lower, tap(lower, "field"), tune[1]),
        Moment(typing, type_in(text), tune[2]),
        Moment(page, COMPLETE, script.hear(sounds.pluck(1175))),
    )


def _leaving(script: Script, theme: Theme, films: Sequence[str]) -> None:
    feed = phone.rows(theme, title="Reelio", entries=[("film", name, "New") for name in films])
    page = _film(theme, films[1], position=0.1)
    street = script.hear(sounds.babble(script.noise, seconds=0.9) * 0.3)
    script.add(
        Task(
            "temporal_reasoning",
            "present",
            "zh",
            "Open the second film, swipe the picture down to leave it, then go to the home "
            "screen of the phone.",
            "打开第二部影片，在画面上向下滑动退出，然后回到手机主屏幕。",
        ),
        Moment(feed, tap(feed, "row1"), street),
        Moment(page, across("down", page.targets["picture"]), street),
        Moment(feed, HOME, street),
        Moment(script.start, COMPLETE, street),
    )
