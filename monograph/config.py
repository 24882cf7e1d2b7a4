"""What the user may choose, and the only reader of MONOGRAPH_* environment variables.

    MONOGRAPH_DISABLE=1          `compile` returns its target unchanged
    MONOGRAPH_DEBUG=dir          every compilation writes its graphs, loops, LLVM IR, assembly and memory plan there;
                                 tracebacks keep this package's frames
    MONOGRAPH_LOG=topic,...      lines on stderr; topics: recompiles, passes, kernels, timing, all
    MONOGRAPH_CACHE_DIR=dir      where compiled objects are kept; empty or `off`: nowhere
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monograph.errors import InputError

__all__ = [
    "BACKENDS", "LOG_TOPICS", "MODES", "WEIGHTS", "Options", "cache_directory", "is_disabled", "shows_all_frames",
]

MODES = ("default", "max-autotune", "low-memory")
# torch.compile's further modes tune CUDA graphs or Triton; on the CPU they mean one of ours.
TORCH_MODES = {"reduce-overhead": "default", "max-autotune-no-cudagraphs": "max-autotune", "lite": "default"}
BACKENDS = ("llvm", "reference")
WEIGHTS = ("watched", "live", "frozen")
LOG_TOPICS = ("recompiles", "passes", "kernels", "timing")


@dataclass(frozen=True, slots=True)
class Options:
    """One compilation's settings; build with `Options.make`, which validates and fills in the environment.

    mode        default | max-autotune | low-memory
    backend     llvm: native code; reference: the graph is run op by op in torch
    dynamic     True: sizes are symbolic; False: never; None: after a size was seen to change
    fullgraph   True: what cannot be captured is an error; False: it runs eagerly, with one warning
    weights     watched: derived copies follow every change; live: nothing is derived; frozen: never checked
    """

    mode: str = "default"
    backend: str = "llvm"
    dynamic: bool | None = None
    fullgraph: bool = True
    weights: str = "watched"
    cache_dir: Path | None = None
    debug_dir: Path | None = None
    log: frozenset[str] = frozenset()

    @staticmethod
    def make(**choices: Any) -> Options:
        """Validated options; InputError names the first choice that makes no sense."""
        unknown = sorted(set(choices) - {"mode", "backend", "dynamic", "fullgraph", "weights"})
        if unknown:
            raise InputError(f"compile() has no option {unknown[0]!r}")
        options = Options(**choices)
        mode = TORCH_MODES.get(options.mode, options.mode) if isinstance(options.mode, str) else options.mode
        _one_of("mode", mode, (*MODES, *TORCH_MODES))
        _one_of("backend", options.backend, BACKENDS)
        _one_of("weights", options.weights, WEIGHTS)
        if not isinstance(options.fullgraph, bool):
            raise InputError(f"fullgraph is True or False, not {options.fullgraph!r}")
        if options.dynamic is not None and not isinstance(options.dynamic, bool):
            raise InputError(f"dynamic is True, False or None, not {options.dynamic!r}")
        return replace(options, mode=mode, cache_dir=cache_directory(), debug_dir=_debug_directory(), log=_log_topics())


def is_disabled() -> bool:
    """MONOGRAPH_DISABLE asks for plain PyTorch."""
    return os.environ.get("MONOGRAPH_DISABLE", "").lower() not in ("", "0", "false", "no")


def shows_all_frames() -> bool:
    """Whether tracebacks keep the frames of this package."""
    return bool(os.environ.get("MONOGRAPH_DEBUG"))


def cache_directory() -> Path | None:
    """Where compiled objects are kept, None when caching is off or the user has no home. The folder need not exist."""
    chosen = os.environ.get("MONOGRAPH_CACHE_DIR")
    if chosen is not None:
        return None if chosen.lower() in ("", "off", "0") else _expanded("MONOGRAPH_CACHE_DIR", chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return None if base.startswith("~") else Path(base) / "monograph"


def _debug_directory() -> Path | None:
    chosen = os.environ.get("MONOGRAPH_DEBUG", "")
    return _expanded("MONOGRAPH_DEBUG", chosen) if chosen else None


def _expanded(variable: str, chosen: str) -> Path:
    path = os.path.expanduser(chosen)
    if path.startswith("~"):
        raise InputError(f"{variable} is {chosen!r}, the home of no user", hint="write a full path")
    return Path(path)


def _log_topics() -> frozenset[str]:
    topics = {topic.strip() for topic in os.environ.get("MONOGRAPH_LOG", "").split(",")} - {""}
    if "all" in topics:
        return frozenset(LOG_TOPICS)
    for topic in sorted(topics):
        _one_of("MONOGRAPH_LOG", topic, (*LOG_TOPICS, "all"))
    return frozenset(topics)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} is {value!r}", hint=f"one of: {', '.join(allowed)}")
