"""Values that a text of Python states outright: literals, constants named before, plain sums."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

Scalar = str | int | float | bool | None
Value = Scalar | tuple[Scalar, ...]
Names = Mapping[str, Value]

LARGEST: Final = 10.0**12
"""The largest number that is taken for one, either way."""
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
    """What an expression is worth cannot be told without running it."""


def resolve(node: ast.expr, names: Names, *, depth: int = 0) -> Value:
    """What an expression is worth, told from the text alone.

    Literals, negative numbers, lists and tuples of them, names of constants, items of these, and
    sums of plain numbers. Nothing is called and no attribute is looked up.

    Args:
        node: the expression.
        names: constants that are known here.
        depth: of this expression in the one that was asked about.

    Raises:
        Unresolved: it is none of these, or too large.

    Examples:
        >>> resolve(ast.parse("(1793 + 60, -tag_1[1])", mode="eval").body, {"tag_1": (5, 7)})
        (1853, -7)
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
        return tuple(_scalar(resolve(item, names, depth=depth + 1)) for item in node.elts)
    if isinstance(node, ast.Subscript):
        return _item(
            resolve(node.value, names, depth=depth + 1),
            resolve(node.slice, names, depth=depth + 1),
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _number(resolve(node.operand, names, depth=depth + 1))
        return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.BinOp):
        left = resolve(node.left, names, depth=depth + 1)
        return _sum(node.op, left, resolve(node.right, names, depth=depth + 1))
    raise Unresolved(f"{type(node).__name__} is not computed")


def tag_of(node: ast.expr) -> str:
    """The mark that an argument names: `tag_3`, `tag_3[0]`; empty for any other expression."""
    if isinstance(node, ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) and _TAG.fullmatch(node.id) else ""


def _constant(value: object) -> Value:
    if isinstance(value, bool | None) or (isinstance(value, str) and len(value) <= _LONGEST):
        return value
    if isinstance(value, int | float):
        return _finite(value)
    raise Unresolved(f"a literal is of type {type(value).__name__}, or too long")


def _scalar(value: Value) -> Scalar:
    if isinstance(value, tuple):
        raise Unresolved("a list in a list")  # which could double with every line
    return value


def _number(value: Value) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unresolved("a sum of something that is no number")
    return value


def _finite(value: float) -> int | float:
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise Unresolved("a number is too large")
    return value


def _item(value: Value, index: Value) -> Scalar:
    if not isinstance(value, tuple) or isinstance(index, bool) or not isinstance(index, int):
        raise Unresolved("an item of something that is no list of constants")
    if not -len(value) <= index < len(value):
        raise Unresolved(f"there is no item {index}")
    return value[index]


def _sum(sign: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(sign, ast.Add) and isinstance(left, str) and isinstance(right, str):
        return _constant(left + right)
    compute = _SUMS.get(type(sign))
    if compute is None:
        raise Unresolved(f"{type(sign).__name__} is not computed")
    try:
        return _finite(compute(_number(left), _number(right)))
    except ZeroDivisionError:
        raise Unresolved("a division by zero") from None
