"""Chirp, a made-up app for calls and messages, in English."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.media import Samples
from omnidata.synth import sounds
from omnidata.synth.drawing import COMPLETE, GREEN, RED, WAIT, WHITE, Theme, shade, type_in
from omnidata.synth.sample import phone
from omnidata.synth.sample.phone import WIDTH, Canvas, Screen
from omnidata.synth.sample.script import Cue, Moment, Script, Task, tap

_NAMES = ("Ada Brook", "Ben Adler", "Cleo Marsh", "Dario Vale", "Esme Holt", "Finn Okoro")
_NOTES = ("See you at six", "Photo", "Thanks a lot!", "Call me back", "On the train", "Ok")


def episodes(*, seed: int) -> Script:
    """Calls to take or to end, and chats to find."""
    script = Script("Chirp", seed=seed)
    theme = Theme.light("Chirp", hue=0.58 + script.rng.uniform(-0.03, 0.03))
    names = script.rng.sample(_NAMES, 6)
    inbox = phone.rows(
        theme,
        title="Chirp",
        entries=[("person", name, note) for name, note in zip(names, _NOTES, strict=True)],
    )
    _ringing(script, theme, inbox, names[0])
    _hanging_up(script, theme, names[1])
    _last_badge(script, theme, inbox, names)
    _finding(script, theme, inbox, names[2])
    _answering(script, theme, inbox, names[3])
    return script


def _call(theme: Theme, name: str, *, note: str, widgets: Sequence[tuple[str, str, str]]) -> Screen:
    """A page for a call; `widgets` are target, icon and label of the round buttons, in a row."""
    canvas = Canvas(theme)
    canvas.gradient((0, 0, WIDTH, 1600), theme.soft, theme.ground)
    canvas.status_bar(theme.ink)
    for radius, light in ((230, 0.86), (185, 0.78), (140, 0.5)):
        canvas.disc((360, 520), radius, shade(0.58, light, 0.55))
    canvas.icon("person", (360, 512), size=170, fill=WHITE)
    canvas.text(name, (360, 840), size=58, fill=theme.ink, bold=True)
    canvas.text(note, (360, 912), size=32, fill=theme.faint)
    colours = {"answer": GREEN, "decline": RED, "hang_up": RED}
    step = WIDTH // len(widgets)
    for k, (target, icon, label) in enumerate(widgets):
        canvas.round_button(
            target,
            (step * k + step // 2, 1260),
            icon,
            radius=82,
            colour=colours.get(target, theme.faint),
            label=label,
        )
    return canvas.finish()


def _chat(theme: Theme, name: str, *, bubbles: Sequence[str], draft: str = "") -> Screen:
    """A conversation; targets `bubble0` ..., `field` and `send`. Own messages begin with a dot."""
    canvas = Canvas(theme, title=name, back=True)
    for k, bubble in enumerate(bubbles):
        own, text = bubble.startswith("."), bubble.lstrip(".")
        width, top = 90 + 16 * len(text), 210 + 128 * k
        left = 690 - width if own else 30
        rect = (left, top, left + width, top + 96)
        canvas.fill(rect, theme.accent if own else theme.card, radius=40)
        ink = WHITE if own else theme.ink
        canvas.text(text, (left + width // 2, top + 48), size=31, fill=ink)
        canvas.target(f"bubble{k}", rect)
    field = (24, 1000, 596, 1090)
    canvas.fill(field, theme.card, radius=44, outline=theme.soft, width=3)
    ink = theme.ink if draft else theme.faint
    canvas.text(draft or "Message", (64, 1045), size=31, fill=ink, anchor="lm")
    canvas.target("field", field)
    canvas.round_button("send", (650, 1045), "send", radius=44, colour=theme.accent)
    phone.keyboard(canvas)
    return canvas.finish()


def _ringing(script: Script, theme: Theme, inbox: Screen, name: str) -> None:
    sides = [("decline", "close", "Decline"), ("answer", "phone", "Answer")]
    widgets = script.rng.sample(sides, 2)
    call = _call(theme, name, note="Incoming call", widgets=widgets)
    talk = _call(theme, name, note="00:01", widgets=[("hang_up", "phone", "End")])
    pitch = script.rng.uniform(0.95, 1.05)
    script.twins(
        Task(
            "cross_modal_discrimination",
            "critical",
            "en",
            "Wait for the call, then listen to the ring: if it is high, tap Answer; "
            "if it is low, tap Decline.",
            "等待来电并听铃声：铃声高就点击“Answer（接听）”，铃声低就点击“Decline（拒接）”。",
        ),
        "audio",
        start=[Moment(inbox, WAIT, script.hear())],
        endings=[
            [
                Moment(call, tap(call, "answer"), _ring(script, 1500 * pitch)),
                Moment(talk, COMPLETE, script.hear(sounds.babble(script.noise, seconds=0.5))),
            ],
            [
                Moment(call, tap(call, "decline"), _ring(script, 420 * pitch)),
                Moment(inbox, COMPLETE, script.hear()),
            ],
        ],
    )


def _ring(script: Script, frequency: float) -> Samples:
    return script.hear(sounds.ring(frequency), seconds=2.0)


def _hanging_up(script: Script, theme: Theme, name: str) -> None:
    widgets = [("mute", "mic", "Mute"), ("hang_up", "phone", "End"), ("add", "plus", "Add")]
    talk = _call(theme, name, note="On the line", widgets=widgets)
    over = phone.done(theme, title="Call ended", note=name)
    speech = sounds.babble(script.noise, seconds=1.3)
    signal = sounds.over(speech, sounds.chime((1320, 990)), at=0.6)
    hang_up = tap(talk, "hang_up")
    end = Moment(over, COMPLETE, script.hear())
    script.twins(
        Task(
            "instant_response",
            "critical",
            "en",
            "Stay on the call while you hear talking, and tap End as soon as the two-note "
            "sign-off chime sounds.",
            "听到说话声时保持通话；一听到两声结束提示音，立即点击“End（结束）”。",
        ),
        "audio",
        start=[Moment(talk, WAIT, script.hear(speech, seconds=1.6))],
        endings=[
            [Moment(talk, hang_up, script.hear(signal, seconds=2.0)), end],
            [
                Moment(talk, WAIT, script.hear(speech, seconds=2.0)),
                Moment(talk, hang_up, script.hear(signal, seconds=2.0)),
                end,
            ],
        ],
    )


def _last_badge(script: Script, theme: Theme, inbox: Screen, names: Sequence[str]) -> None:
    first, second = script.rng.sample(range(6), 2)
    sound = script.hear(seconds=2.0)
    endings = []
    for early, late in ((first, second), (second, first)):
        rows = (inbox.targets[f"row{early}"], inbox.targets[f"row{late}"])
        chat = _chat(theme, names[late], bubbles=("Are you there?",))
        endings.append(
            [
                Moment(inbox, tap(inbox, f"row{late}"), sound, Cue("flash", rows, 1, theme.accent)),
                Moment(chat, COMPLETE, script.hear()),
            ]
        )
    script.twins(
        Task(
            "temporal_reasoning",
            "critical",
            "en",
            "Two chats light up one after the other. Open the one that lit up last.",
            "两个聊天会先后亮起，请打开最后亮起的那个聊天。",
        ),
        "video",
        start=[Moment(inbox, WAIT, script.hear())],
        endings=endings,
    )


def _finding(script: Script, theme: Theme, inbox: Screen, name: str) -> None:
    word = name.split()[0]
    street = sounds.babble(script.noise, seconds=0.9) * 0.3
    empty = phone.search(theme)
    found = phone.search(theme, query=word, results=[("person", name, "Mobile")])
    chat = _chat(theme, name, bubbles=("Hello!", ".Hi there"))
    script.add(
        Task(
            "localization",
            "present",
            "en",
            f"Search for {word} and open the chat.",
            f"搜索 {word} 并打开聊天。",
        ),
        Moment(inbox, tap(inbox, "search"), script.hear(street)),
        Moment(empty, type_in(word), script.hear(street)),
        Moment(found, tap(found, "result0"), script.hear(street)),
        Moment(chat, COMPLETE, script.hear(street)),
    )


def _answering(script: Script, theme: Theme, inbox: Screen, name: str) -> None:
    ping = sounds.chime((880, 1175))
    row = inbox.targets["row3"]
    chat = _chat(theme, name, bubbles=("Where are you?",))
    draft = _chat(theme, name, bubbles=("Where are you?",), draft="On my way")
    sent = _chat(theme, name, bubbles=("Where are you?", ".On my way"))
    liked = _chat(theme, name, bubbles=("Where are you?", ".On my way", "Great <3"))
    hold = tap(liked, "bubble2", "LONG_PRESS")
    menu = phone.dialog(liked, theme, title="React", note="Like this message?", yes="Like", no="No")
    script.add(
        Task(
            "semantic_understanding",
            "supportive",
            "en",
            f'A message from {name} comes in. Reply "On my way"; when the answer arrives, '
            "hold it and like it.",
            f"{name} 发来消息，请回复“On my way”；收到回答后长按该消息并点赞。",
        ),
        Moment(inbox, tap(inbox, "row3"), script.hear(ping), Cue("flash", (row,), 1, theme.accent)),
        Moment(chat, type_in("On my way"), script.hear()),
        Moment(draft, tap(draft, "send"), script.hear()),
        Moment(sent, WAIT, script.hear(sounds.pluck(1568))),
        Moment(liked, hold, script.hear(ping)),
        Moment(menu, tap(menu, "yes"), script.hear()),
        Moment(liked, COMPLETE, script.hear(sounds.pluck(1047))),
    )
