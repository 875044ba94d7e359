"""What is installed, what of it loads, and the command that mends the rest."""

from omnidata.doctor.check import Check, Group, State
from omnidata.doctor.examination import examine

__all__ = ["Check", "Group", "State", "examine"]
