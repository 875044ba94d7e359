"""Two runs on the same steps: differences, how sure they are, and the steps that flipped."""

from omnidata.compare.comparison import Comparison, Flip, Slice, compare
from omnidata.compare.inference import Estimate, McNemar

__all__ = ["Comparison", "Estimate", "Flip", "McNemar", "Slice", "compare"]
