"""Tables of runs."""

from omnidata.table import DASH as DASH
from omnidata.table import LOWER_IS_BETTER as LOWER_IS_BETTER
from omnidata.table import PUBLISHED as PUBLISHED
from omnidata.table import Cell as Cell
from omnidata.table import CellUnit as CellUnit
from omnidata.table import Column as Column
from omnidata.table import Head as Head
from omnidata.table import Mark as Mark
from omnidata.table import Row as Row
from omnidata.table import Table as Table
from omnidata.table import marked_best as marked_best
from omnidata.table import number as number
