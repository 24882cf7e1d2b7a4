"""What a program took from Python without a guard: two captures of calls that its guard cannot tell apart.

    first_unguarded(then, now) -> text, line        None where both made the same program of them

A clock that no one reads per call, a counter inside an object of C, the number of a process: what such a thing gives
is a number, a text or a tensor in the graph, and another one in a later graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from monograph.capture.captured import Binding, Captured
from monograph.ir.boundary import Literal
from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ops.text import parse
from monograph.source import SourceLoc

__all__ = ["first_unguarded", "moved"]

CROWD = 1000      # objects of each size that `moved` keeps
Found = tuple[str, SourceLoc | None]


def moved() -> list[Any]:
    """Objects to keep alive, in the memory of what was freed: new ones lie elsewhere then, and have other ids."""
    small = [bytes(size) for size in range(1, 512, 16) for _ in range(CROWD)]
    return [small, [object() for _ in range(20 * CROWD)], [[] for _ in range(CROWD)], [{0: 0} for _ in range(CROWD)]]


def first_unguarded(then: Captured, then_text: str, now: Captured) -> Found | None:
    """Where the programs part. `then_text` is the graph of `then` as it was captured: passes have changed it since."""
    return (_in_nodes(parse(then_text), now.graph)
            or _in_tensors(then.bindings, now.bindings)
            or _in_results(then, now))


def _in_nodes(then: Graph, now: Graph) -> Found | None:
    numbers: tuple[dict[Value, int], dict[Value, int]] = ({}, {})
    for a, b in itertools.zip_longest(then.walk(), now.walk()):
        if a is None or b is None:
            left = a or b
            return f"one of them has more: {_name(left)}", left.loc
        if _name(a) != _name(b):
            return f"{_name(a)}, and now {_name(b)}", b.loc
        for what, was, is_now in _parts(a, b, numbers):
            if not _same(was, is_now):
                return f"{_name(b)} with {what} {_short(was)}, and now {_short(is_now)}", b.loc
        for mine, theirs in zip(a.results, b.results):
            numbers[0][mine] = numbers[1][theirs] = len(numbers[0])
    return None


def _parts(a: Node, b: Node, numbers: tuple[dict[Value, int], dict[Value, int]]) -> Iterator[tuple[str, Any, Any]]:
    """What two nodes of one op may differ in."""
    yield "operands", [_place(o, numbers[0]) for o in a.operands], [_place(o, numbers[1]) for o in b.operands]
    for name in a.attributes.keys() | b.attributes.keys():
        yield name, a.attributes.get(name), b.attributes.get(name)


def _place(operand: Operand, numbers: dict[Value, int]) -> Any:
    """Values by their place in the program: results by number, inputs of a graph or region by negative ones."""
    return map_operand(operand, lambda value: f"%{numbers.get(value, -1 - value.index)}")


def _name(node: Node) -> str:
    """Functions of the user's are numbered anew in every trace."""
    name = node.op.name
    return name.rsplit(".", 1)[0] if name.startswith("host.") and name.rsplit(".", 1)[1].isdigit() else name


def _in_tensors(then: Iterable[Binding], now: Iterable[Binding]) -> Found | None:
    for a, b in itertools.zip_longest(then, now):
        if a is None or b is None or a.kind != b.kind or a.leaf != b.leaf:
            return "a tensor that only one of them reads", None
        if a.tensor is not b.tensor and not _equal(a.tensor, b.tensor):
            return f"a tensor that is made outside of what is traced ({b.path or 'without a name'})", None
    return None


def _in_results(then: Captured, now: Captured) -> Found | None:
    for a, b in zip(_literals(then), _literals(now)):
        if not _same(a, b):
            return f"the result {_short(a)}, and now {_short(b)}", None
    return None


def _literals(captured: Captured) -> Iterator[Any]:
    """Numbers and texts among the results: other objects may be new ones at each call."""
    for result in captured.boundary.results:
        if isinstance(result, Literal) and isinstance(result.value, (bool, int, float, complex, str, bytes)):
            yield result.value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _equal(a, b)
    return bool(a == b) or (a != a and b != b)


def _equal(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and bool(
        np.array_equal(_bytes(a), _bytes(b)))


def _bytes(tensor: torch.Tensor) -> Any:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()


def _short(value: Any) -> str:
    text = f"{type(value).__name__}{list(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
