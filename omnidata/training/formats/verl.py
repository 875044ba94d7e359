"""verl 0.9.1 (`RLHFDataset`, `reward.custom_reward_function`)."""

from __future__ import annotations

from typing import Any

from omnidata.training.formats.base import Content, Log, PromptFormat, Row, screenshot_size

_REWARD = """\
from pathlib import Path

from omnidata.training.reward_files import load_reward, verl_score

REWARD = load_reward(Path(__file__).with_name("reward.json"))


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return verl_score(REWARD, solution_str, ground_truth, extra_info)
"""


class Verl(PromptFormat):
    """Prompts with absolute paths of media; verl knows by `.json` that a line is a row."""

    name = "verl"
    module, code = "reward_verl.py", _REWARD
    usage = "verl: reward.custom_reward_function.path=THIS_FILE"
    suffix = ".json"
    log = Log("verl", "output", sample_id="gts")

    def row(self, content: Content) -> Row:
        lists: dict[str, list[Any]] = {}
        keys = {"images": "image", "videos": "video"}
        for column, names in content.lists().items():
            paths = [str(content.root / name) for name in names]
            lists[column] = [{keys[column]: p} for p in paths] if column in keys else paths
        return {
            "data_source": content.task,
            "prompt": content.messages(),
            **lists,
            "reward_model": {"style": "rule", "ground_truth": content.sample_id},
            "extra_info": {
                "sample_id": content.sample_id,
                "receipt": screenshot_size(content.receipt),
            },
        }
