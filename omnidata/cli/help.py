"""The layout of `--help`: text, examples to copy, arguments, and options in groups."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from typer import Typer
from typer.core import TyperCommand, TyperGroup

EXAMPLE: Final = "Example: "
"""Start of a docstring's paragraph that is an example."""
_FEW: Final = 10
"""The largest number of options in one list without groups."""
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Steps": ("where", "exclude", "limit", "shard"),
    "Model": ("model", "model_options", "base_url", "key_file", "models"),
    "Requests and cost": (
        "concurrency",
        "rpm",
        "tpm",
        "timeout",
        "attempts",
        "max_cost",
        "max_tokens",
        "prices",
        "cache",
        "reuse_answers",
    ),
    "Processes and cluster": (
        "workers",
        "engine",
        "address",
        "gpus",
        "gpus_per_worker",
        "cpus_per_worker",
    ),
    "Reading data": (
        "strict",
        "changed_media",
        "media_root",
        "token",
        "cache_dir",
        "cache_bytes",
        "no_cache",
    ),
    "Output": ("form", "as_json", "each_finding", "help"),
}
_KINDS: Final[Mapping[str, str]] = {"int": "N", "float": "X", "str": "NAME", "path": "PATH"}
_KIND = re.compile(r"<(int|float|str|path)(?: range)?>")
_RANGE = re.compile(r"(?:; |(?<=\[))[-\d.]*<?=?x[<>]=?[-\d.]+")


class Verb(TyperCommand):
    """A verb whose help has examples that can be copied, and options in groups."""

    def invoke(self, ctx: Any) -> None:
        """Run the verb; exit with 1 if it returns true."""
        if super().invoke(ctx):
            ctx.exit(1)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments without the braces of the parser."""
        pieces = super().collect_usage_pieces(ctx)
        return [_argument(piece) for piece in pieces]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Return the text of the docstring, then its examples, each in lines that can be pasted."""
        paragraphs = (self.help or "").split("\n\n")
        examples = [
            " ".join(paragraph.strip().removeprefix(EXAMPLE).split())
            for paragraph in paragraphs
            if paragraph.strip().startswith(EXAMPLE)
        ]
        for paragraph in paragraphs:
            if paragraph.strip() and not paragraph.strip().startswith(EXAMPLE):
                formatter.write_paragraph()
                with formatter.indentation():
                    formatter.write_text(" ".join(paragraph.split()))
        if examples:
            with formatter.section("Example" if len(examples) == 1 else "Examples"):
                for example in examples:
                    formatter.write(_command_lines(example, formatter.width))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options by group; few options are one group."""
        arguments: list[tuple[str, str]] = []
        options: dict[str, tuple[str, str]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                name, text = record
                arguments.append((re.sub(r" <.*?>$", "", name), text.replace("  [required]", "")))
            else:
                options[param.name or ""] = _option(*record)
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        for group, records in _by_group(options).items():
            with formatter.section(group):
                formatter.write_dl(records)


def group(text: str, *, cls: type[Verbs] | None = None, epilog: str | None = None) -> Typer:
    """Return a verb that has verbs below it."""
    made = Typer(
        cls=cls or Verbs, help=text, epilog=epilog, no_args_is_help=True, rich_markup_mode=None
    )
    made.callback()(lambda: None)  # a group even if it has one verb
    return made


class Verbs(TyperGroup):
    """Verbs below a verb, each in one whole line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Return the first line of each verb's help."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            write_verbs(formatter, {name: self.get_command(ctx, name) for name in names})


def write_verbs(formatter: Any, verbs: Mapping[str, Any], widest: int = 0) -> None:
    """Return a line for each verb: its name and the first line of its help."""
    widest = widest or max(map(len, verbs))
    for name, verb in verbs.items():
        first = (verb.help or "").strip().partition("\n")[0]
        formatter.write(f"  {name:{widest}}  {first}\n")


def _command_lines(command: str, width: int) -> str:
    r"""Return a command, indented and continued with a backslash where it is too long.

    Examples:
        >>> print(_command_lines("omnidata info data --plot figure.png", 30), end="")
          omnidata info data \
            --plot figure.png
    """
    lines, line = [], " "
    for word in _words(command):
        if len(line) + len(word) + 3 > width and line.strip():
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    return "\n".join([*lines, line]) + "\n"


def _words(command: str) -> list[str]:
    words: list[str] = []
    for word in (f'"{one}"' if " " in one else one for one in shlex.split(command)):
        if words and words[-1].startswith("-") and " " not in words[-1]:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _argument(piece: str) -> str:
    inner = re.fullmatch(r"\{(.*)\}(\.\.\.)?", piece)
    if inner is None:
        return piece.replace("[[OUT]]", "[OUT]")
    name, more = inner[1], inner[2] or ""
    return name if name.endswith("...") or " " in name else name + more


def _option(name: str, text: str) -> tuple[str, str]:
    name = _KIND.sub(lambda found: _KINDS[found[1]], name)
    text = _RANGE.sub("", text).replace("[; ", "[").replace("  []", "")
    return name, text


def _by_group(options: Mapping[str, tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    if len(options) <= _FEW:
        return {"Options": [*options.values()]}
    groups = {
        group: [name for name in options if name in names] for group, names in _GROUPS.items()
    }
    groups = {group: names for group, names in groups.items() if len(names) > 1}
    placed = {name for names in groups.values() for name in names}
    own = {"Options": [name for name in options if name not in placed]}
    return {
        group: [options[name] for name in names] for group, names in (own | groups).items() if names
    }
