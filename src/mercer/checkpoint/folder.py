"""The folder of a resumable fit: its completed passes, parameters and data.

A fit is a sequence of passes over the rows with little between them. The folder holds the results
of the finished passes, and the state of the current one after some of its blocks. A resumed fit
makes the same steps again, and reads recorded results instead of computing them; solvers save
nothing themselves. This is right only if every step gives the same bits, so the rows, parameters,
settings, versions and random seeds are recorded as facts, and compared.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import platform
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.arrays import to_numpy
from mercer.atomic_write import write_atomically
from mercer.checkpoint.identity import describe
from mercer.config import format_bytes, get_config
from mercer.messages import format_parameter, warn
from mercer.progress import recorded_by, recorder

try:
    import fcntl
except ImportError:  # Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]

Arrays = dict[str, np.ndarray[Any, Any]]

_HEADER, _LOCK, _STEP = "mercer-run.json", "mercer-run.lock", "mercer-step-"
# Everything that a run writes, and what a killed one may have left half written.
_OURS = ("mercer-run.json", "mercer-step-*.npz", ".mercer-*.part.npz", ".mercer-*.part.json")
# A result is written if it took this many times as long to compute as it takes to write, at so
# many seconds a file and bytes a second. Others are computed again.
_WORTH, _FILE, _RATE = 3.0, 2e-3, 2e8


class CheckpointError(ValueError):
    """The folder holds the checkpoint of another fit, or of one that is still running."""


def lock(folder: Path) -> int | None:
    """Lock a folder until its file number is closed or the process ends; None if it cannot be.

    What is locked is a file in it: NFS locks files that are open for writing, and no folders.
    """
    path = folder / _LOCK
    while fcntl is not None:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(path).st_ino == os.fstat(number).st_ino:
                return number
        except FileNotFoundError:
            pass  # its last owner has removed the file: then it guards nothing
        except OSError as error:
            os.close(number)
            if isinstance(error, BlockingIOError):
                raise CheckpointError(
                    f"{folder} holds the checkpoint of a fit that is still running. Wait for it to "
                    f"finish, or set {format_parameter('checkpoint')} to another folder."
                ) from None
            return None  # a file system without locks
        os.close(number)
    return None


class Checkpoint:
    """A fit that is recorded in a folder, which it owns as long as it runs.

    No step is written before the first one that is worth it: a short fit leaves no trace.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.facts: list[list[str]] = []
        self.before: list[list[str]] = []
        """The facts of the fit that is resumed."""
        self.n_written = 0
        """Number of facts that are in the header."""
        self.n_passes = 0
        self.in_pass = self.failed = False
        self.last = time.monotonic()
        self.thread = threading.get_ident()
        self.lock: int | None = None
        if folder.exists() and not folder.is_dir():
            raise CheckpointError(f"{folder} is a file. Pass the path of a folder.")
        with contextlib.suppress(OSError):  # a folder that cannot be written to may be read
            folder.mkdir(parents=True, exist_ok=True)
            self.lock = lock(folder)
        if has_checkpoint(folder):
            self._resume()
        else:
            self.forget()  # steps without a header belong to no fit

    def _resume(self) -> None:
        path = self.folder / _HEADER
        try:
            header = json.loads(path.read_text("utf-8"))
            self.before = [[str(name), str(text)] for name, text in header["facts"]]
        except (ValueError, KeyError, TypeError) as error:
            self.close()
            raise CheckpointError(
                f"{path} is damaged, so it is unknown which fit it belongs to. Delete "
                f"{self.folder} to start over."
            ) from error
        self.n_written = len(self.before)

    def note(self, name: str, text: str, *, keep: bool = False) -> str:
        """Record a fact and return it; raise if it differs in the resumed fit.

        With `keep`, return the resumed fit's instead.
        """
        i = len(self.facts)
        if i < len(self.before):
            known, before = self.before[i]
            if known != name or (before != text and not keep):
                now = text if known == name else f"{name} {text}"
                raise CheckpointError(
                    f"{self.folder} holds the checkpoint of another fit. Its "
                    f"{format_parameter(known)}: {before}. This fit's: {now}. Resume that fit, "
                    f"set {format_parameter('checkpoint')} to another folder, or delete "
                    f"{self.folder} to start over."
                )
            text = before
        self.facts.append([name, text])
        return text

    def seed(self, drawn: int) -> int:
        """Return the seed that the fit was begun with; `drawn` if it begins now."""
        return int(self.note("seed", str(drawn), keep=True))

    @contextlib.contextmanager
    def record(self, state: Any, layout: str) -> Iterator[RecordedPass | None]:
        """Record a pass, unless it is a part of another; it is resumed with the same layout only.

        `layout` says how the rows are divided. A fit is known by its facts, which are noted first.
        """
        if self.in_pass or not self.facts or self.thread != threading.get_ident():
            yield None
            return
        self.n_passes += 1
        record = RecordedPass(self, f"{self.n_passes:06d}", state, layout)
        self.in_pass = True
        try:
            yield record
        finally:
            self.in_pass = False
        record.end()

    def write(self, number: str, arrays: Arrays) -> bool:
        """Write a step and return whether that succeeded; warn of the first failure."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.n_written < len(self.facts):  # before the steps that depend on them
                with write_atomically(self.folder / _HEADER) as part:
                    part.write_text(json.dumps({"facts": self.facts}, indent=1), "utf-8")
                self.n_written = len(self.facts)
            with write_atomically(self._path(number)) as part, part.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            if not self.failed:
                warn(
                    f"the checkpoint could not be written to {self.folder} "
                    f"({error.strerror or error}). The fit continues and will try again; if it "
                    f"is interrupted, it resumes from the last saved state."
                )
            self.failed = True
            return False
        finally:
            self.last = time.monotonic()
        return True

    def read(self, number: str, place: str) -> Arrays | None:
        """Return a step of the resumed fit; None if it has none or a different one."""
        path = self._path(number)
        if len(self.facts) > len(self.before) or not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if str(arrays.pop("place")) == place:
                return arrays
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # damaged: it is computed again
        self.forget(number)
        return None

    def forget(self, first: str = "") -> None:
        """Remove the steps from a number on: they depend on one that is missing."""
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"{_STEP}*.npz"):
                if first <= path.stem.removeprefix(_STEP):
                    path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove what the fit has written, and the folder if it is empty."""
        with contextlib.suppress(OSError):
            for path in itertools.chain.from_iterable(map(self.folder.glob, _OURS)):
                path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let others use the folder, and remove it if it is empty."""
        with contextlib.suppress(OSError):
            if self.lock is not None:
                (self.folder / _LOCK).unlink(missing_ok=True)
            self.folder.rmdir()
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None

    def _path(self, number: str) -> Path:
        return self.folder / f"{_STEP}{number}.npz"


class RecordedPass:
    """A pass whose state, that of all workers, is saved at intervals, between two blocks.

    Only the first worker saves, while the others wait: it runs in the thread that began the pass,
    where a warning belongs.
    """

    finished = False
    """Whether the pass was recorded to its end: its state is restored."""

    def __init__(self, checkpoint: Checkpoint, number: str, state: Any, layout: str) -> None:
        self.checkpoint, self.number, self.state = checkpoint, number, state
        self.start, self.parts = time.monotonic(), [state]
        total = 0
        for array in state.inputs:
            host = np.ascontiguousarray(to_numpy(array))
            total = zlib.crc32(host.data.cast("B") if host.size else b"", total)
        self.place = f"{type(state).__qualname__}, {state.label}, {layout}, {total:08x}"
        self.saved = checkpoint.read(number, self.place) if state.resumable else None
        if self.saved is not None and "done" not in self.saved:
            self.finished = True
            state.restore(_part(0, self.saved))

    def begin(self, parts: Sequence[Any]) -> list[int]:
        """Restore the state of each worker; return the number of steps that each had done."""
        self.parts, self.locks = list(parts), [threading.Lock() for _ in parts]
        self.done = [0] * len(parts)
        if self.saved is not None:
            self.done = [int(count) for count in self.saved["done"]]
            for i, part in enumerate(parts):
                part.restore(_part(i, self.saved))
            self.saved = None
        return list(self.done)

    @contextlib.contextmanager
    def step(self, worker: int) -> Iterator[None]:
        """Save the state of all workers after a step of the first one, at intervals."""
        with self.locks[worker]:
            yield
            self.done[worker] += 1
        run = self.checkpoint
        if worker or not self.state.resumable or time.monotonic() - run.last < run.seconds:
            return
        with contextlib.ExitStack() as stack:
            for lock in self.locks:
                stack.enter_context(lock)
            run.write(self.number, {**self._arrays(), "done": np.array(self.done)})

    def end(self) -> None:
        if self.finished or not self.state.resumable:
            return
        self.parts = [self.state]
        arrays = self._arrays()
        writing = _FILE + sum(array.nbytes for array in arrays.values()) / _RATE
        if time.monotonic() - self.start >= min(self.checkpoint.seconds, _WORTH * writing):
            self.checkpoint.write(self.number, arrays)

    def _arrays(self) -> Arrays:
        """Return the arrays of all workers; an array that they share only once."""
        named: Arrays = {"place": np.array(self.place)}
        first = self.parts[0].arrays()
        for i, part in enumerate(self.parts):
            for name, array in (part.arrays() if i else first).items():
                shared = i > 0 and array is first.get(name)
                named[f"{i}/{name}"] = np.array("shared") if shared else to_numpy(array)
        return named


def _part(i: int, arrays: Arrays) -> Arrays:
    own = {}
    for key, array in arrays.items():
        worker, _, name = key.partition("/")
        if worker == str(i):
            own[name] = arrays[f"0/{name}"] if array.dtype.kind == "U" else array
    return own


@contextlib.contextmanager
def checkpointed() -> Iterator[None]:
    """Record a fit if `checkpoint` is set; the outermost fit owns the folder.

    The record is removed when the fit is done. An error, or the end of the process, leaves it.
    """
    settings = get_config()
    if settings.checkpoint is None or recorder.get() is not None:
        yield
        return
    run = Checkpoint(Path(settings.checkpoint).absolute(), float(settings.checkpoint_seconds))
    try:
        with recorded_by(run):
            yield
        run.clear()
    finally:
        run.close()


def has_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds the checkpoint of a fit that is not finished."""
    return (folder / _HEADER).is_file()


def check_same(estimator: Any = None, **facts: Any) -> None:
    """Record parameters and other facts of the fit; raise if the saved fit differs."""
    run = recorder.get()
    if not isinstance(run, Checkpoint):
        return
    if not run.facts:
        settings, version = get_config(), importlib.import_module("mercer").__version__
        rows = "" if settings.block_rows is None else f", block_rows={settings.block_rows}"
        if settings.device is not None:
            rows += f", device={settings.device}, tf32={settings.tf32}"
        run.note(
            "surroundings",
            f"mercer {version}, numpy {np.__version__}, "
            f"scipy {importlib.import_module('scipy').__version__}, {platform.machine()}, "
            f"{threads.workers()} threads, memory={format_bytes(settings.budget)}{rows}",
        )
    if estimator is not None:
        run.note("estimator", type(estimator).__name__)
        facts = {**estimator.get_params(deep=False), **facts}
    for name, value in facts.items():
        run.note(name, describe(value))
