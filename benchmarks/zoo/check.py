"""One family: built, captured, compared with eager.

    Outcome.status ::= not built | equal | different | refused | error | timeout | died
"""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import Any

import torch
import transformers
from torch.utils import _pytree as pytree

import monograph
from benchmarks.zoo.models import Instance, NotBuilt, make, run
from monograph.api import dispatcher_of
from monograph.ir import edit
from monograph.ir.graph import Graph, Node
from monograph.ops.effects import varies
from monograph.ops.own import reads_value
from monograph.ops.text import parse
from tests.compare import assert_same

__all__ = ["Outcome", "check"]


@dataclasses.dataclass
class Outcome:
    """`graphs`: programs made for two equal calls; `reads`: values of which a call may have others, for which there
    is another program then; `regions`: branches and loops; `calls`: functions that are called in Python;
    `seconds` of the processor's time."""

    name: str
    status: str
    reason: str = ""
    graphs: int = 0
    nodes: int = 0
    reads: int = 0
    regions: int = 0
    calls: int = 0
    seconds: float = 0.0
    scale: str = ""
    inputs: str = ""


def check(name: str, *, backend: str = "reference") -> Outcome:
    start = time.process_time()
    try:
        instance = make(name)
    except NotBuilt as error:
        return Outcome(name, "not built", f"{error.stage}: {error}", seconds=time.process_time() - start)
    outcome = Outcome(name, "equal", scale=str(dataclasses.astuple(instance.scale)),
                      inputs=" ".join(f"{key}{list(value.shape)}" for key, value in instance.inputs.items()))
    _compare(instance, outcome, backend)
    outcome.seconds = round(time.process_time() - start, 2)
    return outcome


def _compare(instance: Instance, outcome: Outcome, backend: str) -> None:
    again = copy.deepcopy(instance.model)
    expected = [visible(run(again, instance.inputs)) for _ in range(2)]
    compiled = monograph.compile(instance.model, backend=backend)
    try:
        for want in expected:
            got = visible(run(compiled, instance.inputs))
            try:
                assert_same(got, want, rtol=1e-4, atol=1e-5)
            except AssertionError:
                assert_same(got, want, rtol=1e-4, atol=1e-5 + 3 * _rounding(instance, want))
    except monograph.CaptureError as error:
        outcome.status, outcome.reason = "refused", _text(error)
    except AssertionError as error:
        outcome.status, outcome.reason = "different", _text(error)
    except Exception as error:             # what a faulty compiler raises is not known beforehand
        outcome.status, outcome.reason = "error", _text(error)
    _count(compiled, outcome)


def _rounding(instance: Instance, result: Any) -> float:
    """How far eager's own rounding takes it from the result in double precision: below that nothing can be told."""
    exact = visible(run(copy.deepcopy(instance.model).double(), {
        name: value.double() if value.is_floating_point() else value for name, value in instance.inputs.items()}))
    pairs = zip(pytree.tree_leaves(exact), pytree.tree_leaves(result), strict=True)
    return max((float((a - b).abs().nan_to_num(0).max()) for a, b in pairs     # NaN: infinities of both
                if isinstance(b, torch.Tensor) and b.is_floating_point() and b.numel()), default=0.0)


def _count(compiled: Any, outcome: Outcome) -> None:
    dispatcher = dispatcher_of(compiled)
    assert dispatcher is not None
    outcome.graphs = len(dispatcher.entries)
    if dispatcher.entries:
        graph = parse(dispatcher.entries[-1].report.text)
        nodes = list(graph.walk())
        outcome.nodes = len(nodes)
        outcome.reads = sum(reads_value(node) and _varies(node, graph) for node in nodes)
        outcome.calls = sum(node.op.name.startswith("host.") for node in nodes)
        outcome.regions = sum(bool(node.regions) for node in nodes)


def _varies(node: Node, graph: Graph) -> bool:
    """Whether a check looks at what a call brings: buffers of integers are what they are."""
    tellers = [value for value, names in edit.tellers(graph).items() if names & edit.symbols_named(node)]
    return varies([*node.inputs, *tellers], graph)


def visible(result: Any) -> Any:
    """A result with caches opened: what their layers hold."""
    opened = pytree.tree_map(lambda leaf: _open(leaf) if isinstance(leaf, transformers.Cache) else leaf, result,
                             is_leaf=lambda leaf: isinstance(leaf, transformers.Cache))
    return pytree.tree_map(lambda leaf: leaf, opened)


def _open(cache: Any) -> Any:
    if isinstance(cache, transformers.EncoderDecoderCache):
        return [_open(cache.self_attention_cache), _open(cache.cross_attention_cache)]
    return [{key: value for key, value in sorted(vars(layer).items()) if isinstance(value, (torch.Tensor, int, bool))}
            for layer in cache.layers]


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' | '.join(str(error).strip().splitlines()[:3])}"[:400]
