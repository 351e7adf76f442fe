"""One run and its folder: whose it is, and what it has written down.

A fit is a sequence of passes over the rows with little between them. What it has done is the
list of its passes: those that are over by what they amounted to, the one in course by its state
after so many blocks. A fit that goes on takes the same steps again, and reads what is written
there instead of computing it. So solvers have nothing to save of their own: a Krylov basis is
made again of its products. That is right only where every step is the same to the bit: the
same rows, parameters, settings, versions and random numbers. These are noted, and compared.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import platform
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.atomic_write import whole
from mercer.checkpoint.describe import describe
from mercer.checkpoint.lock import BusyError, Lock
from mercer.checkpoint.passes import RecordedPass
from mercer.config import format_bytes, get_config
from mercer.messages import format_parameter, warn
from mercer.session import PassRecord, Recorder, recorded_by, recorder

Arrays = dict[str, np.ndarray[Any, Any]]

_HEADER = "mercer-run.json"
_STEP = "mercer-step-"
# Everything that a run writes, and what a killed one may have left half written.
_OURS = ("mercer-run.json", "mercer-step-*.npz", ".mercer-*.part.npz", ".mercer-*.part.json")
# A result is written where it took this many times as long to make as it takes to write. Those
# that are not are made again: when that has come to half an interval, more are written.
_WORTH, _LATE = 10.0, 3.0
# Seconds that a file costs however small, and bytes a second until one was written.
_FILE, _RATE = 2e-3, 2e8


class CheckpointError(ValueError):
    """A folder that holds the checkpoint of another run."""


class Checkpoint(Recorder):
    """A fit that is kept in a folder; the folder holds one, and one process at a time has it.

    Nothing is written before the first step that is worth it: a short fit leaves no trace. The
    folder is taken then, or at once where it holds a run to go on with.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.steps = 0
        self.busy = False
        self.made = False
        self.facts: list[list[str]] = []
        self.found: list[list[str]] = []
        self.written = 0
        self.failed = False
        self.again = 0.0
        self.rate = _RATE
        self.last = time.monotonic()
        self.owner = threading.get_ident()
        self.lock: Lock | None = None
        self._open()

    def _open(self) -> None:
        """Read what another process has noted."""
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"{self.folder} is a file. Pass the path of a folder.")
        path = self.folder / _HEADER
        if not path.exists():
            return
        try:
            self.lock = Lock(self.folder)
        except BusyError as busy:
            raise CheckpointError(
                f"{self.folder} holds the checkpoint of a fit that is running. Wait for it, or "
                f"give this one a folder of its own, {format_parameter('checkpoint')}."
            ) from busy
        except OSError:
            pass  # nothing can be written there: what it holds can be read
        try:
            header = json.loads(path.read_text("utf-8"))
            self.made = bool(header["made"])
            self.found = [[str(name), str(text)] for name, text in header["facts"]]
        except (ValueError, KeyError, TypeError) as error:
            self.close()
            raise CheckpointError(
                f"{path} is damaged, so that nobody can tell which run it belongs to. Delete "
                f"{self.folder} to begin anew."
            ) from error
        self.written = len(self.found)

    def note(self, what: str, text: str, *, keep: bool = False) -> str:
        """Note a fact; return what the run was begun with, or refuse what is not the same."""
        i = len(self.facts)
        if i < len(self.found):
            name, before = self.found[i]
            if name != what or (before != text and not keep):
                raise CheckpointError(_refusal(self.folder, name, before, what, text))
            text = before
        self.facts.append([what, text])
        return text

    def seed(self, drawn: int) -> int:
        return int(self.note("seed", str(drawn), keep=True))

    @contextlib.contextmanager
    def record(self, state: Any, layout: str) -> Iterator[PassRecord | None]:
        # A pass inside another is a part of it; a fit is known by its facts, noted first.
        if self.busy or not self.facts or self.owner != threading.get_ident():
            yield None
            return
        self.steps += 1
        pass_record = RecordedPass(self, f"{self.steps:06d}", state, layout)
        self.busy = True
        try:
            yield pass_record
        finally:
            self.busy = False
        pass_record.end()

    def due(self) -> bool:
        """Tell whether it is time to save."""
        return time.monotonic() - self.last >= self.seconds

    def worth(self, seconds: float, nbytes: int) -> bool:
        """Tell whether to write a result, or to make it again; counts what is to be made again."""
        ratio = _WORTH if self.again + seconds <= self.seconds / 2 else _LATE
        if seconds >= min(self.seconds, ratio * (_FILE + nbytes / self.rate)):
            return True
        self.again += seconds
        return False

    def write(self, number: str, arrays: Arrays) -> bool:
        """Write a step, and tell whether that was possible; say so once where it was not."""
        begun = time.monotonic()
        try:
            self._note_down()
            with whole(self._path(number)) as part, part.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            if not self.failed:
                warn(
                    f"the checkpoint could not be written to {self.folder} "
                    f"({error.strerror or error}). The fit goes on, and tries again; if it is "
                    f"killed, it can go on from what was saved before."
                )
            self.failed, self.last = True, time.monotonic()
            return False
        self.last = time.monotonic()
        nbytes = sum(array.nbytes for array in arrays.values())
        if nbytes > 2**22:
            self.rate = nbytes / max(self.last - begun, 1e-6)
        return True

    def read(self, number: str, place: str) -> Arrays | None:
        """Return a step as it was written; None where it was not, or was another."""
        path = self._path(number)
        if len(self.facts) > len(self.found) or not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if str(arrays.pop("place")) == place:
                return arrays
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # damaged: it is done again
        self.forget(number)
        return None

    def clear(self) -> None:
        """Remove all that the run has written, and the folder if it made it."""
        ours = _OURS if self.lock is not None else ()  # else what is there is another's
        with contextlib.suppress(OSError):
            for pattern in ours:
                for path in self.folder.glob(pattern):
                    path.unlink(missing_ok=True)
            self.close()
            if self.made:
                self.folder.rmdir()

    def close(self) -> None:
        """Give the folder back, with what is in it."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _note_down(self) -> None:
        """Write down the facts before the steps that rest on them."""
        if self.written >= len(self.facts):
            return
        self._take()
        header = {"made": self.made, "facts": self.facts}
        with whole(self.folder / _HEADER) as part:
            part.write_text(json.dumps(header, indent=1), "utf-8")
        self.written = len(self.facts)

    def _take(self) -> None:
        """Make the folder this run's own, unless it is another's by now."""
        if self.lock is not None:
            return
        self.made = self.made or not self.folder.is_dir()
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(self.folder)
        if (self.folder / _HEADER).exists():
            lock.release()
            raise BusyError("another fit has begun to use this folder")
        self.lock = lock
        self.forget()  # steps without a header are nobody's

    def forget(self, first: str = "") -> None:
        """Remove the steps from a number on: they rest on one that is not there."""
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"{_STEP}*.npz"):
                if first <= path.stem.removeprefix(_STEP):
                    path.unlink(missing_ok=True)

    def _path(self, number: str) -> Path:
        return self.folder / f"{_STEP}{number}.npz"


def current() -> Checkpoint | None:
    """Return the checkpoint that the fit of this thread writes; None if it writes none."""
    here = recorder()
    return here if isinstance(here, Checkpoint) else None


@contextlib.contextmanager
def checkpointed() -> Iterator[None]:
    """Record what is done inside, if `checkpoint` is set; the outermost owns the folder.

    The record is removed when all is done. An error, or the end of the process, leaves it.
    """
    settings = get_config()
    if settings.checkpoint is None or current() is not None:
        yield
        return
    here = Checkpoint(Path(settings.checkpoint).absolute(), float(settings.checkpoint_seconds))
    try:
        with recorded_by(here):
            yield
        here.clear()
    finally:
        here.close()


def has_checkpoint(folder: Path) -> bool:
    """Tell whether a folder holds the checkpoint of a fit that is not finished."""
    return (folder / _HEADER).is_file()


def check_same(estimator: Any = None, **facts: Any) -> None:
    """Note what the fit is of: parameters, rows; refuse the checkpoint of something else."""
    here = current()
    if here is None:
        return
    if not here.facts:
        here.note("surroundings", _surroundings())
    if estimator is not None:
        here.note("estimator", type(estimator).__name__)
        facts = {**estimator.get_params(deep=False), **facts}
    for name, value in facts.items():
        here.note(name, describe(value))


def _surroundings() -> str:
    """Describe what the bits of a result depend on, beside rows and parameters."""
    settings = get_config()
    rows = "" if settings.block_rows is None else f", block_rows={settings.block_rows}"
    device = "" if settings.device is None else f", device={settings.device}, tf32={settings.tf32}"
    return (
        f"mercer {importlib.import_module('mercer').__version__}, numpy {np.__version__}, "
        f"scipy {importlib.import_module('scipy').__version__}, {platform.machine()}, "
        f"{threads.workers()} threads, memory={format_bytes(settings.budget)}{rows}{device}"
    )


def _refusal(folder: Path, name: str, before: str, what: str, text: str) -> str:
    now = text if name == what else f"{what} {text}"
    return (
        f"{folder} holds the checkpoint of another fit. Its {format_parameter(name)}: {before}. "
        f"This fit's: {now}. Go on with that fit, give this one a folder of its own, "
        f"{format_parameter('checkpoint')}, or delete {folder} to begin anew."
    )
