"""verl 0.9.1 (`RLHFDataset`, `reward.custom_reward_function`)."""

from __future__ import annotations

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
        lists = {
            column: [str(content.root / name) for name in names]
            for column, names in content.lists().items()
        }
        keys = {"images": "image", "videos": "video"}
        return {
            "data_source": content.task,
            "prompt": content.messages(),
            **{
                column: [{keys[column]: path} for path in paths] if column in keys else paths
                for column, paths in lists.items()
            },
            "reward_model": {"style": "rule", "ground_truth": content.sample_id},
            "extra_info": {
                "sample_id": content.sample_id,
                "receipt": screenshot_size(content.receipt),
            },
        }
