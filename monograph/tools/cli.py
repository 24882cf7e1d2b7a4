"""python -m monograph check|explain model.py:factory

    factory() -> (model, example inputs)      inputs: a tuple (positional), a dict (by keyword), or a tensor

check    compile, compare with eager, say how long both take
explain  graph, kernels with the lines behind them, library calls, memory, passes
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from monograph import api, backend
from monograph.capture import blame
from monograph.config import BACKENDS
from monograph.errors import InputError, MonographError
from monograph.source import SourceLoc
from monograph.tools.dump import Dump
from monograph.tools.explain import explain
from monograph.tools.verify import verify

__all__ = ["main"]

try:
    from rich.console import Console
    has_rich = True
except ImportError:                      # plain text does as well
    has_rich = False


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 all well, 1 a difference, a refusal, or the model itself fails, 2 a wrong command line,
    130 interrupted."""
    options = _parser().parse_args(arguments)
    backend.observer = Dump
    try:
        with torch.set_grad_enabled(options.grad):
            _run(options)
        sys.stdout.flush()
    except BrokenPipeError:                  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _say("interrupted", "red", file=sys.stderr)
        return 130
    except Exception as error:               # the model is anyone's code and raises anything
        if options.traceback:
            raise
        status, text = _told(error)
        _say(text, "red", file=sys.stderr)
        return status
    return 0


def _told(error: Exception) -> tuple[int, str]:
    """Exit status and words for what went wrong: what, where in the user's code, what to do."""
    if isinstance(error, InputError):
        return 2, f"error: {error}"
    if isinstance(error, MonographError):
        return 1, f"{type(error).__name__}: {error}"
    what = str(error).partition("\nException raised from ")[0].rstrip()        # torch lists C++ frames below
    lines = [f"{type(error).__name__}: {what}" if what else type(error).__name__]
    loc = blame.raised_by_user(error)
    if loc is not None:
        lines.append(f"  at {loc}")
    if blame.raised_by_us(error):
        lines.append("  this is a fault of Monograph's")
    lines.append("  --traceback shows the calls that led there")
    return 1, "\n".join(lines)


def _run(options: argparse.Namespace) -> None:
    model, inputs = _load(options.target)
    compiled = api.compile(model, backend=options.backend)
    if options.command == "explain":
        args, kwargs = _arguments(inputs)
        print(explain(compiled, *args, **kwargs))
    else:
        _check(model, compiled, inputs, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="monograph", description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("check", "compare compiled with eager"), ("explain", "show graph, kernels and memory")):
        command = commands.add_parser(name, help=text)
        command.add_argument("target", metavar="model.py:factory", help="factory() returns (model, example inputs)")
        command.add_argument("--traceback", action="store_true", help="Python's traceback where something goes wrong")
        command.add_argument("--backend", choices=BACKENDS, default="llvm")
        command.add_argument("--grad", action="store_true", help="with gradients: forward and backward")
        if name == "check":
            command.add_argument("--rtol", type=float)
            command.add_argument("--atol", type=float)
            command.add_argument("--runs", type=int, default=5, help="timed runs; the median is told")
    return parser


def _load(target: str) -> tuple[Any, Any]:
    """Model and example inputs of `path/to/file.py:factory` or `package.module:factory`."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise InputError(f"{target!r} names no factory", hint="write model.py:factory")
    with _running(f"{place} cannot be imported"):
        factory = getattr(_module(place), name, None)
    if not callable(factory):
        raise InputError(f"{place} has no function {name!r}")
    with _running(f"{name}() failed"):
        made = factory()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        kinds = [type(part).__name__ for part in (made if isinstance(made, tuple) else (made,))]
        raise InputError(f"{name}() must return (model, example inputs), not ({', '.join(kinds)})", loc=_home(factory))
    return made


@contextlib.contextmanager
def _running(what: str) -> Iterator[None]:
    """InputError that names the user's line for whatever the user's file raises."""
    try:
        yield
    except MonographError:
        raise
    except Exception as error:
        loc = blame.raised_by_user(error)
        text = str(error)
        if isinstance(error, SyntaxError) and error.filename is not None:
            loc, text = SourceLoc(os.path.abspath(error.filename), error.lineno or 1), error.msg
        raise InputError(f"{what}: {type(error).__name__}: {text}", loc=loc,
                         hint="--traceback shows the calls that led there") from error


def _home(function: Any) -> SourceLoc | None:
    code = getattr(function, "__code__", None)
    return SourceLoc(code.co_filename, code.co_firstlineno, code.co_qualname) if code is not None else None


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InputError(f"no file {place}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


def _check(model: Any, compiled: Any, inputs: Any, options: argparse.Namespace) -> None:
    verified = verify(compiled, [inputs], rtol=options.rtol, atol=options.atol)
    args, kwargs = _arguments(inputs)
    start = time.perf_counter()
    compiled(*args, **kwargs)
    first = time.perf_counter() - start
    eager, fast = _median(model, args, kwargs, options.runs), _median(compiled, args, kwargs, options.runs)
    _say(f"ok: {verified}", "green")
    _say(f"first call {first:.2f} s; eager {eager * 1e3:.3f} ms, compiled {fast * 1e3:.3f} ms, "
         f"{eager / fast:.2f}x", "")


def _median(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], runs: int) -> float:
    seconds = []
    for _ in range(max(runs, 1)):
        start = time.perf_counter()
        function(*args, **kwargs)
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def _say(text: str, style: str, file: Any = None) -> None:
    if not has_rich:
        print(text, file=file or sys.stdout)
    else:
        Console(file=file or sys.stdout, soft_wrap=True).print(text, style=style or None, markup=False, highlight=False)
