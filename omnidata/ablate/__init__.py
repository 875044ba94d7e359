"""What a model loses without sound or clip, and what it does with wrong ones."""

from omnidata.ablate.ablation import Ablation, Row, ablate
from omnidata.ablate.controls import CONTROLS, MEDIUM, Altered, Control, altered
from omnidata.ablate.grid import Plan, Setting, settings

__all__ = [
    "CONTROLS",
    "MEDIUM",
    "Ablation",
    "Altered",
    "Control",
    "Plan",
    "Row",
    "Setting",
    "ablate",
    "altered",
    "settings",
]
