"""Training data: exports, the way back, and steps for PyTorch; rewards and their trainer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnidata.training.grpo import OmniGRPOTrainer, OmniPrompts, exported_prompts, prompt_table
    from omnidata.training.reward_files import TrlReward, load_reward
    from omnidata.training.rewards import Reward
    from omnidata.training.semi_online import run_histories

__all__ = [
    "OmniGRPOTrainer",
    "OmniPrompts",
    "Reward",
    "TrlReward",
    "exported_prompts",
    "load_reward",
    "prompt_table",
    "run_histories",
]

_HOMES = {
    "OmniGRPOTrainer": "omnidata.training.grpo",
    "OmniPrompts": "omnidata.training.grpo",
    "Reward": "omnidata.training.rewards",
    "TrlReward": "omnidata.training.reward_files",
    "exported_prompts": "omnidata.training.grpo",
    "load_reward": "omnidata.training.reward_files",
    "prompt_table": "omnidata.training.grpo",
    "run_histories": "omnidata.training.semi_online",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch and TRL are heavy, and may be missing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'omnidata.training' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
