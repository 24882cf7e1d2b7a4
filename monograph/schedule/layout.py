"""Strides of every materialised value, and the operands of templates and library calls that follow from them.

    graph inputs and outputs    their types' strides
    convolutions                channels last, in and out
    attention                   heads next to their channels: the transposition that follows is free
    others read by a template or a library call through a transposition and a view: so that these are free
    pointwise and other loops   what a convolution wants to read, else as their largest input lies, else row-major
    all others                  row-major

`lay_out` walks the items in order; where an operand cannot be read where it lies it puts a copy in front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ops import build, panels
from monograph.schedule import borders, turning, views
from monograph.schedule.flow import Flow, size
from monograph.schedule.items import closure, inputs_of
from monograph.schedule.kernel import Domain, Fused, Item, Layout, LibraryCall, Pack, Strided, Template
from monograph.schedule.operands import Operands, channels_last
from monograph.schedule.outputs import copy_of
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["Laid", "lay_out"]

Strides = tuple[int, ...]


@dataclass
class Laid:
    """Items with the copies that were added, layouts, packed weights."""

    items: list[Item] = field(default_factory=list)
    layouts: dict[Value, Layout] = field(default_factory=dict)
    packs: list[Pack] = field(default_factory=list)


def lay_out(
    flow: Flow, items: list[Item], pinned: dict[Value, Strides], lanes: Callable[[torch.dtype], int], *,
    pack: bool = True,
) -> Laid:
    """Layouts for all values that `items` store; `pinned` are those of values that are graph outputs.

    Without `pack` weights are treated like any other input: no copy of them is kept between runs.
    """
    walk = _Walk(flow, items, pinned, lanes, pack)
    for item in items:
        walk.add(item)
    walk.laid.packs = list(walk.operands.packs.values())
    return walk.laid


class _Walk:
    def __init__(
        self, flow: Flow, items: list[Item], pinned: dict[Value, Strides], lanes: Callable[[torch.dtype], int],
        pack: bool,
    ) -> None:
        self.flow, self.pinned = flow, pinned
        self.laid = Laid()
        self.copies: dict[tuple[Value, Strides], Value] = {}
        weights = set()
        for value, source in zip(flow.graph.inputs, flow.graph.sources, strict=True):
            self.laid.layouts[value] = Layout(views.strides_seen(value))
            if pack and source.is_weight:
                weights.add(value)
        self.wanted = _wanted(flow, items)
        self.operands = Operands(flow, self.laid.layouts, weights, lanes, self.copy, self.repack)

    def add(self, item: Item) -> None:
        """Lay out what `item` stores, after binding what it reads."""
        for value in item.outputs:
            self.laid.layouts[value] = Layout(self.pinned.get(value) or self.strides(item, value))
        if isinstance(item, Template):
            self.operands.bind(item)
            self.refresh(item)
        elif isinstance(item, LibraryCall):
            self.bind_call(item)
        self.laid.items.append(item)

    def strides(self, item: Item, value: Value) -> Strides:
        """The layout of an output that nobody outside sees."""
        shape = shape_of(value)
        if value in self.wanted:
            return self.wanted[value]
        if not isinstance(item, Template) or item.name == "gemm":
            turned = turning.turned(self.flow, value)
            if turned is not None:
                return turned
        if isinstance(item, Template):
            return _template_strides(item, value)
        if isinstance(item, Fused):
            leader = max(item.inputs, key=size, default=None)
            if leader is not None and shape_of(leader) == shape:
                strides = self.laid.layouts[leader].strides
                if _is_dense(shape, strides):
                    return strides
        return views.row_major(shape)

    def refresh(self, item: Template) -> None:
        """The inputs of a template, now that its operands may be copies or packed weights."""
        epilogue = [n for n in item.nodes if n is not item.anchor and self.flow.role[n] is not Role.VIEW]
        inside = set(item.nodes)
        read = [v for v in inputs_of(self.flow, closure(self.flow, epilogue)) if v.node not in inside]
        item.inputs = list(dict.fromkeys([*(operand.value for operand in item.operands.values()), *read]))

    def bind_call(self, item: LibraryCall) -> None:
        """Operands of a library call are tensors laid over memory, from its start."""
        for value in dict.fromkeys(item.node.inputs):
            base = self.flow.base_of(value)
            if base is value and value in self.laid.layouts:
                continue
            affine = self.operands.lies(value) if base in self.laid.layouts else None
            # Only in the arena can a tensor start in the middle of a value.
            if affine is not None and (not affine.offset or not (base.node is None or base in self.pinned)):
                item.operands[value] = Strided(base, affine.shape, affine.strides, affine.offset)
                continue
            made = self.copy(value, None)
            shape = shape_of(value)
            item.operands[value] = Strided(made, shape, views.row_major(shape))
        read = [item.operands[v].value if v in item.operands else v for v in item.node.inputs]
        free = [v for region in item.node.regions for v in region.free_values()]
        item.inputs = list(dict.fromkeys([*read, *(self.flow.base_of(value) for value in free)]))

    def copy(self, value: Value, strides: Strides | None) -> Value:
        """Puts a kernel that copies `value` in front of the item at hand; one copy serves all who want the same."""
        strides = strides or views.row_major(shape_of(value))
        made = self.copies.get((value, strides))
        if made is None:
            node = copy_of(value)
            made = self.copies[value, strides] = node.result
            self.store([node], strides)
        return made

    def repack(self, value: Value, steps: tuple[panels.Step, ...]) -> Value:
        """Puts a kernel that packs `value` in front of the item at hand."""
        scratch = Graph()
        builder = build.Builder(scratch)
        packed = value
        for kind, numbers in steps:
            packed = _step(builder, kind, packed, numbers)
        nodes = [*scratch.nodes, copy_of(packed)]
        self.store(nodes, views.row_major(shape_of(packed)))
        return nodes[-1].result

    def store(self, nodes: list[Node], strides: Strides) -> None:
        result = nodes[-1].result
        outer = [v.node for node in nodes for v in node.inputs if v.node is not None and v.node not in nodes]
        before = [n for n in outer if self.flow.role.get(n) in (Role.VIEW, Role.CONSTANT)]
        every = [*closure(self.flow, before), *nodes]
        self.laid.layouts[result] = Layout(strides)
        domain = Domain(shape_of(result))
        self.laid.items.append(Fused(every, inputs_of(self.flow, every), [result], domain))


def _step(builder: build.Builder, kind: str, value: Value, numbers: tuple[int, ...]) -> Value:
    """One step of a recipe as a node."""
    if kind == "pad":
        return builder.call("aten.constant_pad_nd.default", value, numbers)
    if kind == "reshape":
        return builder.call("aten.view.default", value, numbers)
    if kind == "permute":
        return builder.call("aten.permute.default", value, numbers)
    return builder.call("aten.slice.Tensor", value, *numbers)


def _wanted(flow: Flow, items: list[Item]) -> dict[Value, Strides]:
    """Values that a convolution reads directly, with the strides it wants."""
    wanted: dict[Value, Strides] = {}
    for item in items:
        if isinstance(item, Template) and item.name == "conv":
            value, _ = borders.image(item.anchor.inputs[0], flow.role)
            if flow.base_of(value) is value:
                wanted[value] = channels_last(shape_of(value))
    return wanted


def _template_strides(item: Template, value: Value) -> Strides:
    shape = shape_of(value)
    anchor = shape_of(item.anchor.results[0])
    if item.name == "conv":
        lies = views.reshape(Affine(anchor, channels_last(anchor)), shape)
        return lies.strides if lies is not None else views.row_major(shape)
    if item.name == "attention" and value is item.anchor.results[0]:
        b, h, s, e = shape
        return (s * h * e, e, h * e, 1)
    return views.row_major(shape)


def _is_dense(shape: Strides, strides: Strides) -> bool:
    """Do the strides walk every element of a block once?"""
    step = 1
    for stride, n in sorted((stride, n) for n, stride in zip(shape, strides, strict=True) if n != 1):
        if stride != step:
            return False
        step *= n
    return True
