"""Reading run folders and showing them: tables, figures, cards, pages."""

from omnidata.report.runs import Run, read_run

__all__ = ["Run", "read_run"]
