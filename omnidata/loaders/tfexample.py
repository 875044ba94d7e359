"""TensorFlow's `tf.train.Example`: named lists of texts, whole numbers or 32-bit numbers.

Example  { Features features = 1; }
Features { map<string, Feature> feature = 1; }   an entry has its key in 1 and its value in 2
Feature  { BytesList 1 | FloatList 2 | Int64List 3 }, each with `repeated value = 1`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from omnidata.loaders.wire import fields, floats, inner, signed, varints, whole

_BYTES, _FLOATS, _NUMBERS = 1, 2, 3
_MOST = 100_000
"""Features of an example, and values of a feature; a packed file of kilobytes may hold millions."""
_LONGEST = 10 * _MOST
"""Bytes of the largest packed list: a number takes up to ten."""
_MAX_TEXT = 16 * 1024**2
"""Bytes of all texts of a feature; pictures and forests are not taken for texts."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example.

    Attributes:
        data: the record that it was read from.
        texts: by name, where in `data` each text or picture lies.
        numbers: by name; of features that have neither, the list is empty and in here.
    """

    data: bytes
    texts: Mapping[str, list[slice]]
    numbers: Mapping[str, list[float]]

    def text(self, name: str) -> list[str]:
        r"""A feature's texts; what is no UTF-8 keeps its value in lone surrogates.

        Raises:
            ValueError: they have more than 16 MiB.
        """
        parts = self.texts.get(name, [])
        if sum(part.stop - part.start for part in parts) > _MAX_TEXT:
            raise ValueError(f"a feature has texts of more than {_MAX_TEXT} bytes")
        return [self.data[part].decode("utf-8", "surrogateescape") for part in parts]

    def as_json(self, *, but: str = "") -> dict[str, Any]:
        """All features as JSON values, except one.

        Raises:
            ValueError: as `text`.
        """
        found: dict[str, Any] = {name: self.text(name) for name in self.texts if name != but}
        return {**found, **{name: own for name, own in self.numbers.items() if name != but}}


def read_example(data: bytes) -> Example:
    """An example and its features.

    Raises:
        ValueError: the bytes are no example, or one of more than 100,000 features, or values of a
            feature.
    """
    texts: dict[str, list[slice]] = {}
    numbers: dict[str, list[float]] = {}
    for features in inner(data, whole(data), 1):
        for count, entry in enumerate(inner(data, features, 1)):
            if count == _MOST:
                raise ValueError(f"it has more than {_MOST} features")
            name = "".join(
                data[key].decode("utf-8", "surrogateescape") for key in inner(data, entry, 1)
            )
            numbers.setdefault(name, [])
            for feature in inner(data, entry, 2):
                _read(data, feature, name, texts, numbers)
    return Example(data, texts, {name: own for name, own in numbers.items() if name not in texts})


def _read(
    data: bytes,
    feature: slice,
    name: str,
    texts: dict[str, list[slice]],
    numbers: dict[str, list[float]],
) -> None:
    for kind, _, values in fields(data, feature):
        if not isinstance(values, slice):
            continue
        if kind == _BYTES:
            own = texts.setdefault(name, [])
            own += islice(inner(data, values, 1), _MOST + 1 - len(own))
            _check_count(own)
            continue
        for at, _, value in fields(data, values):
            if isinstance(value, slice) and value.stop - value.start > _LONGEST:
                raise ValueError(f"a list has more than {_LONGEST} bytes")
            if at == 1 and kind == _FLOATS:
                numbers[name] += floats(data, value)
            elif at == 1 and kind == _NUMBERS:
                numbers[name] += [signed(number) for number in varints(data, value)]
            _check_count(numbers[name])


def _check_count(values: Sequence[object]) -> None:
    if len(values) > _MOST:
        raise ValueError(f"a feature has more than {_MOST} values")


def as_bytes(text: str) -> bytes:
    r"""The bytes that `Example.text` has made a text of.

    Examples:
        >>> as_bytes("caf\xe9\udcff")
        b'caf\xc3\xa9\xff'
    """
    return text.encode("utf-8", "surrogateescape")
