"""A content-addressed store on disk for object code and whole programs.

    entry ::= magic  sha256 of key and content  content      at <directory>/<first two hex digits>/<key>
    key   ::= sha256 over everything the content depends on  see `key`

The directory is ours alone (mode 0700, owned by the user); where that cannot be had there is no cache and
one warning says so. Entries are written to a temporary file and renamed, so that readers see all or nothing,
in any number of processes. What is read is verified; an entry that is damaged, or that lies under another's key, counts
as absent and is replaced. Files may be deleted at any moment. The oldest entries go when the store outgrows its limit.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import torch

__all__ = ["Cache", "is_stable", "key", "opened", "versions"]

MAGIC = b"monograph-cache\0"
LIMIT = 1 << 30                 # bytes
SWEEP_EVERY = 64                # writes between two looks at the size
_TEMPORARY = ".tmp-"
_IMPORTED = time.time()
_STALE_SECONDS = 3600           # a temporary file this old was left behind by a process that died


class Cache:
    """The store in one directory. Reading and writing never raise: what fails is as if it were not there."""

    def __init__(self, directory: Path, limit: int = LIMIT) -> None:
        self.directory = directory
        self.limit = limit
        self._writes = 0

    def get(self, key: str) -> bytes | None:
        """The content stored under `key`, verified; None where there is none."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + hashlib.sha256().digest_size
        content = data[head:]
        if data[:head] != _head(key, content):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)           # used just now: the last to be swept
        return content

    def put(self, key: str, content: bytes) -> None:
        """Store `content`; silently does nothing where the disk refuses."""
        path = self._path(key)
        temporary = None
        try:
            for folder in (self.directory, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_head(key, content) + content)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return
        self._writes += 1
        if self._writes % SWEEP_EVERY == 1:
            self.sweep()

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """The content under `key`, made and stored where it is missing."""
        content = self.get(key)
        if content is None:
            content = make()
            self.put(key, content)
        return content

    def sweep(self) -> None:
        """Delete the entries used longest ago until the store is within its limit, and what died processes left."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        newest = files[-1][0] if files else 0.0
        for used, size, path in files:
            abandoned = path.name.startswith(_TEMPORARY) and used < newest - _STALE_SECONDS
            if total <= self.limit and not abandoned:
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """(last use, bytes, path) of every file."""
        try:
            folders = [entry.path for entry in os.scandir(self.directory) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for folder in folders:
            try:
                for entry in os.scandir(folder):
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime, status.st_size, Path(entry.path)
            except OSError:          # deleted under our feet
                continue

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / key


def _head(key: str, content: bytes) -> bytes:
    return MAGIC + hashlib.sha256(key.encode() + content).digest()


@functools.cache
def opened(directory: Path | None, tell: Callable[[str], None], limit: int = LIMIT) -> Cache | None:
    """The cache in `directory`, made if need be; None, after `tell(why)`, where it would not be the user's alone."""
    if directory is None or not is_stable():
        return None
    reason = _refusal(directory)
    if reason is not None:
        tell(f"compiled code is not cached: {directory} {reason}; "
             "set MONOGRAPH_CACHE_DIR to a directory that only you can write to, or to off")
        return None
    return Cache(directory, limit)


def _refusal(directory: Path) -> str | None:
    """Why the directory cannot be used."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.stat(directory)
    except FileExistsError:
        return "is not a directory"
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    if status.st_mode & 0o022:
        return "can be written by other users"
    if status.st_mode & 0o077:
        try:
            os.chmod(directory, status.st_mode & 0o700)     # what the user took away stays away
        except OSError as error:
            return f"cannot be made private ({error.strerror})"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "cannot be written"
    return None


def key(*parts: str | bytes) -> str:
    """The name of a content that depends on `parts` and on the versions of everything that makes code."""
    digest = hashlib.sha256()
    for part in (versions(), *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@functools.cache
def versions() -> str:
    """What compiled code depends on besides its text: torch's build, llvmlite, and this package's own source."""
    torch_build = f"{torch.__version__} {torch.version.git_version} {torch.version.debug}"
    return "\n".join((f"torch {torch_build}", f"llvmlite {_installed('llvmlite')}", f"monograph {_source_digest()}"))


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _source_digest() -> str:
    """A digest of the package's source files, so that a changed compiler never finds its old code."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    return sorted(Path(__file__).parent.rglob("*.py"))


@functools.cache
def is_stable() -> bool:
    """False when the package's files changed since this process started: what runs may not be what `versions` reads."""
    started = _process_start()
    return all(path.stat().st_mtime < started for path in _sources())


def _process_start() -> float:
    """When this process began, in seconds since the epoch."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _IMPORTED
    return time.time() - age
