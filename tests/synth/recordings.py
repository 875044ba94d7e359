"""Small recordings whose screenshots a server tells apart, and servers that answer by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from omnidata.actions import Action, Box
from omnidata.loaders.tree_writer import TreeEpisode, TreeWriter
from tests.adapters.servers import Asked, ChatCompletions, Fault, Server, running, seen_image
from tests.cli.running import here
from tests.data.tiny import png
from tests.export.small import seen_steps
from tests.trees import read_lines

TAP = Action("tap", (Box(18, 40, 36, 80, "px"),))
"""On a screen of 72 x 160 pixels: [250, 250] to [500, 500] of 1000."""

HIT, MISS = [400, 400], [900, 900]
END = Action.of("TASK_COMPLETE")
Rule = Callable[[list[str]], "Fault | str"]


def recording(
    root: Path,
    *episodes: Sequence[Action | None],
    app: str = "App",
    seed: int = 0,
    extra: Mapping[str, Any] = {},
    of_episodes: Sequence[Mapping[str, Any]] = (),
    languages: Sequence[Literal["en", "zh"]] = ("en",),
) -> Path:
    """Episodes E0, E1, ...; screenshot n of episode e is `png(seed + 100 * e + n)`.

    Args:
        root: a new folder.
        episodes: the actions of each; None = a step without a target.
        app: its name.
        seed: of the media.
        extra: further columns of every step.
        of_episodes: further columns of each episode.
        languages: of the episodes, which take turns.
    """
    with TreeWriter(root) as tree:
        for number, actions in enumerate(episodes):
            steps = seen_steps(actions, first=seed + 100 * number, extra=extra)
            tree.add(
                TreeEpisode(
                    f"E{number}",
                    app=app,
                    dimension="semantic_understanding",
                    steps=steps,
                    instruction_en=f"Task {number}",
                    instruction_zh=f"打开任务 {number}",
                    dependency="supportive",
                    language=languages[number % len(languages)],
                    extra=of_episodes[number] if of_episodes else {},
                )
            )
    return root


def picture(number: int) -> str:
    """What a server sees of `png(number)`."""
    return f"user: {seen_image(png(number))}"


def says(kind: int, place: Sequence[float] | None = None, **more: Any) -> str:
    body: dict[str, Any] = {"action_type": kind, **more}
    return json.dumps(body if place is None else {**body, "coordinate": place})


class Answering(ChatCompletions):
    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    async def read(self, request: web.Request) -> Asked:
        asked = await super().read(request)
        found = self.rule(asked.seen)
        if isinstance(found, Fault) and found.status >= 400:
            raise web.HTTPInternalServerError(text="{}")
        return asked

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        found = self.rule(asked.seen)
        told = found if isinstance(found, Fault) else Fault(text=found)
        return super().reply(asked, told.text, told)


@contextmanager
def answering(rule: Rule, script: Callable[[int], Fault] | None = None) -> Iterator[Server]:
    """A server whose model answers by a rule; a script may make it wait or fail."""
    with running(Answering(rule), script or (lambda number: Fault())) as server:
        yield server


def by_first(answers: Mapping[int, Fault | str], otherwise: Fault | str) -> Rule:
    """Answers by the first screenshot that is shown.

    Args:
        answers: by the number of the screenshot.
        otherwise: to all others.
    """
    known = {picture(number): answer for number, answer in answers.items()}

    def rule(seen: list[str]) -> Fault | str:
        first = next(line for line in seen if line.startswith("user: image"))
        return known.get(first, otherwise)

    return rule


def command(verb: str, server: Server, *arguments: str | Path) -> list[str | Path]:
    address = ["--model", "openai:tiny", "--base-url", f"{server.url}/v1", "--attempts", "1"]
    return ["synth", verb, *arguments, *address]


def ask(verb: str, server: Server, *arguments: str | Path, code: int = 0) -> Any:
    return json.loads(here(*command(verb, server, *arguments), "--json", code=code).stdout)


def rows(tree: Path, app: str = "App", episode: str = "E0") -> list[dict[str, Any]]:
    path = tree / app / "media" / episode / f"{episode}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def episodes(tree: Path, app: str = "App") -> list[dict[str, Any]]:
    return read_lines(tree / app / "semantic_understanding.jsonl")
