"""Hashes of an adapter's code: an edited adapter must not resume a run of the old code.

The code of an installed distribution is its version, and a hash of all modules of its top-level
package and of the uninstalled modules that they import. The code of a class in a notebook or script
is a hash of its methods and of what they refer to. The code of an adapter of omnidata is the
version of omnidata. Comments, docstrings and blank lines are no code, and neither are attributes of
the object: they belong in `settings`.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import re
import sys
import sysconfig
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from omnidata.adapters import PLUGINS
from omnidata.files import real
from omnidata.plugins import distributions_of

_US: Final = __name__.partition(".")[0]
_INSTALLED: Final = tuple(
    real(Path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_MODULES: Final = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_LAYOUT: Final = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER})
_DEPTH: Final = frozenset({tokenize.INDENT, tokenize.DEDENT})
_SPACE: Final = _DEPTH | {tokenize.NEWLINE}
_HAS_DOCSTRING: Final = 0x4000000  # a flag of code objects from Python 3.13 on


def code_of(adapter: object) -> str:
    """Return the versions and the hash of an adapter's code, as `run.json` has them.

    Examples:
        >>> code_of(type("Own", (), {"__module__": "omnidata.own"})()) == (
        ...     f"omnidata {version('omnidata')}"
        ... )
        True
    """
    if is_ours(adapter):
        return f"{_US} {version(_US)}"
    kind = type(adapter)
    digest = hashlib.sha256()
    references = _References(digest)
    home = kind.__module__.partition(".")[0]
    packages = [home] if _has_files(home) else []
    if not packages:
        references.add(kind)
        packages = sorted(references.packages)
    for base in kind.__mro__:
        name = base.__module__.partition(".")[0]
        if name not in packages and _is_local(name):
            packages.append(name)
    for name in packages:  # grows
        for place, file in _files(name):
            stat = file.stat()
            content, imported = _content(file, stat.st_mtime_ns, stat.st_size)
            digest.update(f"\0{place}\0".encode("utf-8", "surrogatepass") + content)
            packages += [each for each in imported if each not in packages and _is_local(each)]
    return ", ".join([*_versions(home), f"sha256 {digest.hexdigest()}"])


def is_ours(adapter: object) -> bool:
    """Return whether the class of an adapter is part of omnidata."""
    return type(adapter).__module__.partition(".")[0] == _US


def _versions(package: str) -> list[str]:
    found = distributions_of(PLUGINS.group, package)
    if not found:
        try:
            found = {package: version(package)}
        except (PackageNotFoundError, ValueError):
            found = {}
    return [f"{name} {number}" for name, number in sorted(found.items())]


@lru_cache
def _roots(package: str, _: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the folders of a top-level package, or the file of a module; empty without a file."""
    try:
        spec = getattr(sys.modules.get(package), "__spec__", None) or find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(map(Path, spec.submodule_search_locations))
    return (Path(spec.origin),) if spec.origin and Path(spec.origin).is_file() else ()


def _has_files(package: str) -> bool:
    return package != "__main__" and bool(_roots(package, tuple(sys.path)))


def _files(package: str) -> Iterator[tuple[str, Path]]:
    for root in _roots(package, tuple(sys.path)):
        if root.is_file():
            yield root.name, root
        for folder, inner, names in os.walk(root):
            inner[:] = sorted(name for name in inner if name.isidentifier())
            for path in (Path(folder, name) for name in sorted(names) if name.endswith(_MODULES)):
                if not path.is_file():  # an editor's lock is a link that leads nowhere
                    continue
                yield f"{package}/{path.relative_to(root).as_posix()}", path


def _is_local(package: str) -> bool:
    if package in (_US, "__main__") or package in sys.stdlib_module_names:
        return False
    roots = _roots(package, tuple(sys.path))
    return bool(roots) and not any(real(root).startswith(_INSTALLED) for root in roots)


@lru_cache(maxsize=4096)
def _content(file: Path, *_: int) -> tuple[bytes, tuple[str, ...]]:
    """Return a hash of a module's code, and the top-level packages that it imports."""
    data = file.read_bytes()
    if file.suffix != ".py":
        return hashlib.sha256(data).digest(), ()
    try:
        lines = [*_statements(data)]
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):  # a template, say
        return hashlib.sha256(data).digest(), ()
    digest = hashlib.sha256()
    imported: dict[str, None] = {}
    for line in lines:
        digest.update("\0".join(f"{kind} {text}" for kind, text in line).encode() + b"\n")
        imported |= dict.fromkeys(_import_packages([text for _, text in line if text]))
    return digest.digest(), tuple(imported)


def _statements(data: bytes) -> Iterator[list[tuple[int, str]]]:
    """Yield the logical lines of a module as tokens, without docstrings."""
    line: list[tuple[int, str]] = []
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type in _LAYOUT:
            continue
        line.append((token.type, "" if token.type in _SPACE else token.string))
        if token.type == tokenize.NEWLINE:
            if any(kind not in _SPACE and kind != tokenize.STRING for kind, _ in line):
                yield line
                line = []
            else:  # a docstring: only its depth counts
                line = [
                    (kind, "") for kind, _ in line if kind in (tokenize.INDENT, tokenize.DEDENT)
                ]
    yield line


def _import_packages(words: list[str]) -> list[str]:
    """Return the top-level packages of an import statement.

    Examples:
        >>> _import_packages(["import", "a", ".", "b", "as", "c", ",", "d"])
        ['a', 'd']
        >>> _import_packages(["from", "a", ".", "b", "import", "c"])
        ['a']
        >>> _import_packages(["from", ".", "import", "c"])
        []
    """
    if words[:1] == ["from"]:
        return words[1:2] if words[1:2] != ["."] and words[1:2] != ["..."] else []
    if words[:1] == ["import"]:
        return [word for before, word in pairwise(words) if before in ("import", ",")]
    return []


class _References:
    """Adds classes and functions, and the globals that they refer to, to a hash.

    Attributes:
        packages: uninstalled top-level packages that they refer to.
    """

    def __init__(self, digest: Any) -> None:
        self.packages: set[str] = set()
        self._digest = digest
        self._seen: set[int] = set()

    def add(self, thing: object) -> None:
        if isinstance(thing, ModuleType):
            self._add_package(thing.__name__.partition(".")[0])
            return
        if not isinstance(thing, type | FunctionType):
            with suppress(RecursionError):  # a value that holds itself
                self._update(_plain(thing))
            return
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        self._update(thing.__qualname__)
        if _has_files(home := thing.__module__.partition(".")[0]):
            self._add_package(home)
        elif isinstance(thing, type):
            self._add_class(thing)
        else:
            self._add_function(thing)

    def _update(self, text: str) -> None:
        self._digest.update(text.encode("utf-8", "surrogatepass") + b"\0")

    def _add_package(self, name: str) -> None:
        if _is_local(name):
            self.packages.add(name)

    def _add_class(self, kind: type) -> None:
        for base in kind.__bases__:
            if base.__module__ == kind.__module__:
                self.add(base)
        for name, value in sorted(vars(kind).items()):
            if name in ("__doc__", "__module__", "__dict__", "__weakref__", "__annotations__"):
                continue
            self._update(name)
            for function in _functions(value):
                self.add(function)

    def _add_function(self, function: FunctionType) -> None:
        self._add_code(function.__code__)
        self._update(_plain((function.__defaults__, function.__kwdefaults__)))
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # it is empty yet
                continue
        if wrapped := getattr(function, "__wrapped__", None):
            self.add(wrapped)
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._update(name)
                self.add(function.__globals__[name])

    def _add_code(self, code: CodeType) -> None:
        self._digest.update(code.co_code)
        self._update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)))
        for each in code.co_consts[_has_docstring(code) :]:
            if isinstance(each, CodeType):
                self._add_code(each)
            else:
                self._update(_plain(each))


def _has_docstring(code: CodeType) -> bool:
    first = code.co_consts[0] if code.co_consts else None
    is_flagged = sys.version_info < (3, 13) or bool(code.co_flags & _HAS_DOCSTRING)
    return isinstance(first, str) and is_flagged


def _names(code: CodeType) -> list[str]:
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return sorted({*code.co_names, *inner} - vars(builtins).keys())


def _functions(value: object) -> list[object]:
    if isinstance(value, property):
        return [each for each in (value.fget, value.fset, value.fdel) if each]
    if isinstance(value, classmethod | staticmethod | MethodType):
        return [value.__func__]
    return [value]


def _plain(value: object) -> str:
    """Return a plain value as text that is equal in every process; of others the class alone."""
    if isinstance(value, str | bytes | int | float | complex | bool | None | re.Pattern):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_plain, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_plain(k)}: {_plain(v)}' for k, v in value.items())}}}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
