"""Fixtures that many rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing imports `datasets` before this line

settings.register_profile("full", max_examples=2000, deadline=None)
if os.environ.get("OMNIDATA_TEST_FULL"):
    settings.load_profile("full")


@pytest.fixture(scope="session", autouse=True)
def _private_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Send every cache of `datasets` to a temporary folder."""
    import datasets

    cache = tmp_path_factory.mktemp("hf-cache")
    datasets.config.HF_DATASETS_CACHE = str(cache)
    datasets.disable_progress_bars()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The sample dataset of seed 0, made once per test run; nobody writes into it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "sample"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            from omnidata.data.sample import make_sample

            make_sample(folder.with_name("sample.unfinished")).rename(folder)
    return folder
