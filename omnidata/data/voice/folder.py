"""A folder of spoken instructions: the WAV files and the list of what they say.

`voices.jsonl` has a line per file. The line is written before the file appears, so every file that
omnidata made is listed, and one that is not listed is somebody else's and is never overwritten.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import msgspec
from filelock import FileLock, Timeout

from omnidata.data.voice.engine import Voice
from omnidata.data.voice.texts import Utterance
from omnidata.errors import RunError
from omnidata.files import read_file
from omnidata.jsontext import decode, encode
from omnidata.loaders.omnigui_apps import Language
from omnidata.storage import atomic_write, open_own

LIST = "voices.jsonl"


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list.

    Attributes:
        md5: of the text; the file is `<md5>.wav`.
        text: the instruction.
        language: in which it is read.
        engine: name and version.
        voice: the engine's voice, or the command.
        sha256: of the file.
    """

    md5: str
    text: str
    language: Language
    engine: str
    voice: str
    sha256: str


class VoiceFolder:
    """One folder, one voice per language, one writer.

    Args:
        path: the folder; made if missing.
        engine: what is going to speak.
        wanted: what it shall hold.

    Attributes:
        missing: those that are wanted and have no file, or another one than is listed.

    Raises:
        RunError: the folder holds other things, speech of another engine, or has another writer.
            No file in it was changed then.
    """

    def __init__(self, path: Path, engine: Voice, wanted: Iterable[Utterance]) -> None:
        """Open or make the folder and read what it has."""
        self.path = path
        self._engine = engine
        self._list = path / LIST
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = [entry.name for entry in path.iterdir() if entry.name[0] != "."]
        except OSError as error:
            raise _refused(path, f"the folder cannot be made ({error.strerror})") from None
        if others and not self._list.is_file():
            raise _refused(path, f"the folder holds {', '.join(sorted(others)[:3])} and no {LIST}")
        self._lock = FileLock(path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise _refused(path, "another process is writing into the folder") from None
        except OSError as error:
            raise _refused(path, f"the folder cannot be written ({error.strerror})") from None
        try:
            self._listed = self._read()
            self._check_voice()
            self.missing = [utterance for utterance in wanted if not self._has(utterance)]
            self._save()
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> dict[str, Spoken]:
        """The lines by MD5, the last one counts; what cannot be read is as if it were not there.

        Lines without a file do not count: nothing of that voice is left to be mixed with.
        """
        listed: dict[str, Spoken] = {}
        lines = read_file(self._list).splitlines() if self._list.exists() else []
        for line in lines:
            try:
                entry = msgspec.convert(decode(line.decode("utf-8", "replace")), Spoken)
            except (msgspec.ValidationError, RecursionError):
                continue
            listed[entry.md5] = entry
        return {md5: entry for md5, entry in listed.items() if self._file(md5).exists()}

    def _file(self, md5: str) -> Path:
        return self.path / f"{md5}.wav"

    def _check_voice(self) -> None:
        for entry in self._listed.values():
            there = (entry.engine, entry.voice)
            now = (self._engine.name, self._engine.voice(entry.language))
            if there != now:
                raise _refused(
                    self.path,
                    f'the folder holds speech of "{there[0]}", voice "{there[1]}"; '
                    f'asked for is "{now[0]}", voice "{now[1]}"',
                )

    def _has(self, utterance: Utterance) -> bool:
        path = self.path / utterance.file
        entry = self._listed.get(path.stem)
        if not path.exists():
            return False
        if entry is None or not path.is_file():
            what = "a file" if path.is_file() else "something that is no file"
            raise _refused(path, f"there is {what} that {LIST} does not list")
        same = (entry.text, entry.language) == (utterance.text, utterance.language)
        return same and hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256

    def put(self, utterance: Utterance, wav: bytes) -> None:
        """List a file, then write it in one move."""
        entry = Spoken(
            md5=Path(utterance.file).stem,
            text=utterance.text,
            language=utterance.language,
            engine=self._engine.name,
            voice=self._engine.voice(utterance.language),
            sha256=hashlib.sha256(wav).hexdigest(),
        )
        self._listed[entry.md5] = entry
        with open_own(self._list, "ab") as file:
            file.write(encode(entry) + b"\n")
        with atomic_write(self.path / utterance.file) as file:
            file.write(wav)

    def drop(self, utterance: Utterance) -> None:
        """Remove a file that is not what it should be and could not be made again."""
        (self.path / utterance.file).unlink(missing_ok=True)

    def scratch(self) -> TemporaryDirectory[str]:
        """An empty folder inside this one, under a name that no other text had before."""
        path = self.path / ".scratch"
        path.mkdir(exist_ok=True)
        return TemporaryDirectory(dir=path, ignore_cleanup_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            shutil.rmtree(self.path / ".scratch", ignore_errors=True)
            self._save()
        finally:
            self._lock.release()

    def _save(self) -> None:
        """Write the list anew: sorted, without half lines and files that are not there."""
        with atomic_write(self._list) as file:
            for md5, entry in sorted(self._listed.items()):
                if self._file(md5).exists():
                    file.write(encode(entry) + b"\n")


def _refused(path: Path, what: str) -> RunError:
    return RunError(
        what,
        where=str(path),
        expected="a new folder, or one that the same voice was rendered into",
        remedy="name another OUT, or remove what is there",
    )
