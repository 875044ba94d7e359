"""No code outside a benchmark's folder names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import omnidata

PACKAGE = Path(omnidata.__file__).parent
POINTS = distribution("omnidata").entry_points.select(group="omnidata.tasks")
FOLDERS = {point.value.split(".")[2] for point in POINTS}
NAMES = re.compile("|".join(sorted({point.name for point in POINTS} | FOLDERS)), re.IGNORECASE)


PROVENANCE = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{7,40}\b")
"""Whose code something reproduces: repository and commit, then the file in it."""


DECLARATIONS = {"argument", "declaration", "data_argument", "data_option", "flag", "option"}
"""Functions of the command line whose first argument is the help of an option."""


def of_documentation(tree: ast.Module) -> Iterator[ast.AST]:
    """Docstrings, of attributes too, helps of options, whose examples are of ours, and sources."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and PROVENANCE.match(str(node.value)):
            yield node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in DECLARATIONS:
            yield from ast.walk(node.args[0])


def words_of(node: ast.AST) -> Iterator[str]:
    yield from (text for text in vars(node).values() if isinstance(text, str))


def named_in(path: Path) -> set[str]:
    source = path.read_text("utf-8")
    if not NAMES.search(source.replace("_", "-")):
        return set()
    tree = ast.parse(source)
    passed = set(map(id, of_documentation(tree)))
    nodes = (node for node in ast.walk(tree) if id(node) not in passed)
    texts = (text.replace("_", "-") for node in nodes for text in words_of(node))
    return {name.lower() for text in texts for name in NAMES.findall(text)}


def test_no_module_but_its_own_names_a_benchmark() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] == "tasks" and place.parts[1] in FOLDERS:
            continue
        if names := named_in(path):
            found[place.as_posix()] = names
    assert not found, "ask the contract (omnidata.tasks.benchmark.Benchmark) in place of a name"


def test_a_name_in_code_is_seen_and_one_in_documentation_is_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Of omnigui."""\nfrom x import read_omnigui\nA = option("omnibench")\n')
    assert named_in(path) == {"omnigui"}
    path.write_text('"""Of omnigui."""\nif task == "osworld":\n    pass\n')
    assert named_in(path) == {"osworld"}
