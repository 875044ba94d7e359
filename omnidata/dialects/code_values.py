"""Values of Python expressions without running them: literals, known constants, plain sums."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from omnidata.jsontext import is_integer, is_number

Scalar = str | int | float | bool | None
Value = Scalar | tuple[Scalar, ...]
Names = Mapping[str, Value]

LARGEST: Final = 10.0**12
"""The largest absolute value of a number."""
_LONGEST: Final = 100_000
_DEEPEST: Final = 50
_TAG: Final = re.compile(r"tag_\d+", re.ASCII)
_SUMS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class Unresolved(ValueError):  # noqa: N818  (a state of the text, no fault of the program)
    """The value of an expression is unknown unless it is run."""


def resolve(node: ast.expr, names: Names, *, depth: int = 0) -> Value:
    """Return the value of an expression of literals, known constants and sums; nothing is run.

    Raises:
        Unresolved: it is something else, or too large.
    """
    if depth > _DEEPEST:
        raise Unresolved("an expression is nested too deeply")
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise Unresolved(f"{node.id:.40} is not known")
        return names[node.id]
    if isinstance(node, ast.Tuple | ast.List):
        items = [resolve(item, names, depth=depth + 1) for item in node.elts]
        if any(isinstance(item, tuple) for item in items):
            raise Unresolved("a list in a list")  # which could double with every line
        return tuple(item for item in items if not isinstance(item, tuple))
    if isinstance(node, ast.Subscript):
        value = resolve(node.value, names, depth=depth + 1)
        index = resolve(node.slice, names, depth=depth + 1)
        if not isinstance(value, tuple) or not is_integer(index):
            raise Unresolved("an item of something that is no list of constants")
        if not -len(value) <= index < len(value):
            raise Unresolved(f"there is no item {index}")
        return value[index]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _number(resolve(node.operand, names, depth=depth + 1))
        return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.BinOp):
        left = resolve(node.left, names, depth=depth + 1)
        right = resolve(node.right, names, depth=depth + 1)
        if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
            return _constant(left + right)
        compute = _SUMS.get(type(node.op))
        if compute is None:
            raise Unresolved(f"{type(node.op).__name__} is not computed")
        try:
            return _finite(compute(_number(left), _number(right)))
        except ZeroDivisionError:
            raise Unresolved("a division by zero") from None
    raise Unresolved(f"{type(node).__name__} is not computed")


def tag_of(node: ast.expr) -> str:
    """Return the mark that an argument names: `tag_3`, `tag_3[0]`; empty for all else."""
    if isinstance(node, ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) and _TAG.fullmatch(node.id) else ""


def _constant(value: object) -> Value:
    if isinstance(value, bool | None) or (isinstance(value, str) and len(value) <= _LONGEST):
        return value
    if isinstance(value, int | float):
        return _finite(value)
    raise Unresolved(f"a literal is of type {type(value).__name__}, or too long")


def _number(value: Value) -> int | float:
    if not is_number(value):
        raise Unresolved("a sum of something that is no number")
    return value


def _finite(value: float) -> int | float:
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise Unresolved("a number is too large")
    return value
