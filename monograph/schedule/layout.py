"""Strides of every materialised value, and the operands of templates and library calls that follow from them.

    graph inputs and outputs    their types' strides
    convolutions                channels last, in and out
    attention                   heads next to their channels: the transposition that follows is free
    others read by a template or a library call through a transposition and a view: so that these are free
    pointwise and other loops   what a convolution wants to read, else as their largest input lies, else row-major
    carried by a loop           as the initial value lies, unless the result of the loop is a graph output
    all others                  row-major

`lay_out` walks the items in order; where an operand cannot be read where it lies it puts a copy in front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from monograph.ir.graph import Graph, Node, Value
from monograph.ir.sized import example
from monograph.ops import build, panels
from monograph.schedule import borders, rowat, turning, views
from monograph.schedule.block import Control, Part
from monograph.schedule.flow import Flow, size
from monograph.schedule.items import closure, inputs_of
from monograph.schedule.kernel import Domain, Fused, Layout, LibraryCall, Pack, Strided, Template, is_held
from monograph.schedule.operands import Operands, channels_last
from monograph.schedule.outputs import copy_of
from monograph.schedule.roles import Role
from monograph.schedule.views import Affine, shape_of

__all__ = ["Laid", "Walk"]

Strides = tuple[int, ...]
Inside = Callable[["Walk", Control], None]


@dataclass
class Laid:
    """What the blocks of one schedule share: layouts, packed weights, and what the target asks for.

    `inside(walk, item)` schedules the regions of a Control.
    """

    lanes: Callable[[torch.dtype], int]
    inside: Inside
    layouts: dict[Value, Layout] = field(default_factory=dict)
    weights: set[Value] = field(default_factory=set)       # inputs worth packing once
    packs: dict[tuple[Value, tuple[panels.Step, ...]], Pack] = field(default_factory=dict)


class Walk:
    """Lays out one block, item by item; `items` are those laid out so far, with the copies that were added.

    `pinned` are the strides of values that outputs of the graph are held in. `before`: the walk around the loop whose
    region this is, where copies of outer values belong.
    """

    def __init__(
        self, flow: Flow, items: list[Part], pinned: dict[Value, Strides], laid: Laid, before: Walk | None = None,
    ) -> None:
        self.flow, self.pinned, self.laid, self.before = flow, pinned, laid, before
        self.items: list[Part] = []
        self.copies: dict[tuple[Value, Strides], Value] = {}
        self.wanted = _wanted(flow, items)
        self.inputs = set(flow.graph.inputs)
        self.operands = Operands(
            flow, laid.layouts, laid.weights, laid.lanes, self.copy, self.repack, laid.packs,
        )

    def add(self, item: Part) -> None:
        """Lay out what `item` stores, after binding what it reads."""
        for value in item.outputs:
            if not is_held(value):
                self.laid.layouts[value] = Layout(self.pinned.get(value) or self.strides(item, value))
        if isinstance(item, Template):
            self.operands.bind(item)
            self.refresh(item)
        elif isinstance(item, LibraryCall):
            self.bind_call(item)
        elif isinstance(item, Control):
            self.laid.inside(self, item)
        self.items.append(item)

    def strides(self, item: Part, value: Value) -> Strides:
        """The layout of an output that nobody outside sees."""
        shape = shape_of(value)
        if rowat.is_row(value.node):
            return views.row_major(shape)
        if isinstance(item, Control) and item.is_loop:
            return self.laid.layouts[item.node.inputs[value.index]].strides
        if value in self.wanted:
            return self.wanted[value]
        if not isinstance(item, Template) or item.name == "gemm":
            turned = turning.turned(self.flow, value)
            if turned is not None:
                return turned
        if isinstance(item, Template):
            return _template_strides(item, value)
        if isinstance(item, Fused):
            leader = max(item.inputs, key=lambda given: example(size(given)), default=None)
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
            operand = self.whole(value)
            if operand.value is not value:
                item.operands[value] = operand
        read = [item.operands[v].value if v in item.operands else v for v in item.node.inputs]
        item.inputs = list(dict.fromkeys(read))

    def whole(self, value: Value) -> Strided:
        """Where `value` lies, as a tensor laid over memory from its start: itself, a view of another, or a copy."""
        if is_held(value):
            return Strided(value, (), ())
        base, shape = self.flow.base_of(value), shape_of(value)
        if base is value and value in self.laid.layouts:
            return Strided(value, shape, self.laid.layouts[value].strides)
        affine = self.operands.lies(value) if base in self.laid.layouts else None
        # Only in the arena can a tensor start in the middle of a value.
        in_arena = base.node in self.flow.own and base not in self.pinned
        if affine is not None and (not affine.offset or in_arena):
            return Strided(base, affine.shape, affine.strides, affine.offset)
        return Strided(self.copy(value, None), shape, views.row_major(shape))

    def copy(self, value: Value, strides: Strides | None) -> Value:
        """Puts a kernel that copies `value` in front of the item at hand; one copy serves all who want the same."""
        strides = strides or views.row_major(shape_of(value))
        made = self.found(value, strides)
        if made is None:
            node = copy_of(value)
            made = self.home(value).copies[value, strides] = node.result
            self.store([node], strides, self.home(value))
        return made

    def found(self, value: Value, strides: Strides) -> Value | None:
        made = self.copies.get((value, strides))
        return made if made is not None or self.before is None else self.before.found(value, strides)

    def home(self, value: Value) -> Walk:
        """The walk where a copy of `value` belongs: in front of the outermost loop that does not change it."""
        base = self.flow.base_of(value)
        if self.before is None or base.node in self.flow.own or base in self.inputs:
            return self
        return self.before.home(base)

    def repack(self, value: Value, steps: tuple[panels.Step, ...]) -> Value:
        """Puts a kernel that packs `value` in front of the item at hand."""
        scratch = Graph()
        builder = build.Builder(scratch)
        packed = value
        for kind, numbers in steps:
            packed = _step(builder, kind, packed, numbers)
        nodes = [*scratch.nodes, copy_of(packed)]
        self.store(nodes, views.row_major(shape_of(packed)), self.home(value))
        return nodes[-1].result

    def store(self, nodes: list[Node], strides: Strides, home: Walk) -> None:
        result = nodes[-1].result
        outer = [v.node for node in nodes for v in node.inputs if v.node is not None and v.node not in nodes]
        before = [n for n in outer if self.flow.role.get(n) in (Role.VIEW, Role.CONSTANT)]
        every = [*closure(self.flow, before), *nodes]
        self.laid.layouts[result] = Layout(strides)
        domain = Domain(shape_of(result))
        home.items.append(Fused(every, inputs_of(self.flow, every), [result], domain))


def _step(builder: build.Builder, kind: str, value: Value, numbers: tuple[int, ...]) -> Value:
    """One step of a recipe as a node."""
    if kind == "pad":
        return builder.call("aten.constant_pad_nd.default", value, numbers)
    if kind == "reshape":
        return builder.call("aten.view.default", value, numbers)
    if kind == "permute":
        return builder.call("aten.permute.default", value, numbers)
    return builder.call("aten.slice.Tensor", value, *numbers)


def _wanted(flow: Flow, items: list[Part]) -> dict[Value, Strides]:
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
    step, left = 1, [(stride, n) for n, stride in zip(shape, strides, strict=True) if n != 1]
    while left:
        found = next((pair for pair in left if pair[0] == step), None)
        if found is None:
            return False
        left.remove(found)
        step *= found[1]
    return True
