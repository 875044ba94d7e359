"""OmniGUI's unified prompt, version 2, with its ablations and its voice instruction.

The text is the benchmark's (Appendix A.1), kept byte for byte as the release has it in
`prompts/omnigui_v2.txt`; `prompts/SOURCES.md` has the hashes of all five variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from omnidata.actions import history_text
from omnidata.errors import DataError, UsageError
from omnidata.jsontext import hash_of
from omnidata.loaders.instructions import MIN_BYTES, find_voice, voice_file
from omnidata.tasks.benchmark import History
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.omnigui.rows import is_history
from omnidata.types import Conversation, MediaRef, Message, Part, Step

_HISTORY_VERSION: Final = "history-v1"
OPTIONS: Mapping[str, Sequence[str]] = {
    "modalities": ("IAV", "IV", "IA", "I"),
    "history": ("gold", "none", "predicted"),
    "history_screenshot": ("on", "off"),
    "prompt_form": ("paper", "release"),
    "voice": ("",),
    "voice_form": ("paper", "release"),
}
_WITH = {
    "IAV": "screenshots, audio and video",
    "IV": "screenshots and video",
    "IA": "screenshots and audio",
    "I": "screenshots",
}
_ASK = "Analyze the current screenshot and output the next action as JSON."
_DIRECTIVE = "Listen to the voice instruction audio for the task description."
_PLACEHOLDER = {
    "paper": "[Please listen to the voice instruction]",
    "release": "[请听语音指令 / Please listen to the voice instruction]",
}
_FIRST_RULE = "- Base actions on the current screenshot (the last image in your input).\n"
_RELEASE_ENGLISH = {
    *("amazon", "instagram", "snapchat", "spotify", "x", "youtube", "tiktok", "duolingo"),
    *("googletranslate", "imdb", "ted", "vimeo", "redbulltv", "tasty"),
}


def instructions_of(step: Step) -> tuple[str, ...]:
    """Return the paper's instruction, then the release's if it differs and is not empty."""
    release = _release_instruction(step.source) if _is_released(step.source) else ""
    others = (release,) if release and release != step.instruction else ()
    return (step.instruction, *others)


@cache
def system_prompt(modalities: str = "IAV", voice_form: str = "") -> str:
    """Return the system prompt.

    Args:
        modalities: "IAV", or an ablation of section 4.3: "IV", "IA", "I".
        voice_form: "" for a written instruction; "paper" puts the directive before the normal first
            sentence (Appendix A.1); "release" is the released code's own wording.

    Examples:
        >>> print(system_prompt("I").split(". You need")[0])
        You are an Android GUI Agent. You are given a task and your action history, with screenshots
    """
    text = prompt_text("omnigui", "omnigui_v2")
    if voice_form == "release":
        text = text.replace(
            "You are given a task and your action history, with screenshots, audio and video. "
            "You need to perform the next action",
            "You are given a task via voice instruction, along with your action history, "
            "screenshots, audio and video. You need to listen to the voice instruction and perform "
            "the next action",
        ).replace(_FIRST_RULE, f"{_FIRST_RULE}- {_DIRECTIVE}\n")
    text = text.replace(_WITH["IAV"], _WITH[modalities], 1)
    return f"{_DIRECTIVE}\n{text}" if voice_form == "paper" else text


class Prompt:
    """Builds conversations in the paper's order: history shot, clip, audio, screenshot, text."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        self.voice = Path(options["voice"]) if options["voice"] else None
        self.voice_form = options["voice_form"] if self.voice else ""
        if self.voice and not self.voice.is_dir():
            raise UsageError(
                "the folder does not exist",
                where=f"-T voice={self.voice}",
                expected="a folder of WAV files named after the MD5 of each instruction",
            )
        self.hash = hash_of(
            [
                {k: v for k, v in options.items() if k in OPTIONS and k != "voice"},
                system_prompt(options["modalities"], self.voice_form),
                self.voice_form and _PLACEHOLDER[self.voice_form],
                _ASK,
                _HISTORY_VERSION,
            ]
        )

    def conversation(self, step: Step, history: History) -> Conversation:
        """Return the system and user message for one step.

        Raises:
            DataError: the voice instruction has no WAV file (`voice_form=paper`).
        """
        instruction = step.instruction
        if self.options["prompt_form"] == "release" and _is_released(step.source):
            instruction = _release_instruction(step.source)
        voice = self._voice(step, instruction)
        goal = _PLACEHOLDER[self.voice_form] if voice else instruction
        blocks = [f"Goal: {goal}", f"Step: {step.step_index}"]
        if lines := _history_lines(step, history):
            blocks.append("Action History:\n" + "\n".join(lines))
        modalities = self.options["modalities"]
        roles = [role for letter, role in (("V", "video"), ("A", "audio")) if letter in modalities]
        media = {role: step.media.get(role) for role in (*roles, "screenshot")}
        parts = [Part(ref.kind, media=ref, role=role) for role, ref in media.items() if ref]
        if voice:
            at = len(parts) - (self.voice_form == "paper" and bool(media["screenshot"]))
            parts.insert(at, Part("audio", media=voice, role="voice"))
        past = step.media.get("history_screenshot")
        if past and self.options["history_screenshot"] == "on":
            parts[:0] = [
                Part("text", "[History Screenshot]:", role="history_screenshot"),
                Part("image", media=past, role="history_screenshot"),
            ]
        parts.append(Part("text", "\n\n".join([*blocks, _ASK])))
        system = system_prompt(self.options["modalities"], self.voice_form)
        return (
            Message("system", (Part("text", system),)),
            Message("user", tuple(parts)),
        )

    def _voice(self, step: Step, instruction: str) -> MediaRef | None:
        if self.voice is None:
            return None
        if found := find_voice(self.voice, instruction):
            return found
        if self.voice_form == "release":
            return None  # the released code falls back to the written goal without a word
        raise DataError(
            "the instruction has no spoken form",
            where=f"{step.sample_id}: {self.voice / voice_file(instruction)}",
            expected=f"a WAV file of more than {MIN_BYTES} bytes, named after the MD5 of "
            "the instruction",
            remedy=f"run `omnidata voice omnigui DATA {self.voice}` first, or leave out -T voice",
        )


def _history_lines(step: Step, history: History) -> list[str]:
    own = step.source.get("action_history")
    if history.source == "gold" and is_history(own):
        shown = own[history.first_shown(len(own)) :]
        return [f"Step {entry['step_index']}: {entry['action_text']}" for entry in shown]
    past = zip(history.actions(step), step.history_screens, strict=False)
    return [
        f"Step {index}: {history_text(action, screen)}"
        for index, (action, screen) in enumerate(past)
        if action is not None
    ]


def _is_released(row: Mapping[str, Any]) -> bool:
    return "app" in row or "instruction" in row


def _release_instruction(row: Mapping[str, Any]) -> str:
    if row.get("app") in _RELEASE_ENGLISH:
        return str(row.get("instruction_en", row.get("instruction", "")))
    return str(row.get("instruction", ""))
