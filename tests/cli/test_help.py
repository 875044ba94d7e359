"""`--help`: every verb has a purpose, examples that parse, and a text for each option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.running import command_group, help_text

BANNED = (
    *("mend", "mends", "comes", "came", "told", "tells", "lie", "lies", "gives", "room"),
    *("whoever", "nobody", "somebody", "remedy", "beside", "unless given", "if left", "of which"),
    *("that which", "so often", "so many", "so long", "goes on", "made up", "stands"),
)


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb with its path, those below other verbs too."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from verbs(command.get_command(None, name), (*path, name))


ROOT = command_group()
VERBS = dict(verbs(ROOT))
GROUPS = [path[:1] for path in VERBS if len(path) > 1]


def shown(path: tuple[str, ...]) -> str:
    return help_text(*path, width=80)


def examples(text: str) -> list[str]:
    block = re.search(r"^Examples?:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert block, "there is no example"
    commands = re.sub(r" \\\n +", " ", block[1])
    return [line.strip() for line in commands.splitlines()]


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_example_parses(path: tuple[str, ...]) -> None:
    for example in examples(shown(path)):
        name, *words = shlex.split(example)
        assert name == "omnidata" and tuple(words[: len(path)]) == path
        command = VERBS[path]
        context = command.context_class(command, info_name=example)
        parser = command.make_parser(context)
        given, rest, _ = parser.parse_args(words[len(path) :])
        assert not rest
        lacking = [one.name for one in command.params if one.required and not given.get(one.name)]
        assert not lacking, f"{example} lacks {lacking}"


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_the_purpose_is_a_line_and_every_argument_and_option_has_a_help_text(
    path: tuple[str, ...],
) -> None:
    command = VERBS[path]
    context = command.context_class(command)
    without = [one.name for one in command.get_params(context) if not getattr(one, "help", "")]
    assert not without
    assert "as_json" in [one.name for one in command.params]
    first = (command.help or "").split("\n\n")[0]
    assert "\n" not in first.strip() and first.strip().endswith(".")


@pytest.mark.parametrize("path", [(), *dict.fromkeys(GROUPS), *VERBS], ids=" ".join)
def test_help_uses_plain_words_and_fits_80_columns(path: tuple[str, ...]) -> None:
    text = shown(path)
    assert max(map(len, text.splitlines())) <= 80
    words = re.sub(r"--[\w-]+", "", text).lower()
    assert not [word for word in BANNED if re.search(rf"\b{word}\b", " ".join(words.split()))]


def test_options_stand_in_groups() -> None:
    text = shown(("evaluate",))
    heads = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert heads == [
        *("Example:", "Arguments:", "Options:", "Steps:", "Model:", "Requests and cost:"),
        *("Processes and cluster:", "Reading data:", "Output:"),
    ]
    assert "[default: 6]" in text and "x>=" not in text
