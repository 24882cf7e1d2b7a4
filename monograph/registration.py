"""`torch.compile(model, backend="monograph")`: the name in torch's list of back-ends.

An installed package is found through its entry point (pyproject.toml). One that is merely imported, from a checkout,
announces itself: at once where torch's list is loaded, else when it comes to be, because importing this package must
not import torch.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["announce", "before_use", "monograph"]

REGISTRY = "torch._dynamo.backends.registry"        # 2.13; `register_backend` there is public as torch._dynamo's
before_use: list[Callable[[], None]] = []           # filled by the package's face


def monograph(graph: Any, inputs: Sequence[Any], **choices: Any) -> Callable[..., Any]:
    """The back-end: `graph` is the fx.GraphModule that Dynamo made of a frame. `choices`: mode, options."""
    for prepare in before_use:
        prepare()
    return importlib.import_module("monograph.torch_backend").compile_frame(graph, inputs, **choices)


def announce() -> None:
    """Make the name known to torch, now or when it is asked."""
    registry = sys.modules.get(REGISTRY)
    if registry is None:
        sys.meta_path.insert(0, _Later())
    elif "monograph" not in registry._BACKENDS:             # 2.13; an entry point may have been found before
        registry.register_backend(monograph)


class _Later(importlib.abc.MetaPathFinder):
    """Waits for the registry to be imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != REGISTRY:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The registry's loader, and a word from us once it is done."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        made: types.ModuleType | None = self.inner.create_module(spec)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        self.inner.exec_module(module)
        module.register_backend(monograph)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
