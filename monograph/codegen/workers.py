"""LLVM in processes of its own, for the length of one compilation.

LLVM loaded and at work holds some 70 MB that no process gets back before it ends. For a program with large weights
that is done in child processes (`llvm_worker`) while this one emits text; they have ended before weights are
copied. Where LLVM is in this process already, or little memory is at stake, starting a process gains nothing.

    with workers.opened(bytes of inputs) as team:    None where this process is to do it
        team.host()                                  what LLVM says of the machine
        team.compile(text, target, names)            object code; None from either: do it in this process

A child that was killed from outside is replaced, a few times. One that LLVM brought down (an abort, a wild access) or
that takes too long is a CompileError: the same text would do the same here. Everything else (no interpreter to start,
no permission, no llvmlite) makes this process do the work itself; logger "monograph" says so at level DEBUG.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from monograph.codegen.target import Target
from monograph.errors import CompileError

__all__ = ["LARGE", "Workers", "opened", "refused"]

logger = logging.getLogger("monograph")

LARGE = 32 << 20                # bytes of inputs, weights among them, from which LLVM's memory is worth a process
MOST = 4                        # processes at once
REPLACEMENTS = 2                # for killed children, in one compilation
SECONDS = 300                   # for one request; kernels take milliseconds
CRASHES = {getattr(signal, name, None) for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP")}


@contextlib.contextmanager
def opened(size: int) -> Iterator[Workers | None]:
    """Processes for a program whose inputs have `size` bytes in all, or None where this one is to compile."""
    if size < LARGE or "llvmlite.binding" in sys.modules:
        yield None
        return
    team = Workers(min(MOST, os.cpu_count() or 1))
    try:
        yield team
    finally:
        team.close()


class Workers:
    """Some processes that compile, started at once, and used by any number of threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._command = _command()
        self._left = count + REPLACEMENTS if self._command else 0
        for _ in range(count):
            worker = self._start()
            if worker is not None:
                self._idle.append(worker)

    def host(self) -> dict[str, Any] | None:
        """See `llvm_worker.host`."""
        content = self._ask({"work": "host"}, b"", ())
        return None if content is None else json.loads(content)

    def compile(self, text: str, target: Target, names: Sequence[str]) -> bytes | None:
        """Object code of a module that defines kernels `names`."""
        data = text.encode()
        request = {"work": "object", "triple": target.triple, "cpu": target.cpu, "features": target.features,
                   "size": len(data)}
        return self._ask(request, data, names)

    def close(self) -> None:
        """End all processes."""
        self._left = 0
        for worker in self._all:
            worker.end()
        self._all.clear()
        self._idle.clear()

    def _ask(self, request: dict[str, Any], text: bytes, names: Sequence[str]) -> bytes | None:
        while True:
            worker = self._take()
            if worker is None:
                return None
            answer = worker.ask(json.dumps(request).encode() + b"\n" + text, described(names))
            if answer is None:                          # gone, through no fault of the text
                continue
            with self._lock:
                self._idle.append(worker)
            state, content = answer
            if state == "missing":
                logger.debug("kernels are compiled in this process: the other has no LLVM (%s)", content.decode())
                self._left = 0
                with self._lock:
                    self._idle.clear()
                return None
            if state == "refused":
                raise refused(names, content.decode())
            return content

    def _take(self) -> _Worker | None:
        with self._lock:
            return self._idle.pop(0) if self._idle else self._start()

    def _start(self) -> _Worker | None:
        """A new process, while any may be started."""
        if self._left <= 0 or self._command is None:
            return None
        self._left -= 1
        try:
            worker = _Worker(self._command)
        except (OSError, ValueError) as error:
            logger.debug("kernels are compiled in this process: no other can be started (%s)", error)
            self._left = 0
            return None
        self._all.append(worker)
        return worker


class _Worker:
    """One process. OSError where it cannot be started."""

    def __init__(self, command: list[str]) -> None:
        self._errors = _scratch()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        except BaseException:
            self._errors.close()
            raise
        self._is_late = False

    def ask(self, request: bytes, what: str) -> tuple[str, bytes] | None:
        """(state, content) of the answer; None where the process is gone. CompileError where LLVM brought it down."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        watchdog = threading.Timer(SECONDS, self._stop)         # the child has one too; it may be stopped, or stuck
        watchdog.daemon = True
        with contextlib.suppress(RuntimeError):                 # no thread to be had
            watchdog.start()
        try:
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):     # it ended, or talks nonsense
                process.stdin.write(request)
                process.stdin.flush()
                head = json.loads(process.stdout.readline())
                content = process.stdout.read(head["size"])
                if len(content) == head["size"]:
                    return head["state"], content
        except BaseException:
            process.kill()                                          # between question and answer: of no more use
            raise
        finally:
            watchdog.cancel()
        self._blame(what)
        return None

    def _stop(self) -> None:
        self._is_late = True
        self._process.kill()

    def _blame(self, what: str) -> None:
        """Raise if what it was asked ended the process, rather than something from outside."""
        process = self._process
        process.kill()
        status = process.wait()
        said = self._said()
        if self._is_late or -status == getattr(signal, "SIGALRM", None):
            raise CompileError(f"LLVM works on {what} for more than {SECONDS} s")
        if -status in CRASHES:
            raise CompileError(f"LLVM breaks down on {what} ({signal.Signals(-status).name})", hint=said)
        logger.debug("a process that compiles ended with status %d while at work on %s: %s", status, what, said)

    def _said(self) -> str:
        """The end of what it printed as error."""
        try:
            self._errors.seek(0)
            return self._errors.read().decode(errors="replace")[-2000:].strip()
        except (OSError, ValueError):
            return ""

    def end(self) -> None:
        """End the process; without effect on one that has ended."""
        process = self._process
        process.kill()
        process.wait()
        for file in (process.stdin, process.stdout, self._errors):
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()


def _scratch() -> BinaryIO:
    """A file without a name; nothing keeps what is written to it where no folder takes files."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "r+b")


def described(names: Sequence[str], most: int = 4) -> str:
    """Kernels by name, for messages."""
    shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return f"kernel {shown}" if len(names) == 1 else f"kernels {shown}" if names else "a module"


def refused(names: Sequence[str], words: str) -> CompileError:
    """LLVM finds fault with what we emitted."""
    return CompileError(f"LLVM refuses {described(names)}: {words}")


def _command() -> list[str] | None:
    """How to start a worker, or None where this program cannot start an interpreter like its own."""
    executable = sys.executable or ""
    program = Path(__file__).with_name("llvm_worker.py")
    try:
        found = importlib.util.find_spec("llvmlite")
    except (ImportError, ValueError):
        found = None
    origin = found.origin if found is not None else None
    # A frozen program, or one that embeds Python, would start itself again.
    is_python = Path(executable).name.lower().startswith("python") and not getattr(sys, "frozen", False)
    if not is_python or origin is None or not program.is_file():
        logger.debug("kernels are compiled in this process: %r is no interpreter to start another with",
                     executable)
        return None
    options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    return [executable, *options, str(program), str(Path(origin).parents[1]), str(SECONDS)]
