"""A server whose model writes instructions, and reads graphs out of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.servers import Asked, ChatCompletions, Fault, Script, Server, running

_SUBTASK = re.compile(r"^(\w+): (.*)$", re.M)
_NEEDS = re.compile(r"^S(\d+) needs the result of S(\d+)$", re.M)
_TOLD = re.compile(r"^\[(\d+)\] (.*?)(?: <- ([\d ]+))?$", re.M)


@dataclass
class Scribe(ChatCompletions):
    """Writes lines such as `[3] Insert it <- 1 2`, and reads them; see `writing` and `reading`.

    Attributes:
        linear: writes every task as a chain, until it is told that it was misread.
        stubborn: tasks with so many subtasks are always written as chains.
        mute: answers nothing to questions for tasks with so many subtasks.
        babbles: answers readers' questions with no JSON.
        written, read: the questions that came.
    """

    linear: bool = False
    stubborn: int = 0
    mute: int = 0
    babbles: bool = False
    written: list[str] = field(default_factory=list)
    read_: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        system, user = (line.partition("text ")[2] for line in asked.seen)
        if system.startswith("You write instructions"):
            self.written.append(user)
            return super().reply(asked, self._write(user), fault)
        assert system.startswith("You are given an instruction")
        self.read_.append(user)
        return super().reply(asked, self._read(user), fault)

    def _write(self, user: str) -> str:
        subtasks = _SUBTASK.findall(user[user.index("Subtasks:") : user.index("Dependencies:")])
        if len(subtasks) == self.mute:
            return " "
        needs: dict[int, list[int]] = {}
        first = user.split("A reader of an earlier version")[0]
        for second, before in _NEEDS.findall(first):
            needs.setdefault(int(second), []).append(int(before))
        told = "got the dependencies wrong" in user
        if len(subtasks) == self.stubborn or (self.linear and not told):
            needs = {number: [number - 1] for number in range(2, len(subtasks) + 1)}
        lines = []
        for number, (_, text) in enumerate(subtasks, 1):
            before = " ".join(map(str, sorted(needs.get(number, []))))
            lines.append(f"[{number}] {text}" + (f" <- {before}" if before else ""))
        return "\n".join(lines)

    def _read(self, user: str) -> str:
        if self.babbles:
            return "I would rather not say."
        instruction, subtasks = user.split("\nSubtasks:\n")
        letters: dict[str, list[str]] = defaultdict(list)
        for name, text in _SUBTASK.findall(subtasks):
            letters[text].append(name)
        told = _TOLD.findall(instruction)
        names = {number: letters[text].pop() for number, text, _ in told}
        edges = [[names[one], names[number]] for number, _, rest in told for one in rest.split()]
        return f"Here you are:\n```json\n{json.dumps({'edges': edges})}\n```"


@contextmanager
def scribing(scribe: Scribe, script: Script = ()) -> Iterator[Server]:
    with running(scribe, script) as server:
        yield server
