"""python -m monograph check|explain model.py:factory

    factory() -> (model, example inputs)      inputs: a tuple (positional), a dict (by keyword), or a tensor

check    compile, compare with eager, say how long both take
explain  graph, kernels with the lines behind them, library calls, memory, passes
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from monograph import api
from monograph.config import BACKENDS
from monograph.errors import InputError, MonographError
from monograph.tools.explain import explain
from monograph.tools.verify import verify

__all__ = ["main"]

try:
    from rich.console import Console
    has_rich = True
except ImportError:                      # plain text does as well
    has_rich = False


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 all well, 1 a difference or a refusal, 2 a wrong command line."""
    options = _parser().parse_args(arguments)
    try:
        with torch.set_grad_enabled(options.grad):
            _run(options)
    except InputError as error:
        _say(f"error: {error}", "red", file=sys.stderr)
        return 2
    except MonographError as error:
        _say(f"{type(error).__name__}: {error}", "red", file=sys.stderr)
        return 1
    return 0


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
    if not place:
        raise InputError(f"{target!r} names no factory", hint="write model.py:factory")
    factory = getattr(_module(place), name, None)
    if not callable(factory):
        raise InputError(f"{place} has no function {name!r}")
    made = factory()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        raise InputError(f"{name}() must return (model, example inputs)")
    return made


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise InputError(f"no module {place!r}: {error}") from error
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
