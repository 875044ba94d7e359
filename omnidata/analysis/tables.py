"""Tables of runs."""

from omnidata.table import (
    DASH,
    LOWER_IS_BETTER,
    PUBLISHED,
    Cell,
    CellUnit,
    Column,
    Head,
    Mark,
    Row,
    Table,
    number,
)
from omnidata.table import mark_best as marked_best

__all__ = [
    "DASH",
    "LOWER_IS_BETTER",
    "PUBLISHED",
    "Cell",
    "CellUnit",
    "Column",
    "Head",
    "Mark",
    "Row",
    "Table",
    "marked_best",
    "number",
]
