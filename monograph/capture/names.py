"""Names of tensors met while tracing: parameter and buffer paths, as a state dict writes them, and variables."""

from __future__ import annotations

import itertools
import re
import types
from collections.abc import Iterable
from typing import Any

import torch

from monograph.ir.graph import Source

__all__ = ["Names"]


NUMBERED = re.compile(r"[a-z]+[0-9]+$")        # names of ours


class Names:
    """Looks tensors up in what the function and its arguments hold. Built on the first question."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.roots = list(roots)
        self.known: dict[int, Source] | None = None
        self.anonymous = 0

    def source(self, tensor: torch.Tensor) -> Source:
        """Where `tensor` comes from: parameter or buffer by path, else a numbered constant."""
        known = self.build()
        found = known.get(id(tensor))
        if found is None:
            self.anonymous += 1
            found = known[id(tensor)] = Source(_kind(tensor), f"tensor{self.anonymous - 1}")
        return found

    def build(self) -> dict[int, Source]:
        """The names of all tensors in the modules, by id."""
        if self.known is None:
            self.known = {}
            for prefix, module in self._modules():
                self._add(module, prefix)
            taken = {source.path for source in self.known.values()}
            for name, value in itertools.chain.from_iterable(map(_held, self.roots)):
                if isinstance(value, torch.Tensor) and name and name not in taken and not NUMBERED.match(name):
                    self.known.setdefault(id(value), Source(_kind(value), name))
                    taken.add(name)
        return self.known

    def _add(self, module: torch.nn.Module, prefix: str) -> None:
        known = self.known
        assert known is not None
        for name, parameter in module.named_parameters(prefix=prefix):
            known.setdefault(id(parameter), Source("parameter", name))
        for name, buffer in module.named_buffers(prefix=prefix):
            known.setdefault(id(buffer), Source("buffer", name))

    def _modules(self) -> list[tuple[str, torch.nn.Module]]:
        """Modules among the roots, in their closures, globals and attributes; with the prefix of their paths."""
        found: list[tuple[str, torch.nn.Module]] = []
        for root in self.roots:
            for name, value in _held(root):
                if isinstance(value, torch.nn.Module):
                    found.append((name, value))
        return found


def _kind(tensor: torch.Tensor) -> str:
    return "parameter" if isinstance(tensor, torch.nn.Parameter) else "constant"


def _held(root: Any) -> list[tuple[str, Any]]:
    if isinstance(root, types.MethodType):
        owner = root.__self__
        inner = [("", owner)] if isinstance(owner, torch.nn.Module) else list(getattr(owner, "__dict__", {}).items())
        return inner + _held(root.__func__)
    if isinstance(root, types.FunctionType):
        held: list[tuple[str, Any]] = []
        for name, cell in zip(root.__code__.co_freevars, root.__closure__ or (), strict=True):
            try:
                held.append((name, cell.cell_contents))
            except ValueError:
                continue
        names = set(root.__code__.co_names)
        return held + [(name, value) for name, value in root.__globals__.items() if name in names]
    return [("", root)]
