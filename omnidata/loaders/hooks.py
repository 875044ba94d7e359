"""The benchmarks by name in `datasets`: `datasets.load_dataset("omnigui", data_dir=...)`.

`datasets` has no plug-in mechanism. Its table of packaged builders is private; its form is the same
from 3.6 to 5.2.

`import omnidata` imports this module, so that it imports little itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_BUILDERS: Final = "omnidata.loaders.builders"


def module_of(task: str) -> str:
    """Return the module with the builder of a task; a dot in the name starts no submodule.

    Examples:
        >>> module_of("idm-single"), module_of("words.v2")
        ('omnidata.loaders.builders.idm-single', 'omnidata.loaders.builders.words%2Ev2')
    """
    return f"{_BUILDERS}.{task.replace('%', '%25').replace('.', '%2E')}"


def register() -> None:
    """Make `datasets.load_dataset("omnigui", ...)` find the builders of all tasks.

    `import omnidata` does this where `datasets` is imported too. Call it after installing a plug-in
    into a running process.

    Raises:
        PlatformError: the installed `datasets` has no table of builders.

    Examples:
        >>> import datasets, omnidata
        >>> omnidata.register()
        >>> "omnigui" in datasets.packaged_modules._PACKAGED_DATASETS_MODULES
        True
    """
    import logging

    _register(logging.WARNING)


def _register(level: int) -> None:
    import logging

    import datasets

    from omnidata import registry
    from omnidata.errors import PlatformError

    try:
        packaged: Any = import_module("datasets.packaged_modules")
    except ImportError:
        packaged = None
    table = getattr(packaged, "_PACKAGED_DATASETS_MODULES", None)
    extensions = getattr(packaged, "_MODULE_TO_EXTENSIONS", None)
    if not isinstance(table, dict) or not isinstance(extensions, dict):
        raise PlatformError(
            f"datasets {getattr(datasets, '__version__', '?')} has no table of packaged builders",
            expected="datasets 3.6 to 5.2",
            remedy="call omnidata.load_dataset instead, which needs no table",
        )
    explain_casts()
    _find_without_scan()
    for name in registry.names():
        module = module_of(name)
        if table.get(name, (module,))[0] != module:
            log = logging.getLogger("omnidata")
            log.log(level, '"%s" is a builder of `datasets` itself, which keeps that name', name)
            continue
        # The builder's cache folder carries a fingerprint of its own, so the hash may stay fixed.
        table[name] = (module, name)
        extensions.setdefault(name, [".jsonl", ".json", ".parquet"])
        for optional in ("_MODULE_TO_METADATA_FILE_NAMES", "_MODULE_TO_METADATA_EXTENSIONS"):
            if isinstance(getattr(packaged, optional, None), dict):
                getattr(packaged, optional).setdefault(name, [])


def register_on_import() -> None:
    """Register as soon as `datasets` is imported: now, if it is already.

    `import datasets` works as without omnidata, whatever goes wrong here; `register()` says why.
    """
    if sys.modules.get("datasets") is not None:
        _register_quietly()
    sys.meta_path.insert(0, _DatasetsImport())


def _register_quietly() -> None:
    import logging

    try:
        _register(logging.DEBUG)
    except Exception as error:  # other `datasets`, a broken plug-in
        log = logging.getLogger("omnidata")
        log.debug("the benchmarks are not registered in `datasets`", exc_info=error)


class _DatasetsImport:
    """Finds `datasets` as the other finders do, and registers after its import.

    It stays: `importlib.util.find_spec`, which transformers calls, finds without an import.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "datasets":
            return None
        finders = list(sys.meta_path)
        later = finders[finders.index(self) + 1 :] if self in finders else []
        found = (finder.find_spec(fullname, path, target) for finder in later)
        spec = next((spec for spec in found if spec), None)
        loader: Any = spec.loader if spec else None
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def execute_and_register(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            _register_quietly()

        with suppress(AttributeError):  # a loader that takes no attributes
            loader.exec_module = execute_and_register
        return spec


@cache
def _find_without_scan() -> None:
    """Let `datasets` leave the search for data files to our builders.

    It would scan `data_dir` with all its media, and the working directory where no `data_dir` is
    given, whose error names neither the benchmark nor the missing argument.
    """
    import datasets.load
    from datasets.data_files import DataFilesDict

    from omnidata.errors import UsageError

    factory = datasets.load.PackagedDatasetModuleFactory
    get_module = factory.get_module

    @wraps(get_module)
    def get_module_without_scan(self: Any) -> Any:
        module, digest = datasets.load._PACKAGED_DATASETS_MODULES[self.name]
        if not module.startswith(f"{_BUILDERS}."):
            return get_module(self)
        if self.data_files is not None:
            raise UsageError(
                "data_files is not used by benchmarks",
                where=f'datasets.load_dataset("{self.name}", data_files=...)',
                expected="data_dir=FOLDER",
                remedy=f'name the folder, or a single file with omnidata.load_dataset("{self.name}'
                '", FILE)',
            )
        kwargs = {"data_files": DataFilesDict(), "dataset_name": self.name}
        return datasets.load.DatasetModule(module, digest, kwargs)

    factory.get_module = get_module_without_scan


@cache
def explain_casts() -> None:
    """Let `datasets` say how to read sound and clips where torchcodec does not load.

    `cast_column("audio", datasets.Audio())` decodes with torchcodec alone, and fails at the first
    row.
    """
    import datasets

    for kind in (datasets.Audio, datasets.Video):
        kind.decode_example = _explaining(kind.decode_example)


def _explaining(decode_example: Callable[..., Any]) -> Callable[..., Any]:
    from omnidata.errors import PlatformError

    @wraps(decode_example)
    def decode(self: Any, *given: Any, **options: Any) -> Any:
        try:
            return decode_example(self, *given, **options)
        except (ImportError, OSError, RuntimeError) as error:
            if "torchcodec" not in str(error):
                raise
            raise PlatformError(
                f"datasets.{type(self).__name__}() decodes with torchcodec, which does not load "
                f"({error})",
                where="a column that was cast",
                expected="media that omnidata decodes, with Pillow and PyAV",
                remedy="leave the column as it was loaded: rows.with_transform(omnidata.decode("
                "rows)) gives arrays, omnidata.torch.StepDataset(rows) tensors; or install "
                "torchcodec and the shared libraries of FFmpeg",
            ) from error

    return decode
