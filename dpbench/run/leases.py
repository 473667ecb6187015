"""Who makes which batch, where several processes or machines write to one results folder: files, and no server.

A batch is made by whoever creates its lease, `leases/NAME.lease`, first: `O_EXCL` decides, which NFS keeps too. A
thread renews what is held, by the clock of the disk. A lease belongs to a dead process if it was not renewed for
`PATIENCE` seconds, or at once if this machine knows the process to be gone; it is taken over by whoever renames it
first. A batch that ended leaves `NAME.done`, so that the others read its rows in the store in place of making them
again: until the last process leaves, each of which has a lease of its own for as long as it is there.

The name is that of the jobs asked for, finished or not, so that the same command makes the same names everywhere. Other
commands on the same folder may make a row twice, of which the store keeps one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpbench import files
from dpbench.run.batch import Batch
from dpbench.run.results import Store

STACK = 2**18  # bytes of the renewing thread: the usual 8 MB may be what the workers' threads lack then
PATIENCE = 120.0  # seconds without a sign of life; NFS may show a renewal a minute late


class Leases:
    """The leases of one process on the results in `folder`; leaving the context gives all of them back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "leases"
        self._me = f"{secrets.token_hex(8)} {os.getpid()} {machine()}"
        self._here = self._path(self._me.partition(" ")[0])
        self._held: set[Path] = set()
        self._stop, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> Leases:
        self._renewer = threading.Thread(target=self._renew, daemon=True)
        usual = threading.stack_size(STACK)
        try:
            self._renewer.start()
        finally:
            threading.stack_size(usual)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._renewer.join()
        for path in self._held:
            self._give_back(path)
        with contextlib.suppress(OSError):  # others may be at it
            for path in self._left_behind():
                path.unlink(missing_ok=True)
            self._folder.rmdir()

    def claim(self, name: str) -> bool:
        """Whether the batch is this process's to make now; not while another has it."""
        path = self._path(name)
        with self._lock, Store.explained(self._folder.parent):
            if path in self._held:
                return True
            if self._here not in self._held and self._create(self._here):
                self._held.add(self._here)
            if not (self._create(path) or (self._expired(path) and self._take_away(path) and self._create(path))):
                return False
            self._held.add(path)
        return True

    def ended_elsewhere(self, name: str) -> bool:
        """Whether another process says that it made the batch."""
        done = self._path(name).with_suffix(".done")
        try:
            return done.read_text(encoding="utf-8") != self._me
        except OSError:
            return False

    def end(self, name: str, *, made: bool = True) -> None:
        """Give a batch back. made: it is in the store, as the others then see."""
        path = self._path(name)
        if made:
            with contextlib.suppress(OSError):  # the rows are in the store, which who waits for the batch sees later
                files.write(path.with_suffix(".done"), self._me)
        with self._lock:
            self._held.discard(path)
        self._give_back(path)

    def _give_back(self, path: Path) -> None:
        """Remove the lease, unless it ran out while this process stood still, and is another's by now."""
        with contextlib.suppress(FileNotFoundError):
            if path.read_text(encoding="utf-8") == self._me:
                path.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lease"

    def _create(self, path: Path) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)  # another's end may have removed it
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(self._me)
        return True

    def _expired(self, path: Path) -> bool:
        try:
            return self._now() - path.stat().st_mtime > PATIENCE or ended(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return True  # just given back

    def _now(self) -> float:
        """By the clock of the disk, which may be another machine's."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as probe:
            return os.fstat(probe.fileno()).st_mtime

    def _take_away(self, path: Path) -> bool:
        """Whether the stale lease is gone by our hand: of several who rename it, one does."""
        aside = path.with_name(f".{path.name}-{self._here.stem}.tmp")
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return True  # given back, or taken: `_create` decides
        if not (stale := self._expired(aside)):  # another took it over in between, and lives
            with contextlib.suppress(OSError):
                os.link(aside, path)
        aside.unlink(missing_ok=True)
        return stale

    def _left_behind(self) -> Iterator[Path]:
        """What nobody needs: leases of the dead and, where nobody else is there, what says that a batch ended."""
        leases = list(self._folder.glob("*.lease"))
        expired = [path for path in leases if self._expired(path)]
        yield from expired
        if len(expired) == len(leases):
            yield from self._folder.glob("*.done")

    def _renew(self) -> None:
        while not self._stop.wait(PATIENCE / 4):
            with self._lock:
                held = list(self._held)
            for path in held:
                with contextlib.suppress(OSError):
                    os.utime(path)


class Claims:
    """Which of a run's batches are this process's to make: those whose `cell` nobody else has, or had.

    cells: the batches of all jobs asked for; a batch of the run is a part of one.
    """

    def __init__(self, leases: Leases, store: Store, cells: Sequence[Batch]) -> None:
        self._leases, self._store = leases, store
        self._name = {job.key: name for cell in cells for name in [_name(cell)] for job in cell}
        self._parts: Counter[str] = Counter()
        self.elsewhere = 0  # jobs that others made meanwhile

    def take(self, batch: Batch) -> bool:
        """Whether to make it now."""
        name = self._name[batch[0].key]
        if not self._leases.claim(name):
            return False
        if self._leases.ended_elsewhere(name) and self._finished(batch):
            if not self._parts[name]:
                self._leases.end(name, made=False)
            return False
        self._parts[name] += 1
        return True

    def gone(self, batch: Batch) -> bool:
        """Whether others have made it, so that there is nothing to wait for."""
        if not (self._leases.ended_elsewhere(self._name[batch[0].key]) and self._finished(batch)):
            return False
        self.elsewhere += len(batch)
        return True

    def end(self, batch: Batch) -> None:
        """Its rows are in the store."""
        name = self._name[batch[0].key]
        self._parts[name] -= 1
        if not self._parts[name]:
            self._leases.end(name)

    def _finished(self, batch: Batch) -> bool:
        finished = self._store.finished()
        return all(job.key in finished for job in batch)


class Alone:
    """Claims of a process that shares with nobody."""

    elsewhere = 0

    def take(self, batch: Batch) -> bool:
        return True

    def gone(self, batch: Batch) -> bool:
        return False

    def end(self, batch: Batch) -> None:
        pass


def machine() -> str:
    """What tells this machine, since it was started, and its processes' numbers from others; "" where nothing does."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def ended(owner: str) -> bool:
    """Whether the process that wrote this into its lease is known to be gone: it was of this machine."""
    _, number, where = [*owner.split(), "", "", ""][:3]
    if not where or where != machine() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _name(cell: Batch) -> str:
    return hashlib.sha256("\n".join(sorted(job.key for job in cell)).encode()).hexdigest()[:24]
