"""LLaMA-Factory 0.9.5 (`data/README`, `converter`, `mm_plugin`, `SharegptDatasetConverter`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

from omnidata.training.formats.base import Log, Messages, PreferenceFormat, Row

INFO = "dataset_info.json"


class LlamaFactory(Messages):
    """Messages, and a list of the datasets, one per split: `TASK_train`, ..."""

    name = "llamafactory"
    log = Log("llamafactory", "predict", label=("label",))

    def files(self, task: str, splits: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
        roles = ("role", "content", "user", "assistant", "system")
        return {
            INFO: {
                f"{task}_{PurePath(file).stem}": {
                    "file_name": file,
                    "formatting": "sharegpt",
                    "columns": {name: name for name in sorted(columns)},
                    "tags": {f"{name}_tag": name for name in roles},
                }
                for file, columns in splits.items()
            }
        }


class _Preferences(PreferenceFormat):
    supervised = LlamaFactory()

    def files(self, task: str, splits: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
        read = {file: {*columns} - {"cause"} for file, columns in splits.items()}
        ranking = {} if self.label else {"ranking": True}
        info = self.supervised.files(task, read)[INFO]
        return {INFO: {name: {**said, **ranking} for name, said in info.items()}}


class LlamaFactoryDpo(_Preferences):
    """Messages up to the question, and both answers as messages."""

    name = "llamafactory-dpo"

    def pair(self, chosen: Row, rejected: Row) -> Row:
        chosen["chosen"], chosen["rejected"] = chosen["messages"][-1], rejected["messages"][-1]
        return {**chosen, "messages": chosen["messages"][:-1]}


class LlamaFactoryKto(_Preferences):
    """A row for each answer, with a tag."""

    name = "llamafactory-kto"
    label = "kto_tag"
