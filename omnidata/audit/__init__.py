"""What a benchmark's score is worth: what a model that looks at nothing would get."""

from omnidata.audit.report import Report, Rule, audit

__all__ = ["Report", "Rule", "audit"]
