"""Graphs with regions, made ready: what is carried into a loop is a value of its own, checks are branches.

`prepared` puts a copy in front of a loop for every carried value that somebody else sees: a graph input, a view, a
constant, a value with other readers. The loop may then write over it. After fusion most of these copies have joined
the kernel that computes the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import torch

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.schedule import anysize, checks, roles, rowat, rowwise, selections, swapped
from monograph.schedule.anysize import Kind
from monograph.schedule.kernel import is_held
from monograph.schedule.outputs import copy_of
from monograph.schedule.roles import Role

__all__ = ["is_loop", "prepared"]

WIDE = torch.complex128      # more than one word: the step runner cannot ask whether it is zero


def is_loop(node: Node) -> bool:
    return "body" in node.op.regions


def prepared(graph: Graph, count: bool = True, refused: Collection[Kind] | None = ()) -> Graph:
    """`graph` itself where it is static and has neither regions nor checks, else a copy ready to be scheduled.

    `count`: see `rowwise.extract`. `refused`: see `anysize.extract`; None: no kernels for any size."""
    if not any(node.regions or checks.is_guarded(node) or any(map(is_held, node.results))
               or selections.is_selection(node) for node in graph.nodes):
        return graph
    copied = edit.clone(graph)
    if refused is not None and (selections.open_selections(copied) or not _is_all_rows(graph, count)):
        _any_size(copied, count, refused)
    _prepare(copied, count)
    return copied


def _is_all_rows(graph: Graph, count: bool) -> bool:
    """Is nothing left to do with tensors of symbolic sizes once rows are taken out?"""
    tried = edit.clone(graph)
    swapped.sink(tried)
    rowwise.extract(tried, count)
    return all(rowwise.is_rows(node) or not any(map(is_held, (*node.reads, *node.results))) for node in tried.nodes)


def _any_size(graph: Graph, count: bool, refused: Collection[Kind]) -> None:
    """Convolutions are done in rows, before; everything else by kernels for any size."""
    if any("conv" in node.op.name and any(map(is_held, node.results)) for node in graph.nodes):
        swapped.sink(graph)
        rowwise.extract(graph, count)
    anysize.extract(graph, refused)


def _prepare(graph: Graph, count: bool) -> None:
    swapped.sink(graph)
    rowwise.extract(graph, count)
    rowat.extract(graph)
    guarded = {checks.guard(graph, node) for node in list(graph.nodes)}
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.inputs)
        uses.update(value for region in node.regions for value in region.free_values())
    own = set(graph.nodes)
    for node in list(graph.nodes):
        if rowwise.is_rows(node):
            continue
        if anysize.is_any_size(node):
            _prepare(node.regions[0], count)
            continue
        for region in () if node in guarded else node.regions:
            _prepare(region, count)
        if is_loop(node):
            _own_carried(graph, node, uses, own)
            node.regions[0].outputs = [_narrow(node.regions[0], value, None) for value in node.regions[0].outputs]
        elif node.regions:
            node.operands = (_predicate(graph, node),)


def _own_carried(graph: Graph, node: Node, uses: Counter[Value], own: set[Node]) -> None:
    def owned(value: Value) -> Value:
        if is_held(value):
            return value
        maker = value.node
        kept = maker in own and uses[value] == 1 and not rowat.is_row(maker)
        if kept and roles.role(maker) not in (Role.VIEW, Role.CONSTANT):    # type: ignore[arg-type]
            return value
        copy = copy_of(value)
        edit.insert_before(graph, node, [copy])
        return copy.result

    node.operands = tuple(map_operand(operand, owned) for operand in node.operands)


def _predicate(graph: Graph, node: Node) -> Value:
    operand = node.operands[0]
    if not isinstance(operand, Value):      # a number
        kinds = {bool: torch.bool, float: torch.float64}
        dtype = next((dtype for kind, dtype in kinds.items() if isinstance(operand, kind)), torch.int64)
        made: Value = Builder(graph, before=node).call("mono.scalar", operand, dtype=dtype)
        return made
    return _narrow(graph, operand, node)


def _narrow(graph: Graph, value: Value, before: Node | None) -> Value:
    """A predicate that the step runner can read."""
    if not isinstance(value.type, TensorType) or value.type.dtype is not WIDE:
        return value
    made: Value = Builder(graph, before=before).call("aten.ne.Scalar", value, 0)
    return made
