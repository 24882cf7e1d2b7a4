"""Where the operands of a template lie, as the capability table wants them.

`bind(site)` fills `operands`, `parameters` and `packs` of a template item, once the layouts of everything it reads
are known. Where strides cannot say it, or are not those the template needs, the operand is copied first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from monograph.ir.graph import Value
from monograph.ir.sized import example
from monograph.ir.types import TensorType
from monograph.ops import panels, templates
from monograph.ops.panels import Step
from monograph.schedule import borders, views
from monograph.schedule.flow import Flow
from monograph.schedule.kernel import Layout, Pack, Strided, Template
from monograph.schedule.views import Affine, shape_of

__all__ = ["Operands", "channels_last"]

FEW_CHANNELS = 4        # so few are gathered by the template itself: a picture is not worth a copy

Copy = Callable[[Value, tuple[int, ...] | None], Value]
Repack = Callable[[Value, tuple[Step, ...]], Value]


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of (n, c, *space) with the channels innermost."""
    n, c, *space = shape
    inner = views.row_major((*space, c))
    return (math.prod((c, *space)), inner[-1], *inner[:-1])


@dataclass
class Operands:
    """Binds template items. `copy(value, strides)` schedules a copy of a value and returns it."""

    flow: Flow
    layouts: dict[Value, Layout]
    weights: set[Value]                   # inputs worth packing once
    lanes: Callable[[torch.dtype], int]
    copy: Copy
    repack: Repack                        # schedules the steps of a packing as a kernel of the run
    packs: dict[tuple[Value, tuple[Step, ...]], Pack] = field(default_factory=dict)

    def lies(self, value: Value) -> Affine | None:
        """Where `value` lies in the memory of its base; None if strides cannot tell, or the base is a constant."""
        base = self.flow.base_of(value)
        if base not in self.layouts:
            return None
        affine: Affine | None = Affine(shape_of(base), self.layouts[base].strides)
        for step in self.flow.path_of(value):
            affine = views.through(step.node, step.position, affine) if affine is not None else None
        return affine

    def bind(self, item: Template) -> None:
        """Fill in the operands and parameters of `item`."""
        BINDERS[item.name](self, item)

    def strided(self, value: Value, affine: Affine, unit: int | None = None) -> Strided:
        """The operand `value`, which lies at `affine`; dim `unit` has stride 1, even where it has one element."""
        strides = list(affine.strides)
        if unit is not None and affine.shape[unit] == 1:
            strides[unit] = 1
        return Strided(self.flow.base_of(value), affine.shape, tuple(strides), affine.offset)

    def copied(self, value: Value, strides: tuple[int, ...] | None = None) -> tuple[Value, Affine]:
        """A copy of `value` with the strides asked for (row-major by default), and where it lies."""
        shape = shape_of(value)
        made = self.copy(value, strides)
        return made, Affine(shape, strides or views.row_major(shape))

    def packed(self, value: Value, steps: tuple[Step, ...]) -> Strided | None:
        """The packed copy of a weight seen through `value`; None when it is no weight or its views are no steps."""
        base = self.flow.base_of(value)
        before = self.view_steps(value)
        if base not in self.weights or before is None:
            return None
        steps = (*before, *steps)
        pack = self.packs.get((base, steps))
        if pack is None:
            shape = panels.shape_after(shape_of(base), steps)
            made = Value(TensorType(base.tensor.dtype, shape), name=base.name)
            pack = self.packs[base, steps] = Pack(made, base, steps)
            self.layouts[made] = Layout(views.row_major(shape))
        shape = shape_of(pack.packed)
        return Strided(pack.packed, shape, views.row_major(shape))

    def repacked(self, value: Value, steps: tuple[Step, ...]) -> Strided:
        """A packed copy of `value` made in every run."""
        made = self.repack(value, steps)
        shape = shape_of(made)
        return Strided(made, shape, views.row_major(shape))

    def view_steps(self, value: Value) -> tuple[Step, ...] | None:
        """The path of `value` as recipe steps; None when it is more than reshapes, permutations and slices."""
        steps: list[Step] = []
        for step in self.flow.path_of(value):
            shape = shape_of(step.node.inputs[0])
            found = _recipe(shape, step.affine, step.in_order)
            if found is None:
                return None
            steps.extend(found)
        return tuple(steps)


def _recipe(shape: tuple[int, ...], affine: Affine, in_order: bool) -> tuple[Step, ...] | None:
    """A view of a contiguous tensor of `shape` as steps."""
    if in_order:
        return () if affine.shape == shape else (("reshape", affine.shape),)
    plain = views.row_major(shape)
    if affine.numel == math.prod(shape) and not affine.offset:
        order = []
        for n, stride in zip(affine.shape, affine.strides, strict=True):
            found = [d for d in range(len(shape)) if shape[d] == n and plain[d] == stride and d not in order]
            if not found:
                return None
            order.append(found[0])
        return (("permute", tuple(order)),) if len(order) == len(shape) else None
    if len(affine.shape) == len(shape) and affine.strides == plain:
        cut = [d for d in range(len(shape)) if shape[d] != affine.shape[d]]
        if len(cut) == 1:
            start, rest = divmod(affine.offset, plain[cut[0]])
            return None if rest else (("slice", (cut[0], start, start + affine.shape[cut[0]])),)
    return None


# ---- gemm

def _gemm(operands: Operands, item: Template) -> None:
    node = item.anchor
    roles = templates.ANCHORS[node.op.name].roles
    a, b, bias = (node.operand(roles[role]) if role in roles else None for role in ("a", "b", "bias"))
    assert isinstance(a, Value) and isinstance(b, Value)
    transposed = "weight" in roles.values()         # linear: b is (n, k)
    n, k = shape_of(b)[-2:] if transposed else shape_of(b)[:-3:-1]
    batch: tuple[int, ...] = () if transposed else shape_of(b)[:-2]
    panel = templates.panel_width(example(n), operands.lanes(b.tensor.dtype))
    before: tuple[Step, ...] = (("permute", (1, 0)),) if transposed else ()
    packed = operands.packed(b, (*before, *panels.gemm(k, n, panel))) if not batch else None
    if packed is not None:
        left = _rows(operands, a) if transposed else _matrix(operands, a)
        item.operands["b"] = packed
        batch = left[1].shape[:-2]
    else:
        left = _one_matrix(operands, a) if transposed else _matrix(operands, a)
        right = _matrix(operands, b)
        if transposed:
            affine = right[1]
            right = right[0], Affine(affine.shape[::-1], affine.strides[::-1], affine.offset)
        left, right = _same_batch(operands, (a, left), (b, right))
        batch = left[1].shape[:-2]
        item.operands["b"] = operands.strided(*right)
    item.operands["a"] = operands.strided(*left)
    m = left[1].shape[-2]
    alpha, beta = node.attributes.get("alpha", 1), node.attributes.get("beta", 1)
    item.parameters.update(batch=batch, m=m, n=n, k=k, packed=packed is not None, panel=panel, alpha=alpha, beta=beta)
    if isinstance(bias, Value) and beta != 0:
        item.operands["bias"] = _spread(operands, bias, shape_of(node.results[0]), (*batch, m, n))


def _spread(operands: Operands, value: Value, shape: tuple[int, ...], split: tuple[int, ...]) -> Strided:
    """`value` broadcast to `shape`, seen as `split`."""
    found = operands.lies(value)
    affine = views.reshape(views.broadcast(found, shape), split) if found is not None else None
    if affine is None:
        value, copied = operands.copied(value)
        affine = views.reshape(views.broadcast(copied, shape), split)
    assert affine is not None, (shape, split)      # dims are only ever split, which strides can always tell
    return operands.strided(value, affine)


def _rows(operands: Operands, value: Value) -> tuple[Value, Affine]:
    """All leading dims of `value` as rows of one matrix, or as few batches of rows as strides allow."""
    shape = shape_of(value)
    affine = operands.lies(value)
    if affine is not None:
        for split in range(len(shape) - 1):
            wanted = (*shape[:split], math.prod(shape[split:-1]), shape[-1])
            merged = views.reshape(affine, wanted)
            if merged is not None:
                return value, merged
    return _one_matrix(operands, value)


def _one_matrix(operands: Operands, value: Value) -> tuple[Value, Affine]:
    shape = shape_of(value)
    wanted = (math.prod(shape[:-1]), shape[-1])
    affine = operands.lies(value)
    merged = views.reshape(affine, wanted) if affine is not None else None
    if merged is None:
        value, affine = operands.copied(value)
        merged = views.reshape(affine, wanted)
    assert merged is not None
    return value, merged


def _matrix(operands: Operands, value: Value) -> tuple[Value, Affine]:
    """`value` as (*batch, rows, columns), its batch dim split where strides cannot merge it."""
    affine = operands.lies(value)
    if affine is not None:
        return value, affine
    path = operands.flow.path_of(value)
    if not path:        # a constant
        return operands.copied(value)
    before = path[-1].node.inputs[0]
    inner = operands.lies(before)
    if path[-1].in_order and inner is not None and inner.shape[-2:] == shape_of(value)[-2:]:
        return value, inner
    return operands.copied(value)


def _same_batch(
    operands: Operands, a: tuple[Value, tuple[Value, Affine]], b: tuple[Value, tuple[Value, Affine]]
) -> tuple[tuple[Value, Affine], tuple[Value, Affine]]:
    """The two matrices with the same batch dims: one takes those of the other, or is copied."""
    left, right = a[1], b[1]
    first, second = left[1].shape[:-2], right[1].shape[:-2]
    if first == second:
        return left, right
    split = views.reshape(left[1], (*second, *left[1].shape[-2:]))
    if split is not None:
        return (left[0], split), right
    split = views.reshape(right[1], (*first, *right[1].shape[-2:]))
    if split is not None:
        return left, (right[0], split)
    made, affine = operands.copied(b[0])
    split = views.reshape(affine, (*first, *affine.shape[-2:]))
    assert split is not None
    return left, (made, split)


# ---- convolution

def _conv(operands: Operands, item: Template) -> None:
    node = item.anchor
    x, w, bias = node.operand("input"), node.operand("weight"), node.operand("bias")
    assert isinstance(x, Value) and isinstance(w, Value)
    x, before = borders.image(x, operands.flow.role)
    n, c, *space = shape_of(x)
    o, _, *window = shape_of(w)
    groups = node.attributes["groups"]
    h, width = _pair(space, 1)
    kh, kw = _pair(window, 1)
    oh, ow = _pair(shape_of(node.results[0])[2:], 1)
    depthwise = groups == c == o and groups > 1
    panel = templates.panel_width(o // groups, operands.lanes(w.tensor.dtype))
    steps = panels.depthwise(c, kh, kw) if depthwise else panels.conv(o, c, kh, kw, groups, panel)
    item.name = "depthwise" if depthwise else "conv"
    item.operands["w"] = operands.packed(w, steps) or operands.repacked(w, steps)
    affine = operands.lies(x)
    few = c <= FEW_CHANNELS and not depthwise
    if affine is None or (affine.strides[1] != 1 and c != 1 and not few):
        x, affine = operands.copied(x, channels_last(shape_of(x)))
    flat = Affine((n, c, h, width), (*affine.strides[:2], *_pair(affine.strides[2:], 0)), affine.offset)
    item.operands["x"] = operands.strided(x, flat, 1)
    if isinstance(bias, Value):
        item.operands["bias"] = _spread(operands, bias, (o,), (o,))
    item.parameters.update(
        n=n, c=c, h=h, w=width, o=o, oh=oh, ow=ow, kh=kh, kw=kw, groups=groups, panel=panel,
        stride=_pair(node.attributes["stride"], 1),
        padding=_pair([p + more for p, more in zip(_each(node.attributes["padding"], before), before, strict=True)], 0),
        dilation=_pair(node.attributes["dilation"], 1),
    )


def _pair(numbers: Any, filler: int) -> tuple[int, int]:
    """Two numbers per spatial dim; a 1-d convolution has `filler` in front, one number stands for both."""
    return (filler, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


def _each(numbers: Sequence[int], dims: Sequence[int]) -> Sequence[int]:
    """One number per dim, where one may stand for all."""
    return numbers if len(numbers) == len(dims) else [numbers[0]] * len(dims)


# ---- attention

def _attention(operands: Operands, item: Template) -> None:
    node = item.anchor
    q, k, v, mask = (node.operand(name) for name in ("query", "key", "value", "attn_mask"))
    assert isinstance(q, Value) and isinstance(k, Value) and isinstance(v, Value)
    h = shape_of(q)[1]
    shared = [_shared_heads(operands, value) for value in (k, v)]
    grouped = shared[0] is not None and shared[1] is not None and shared[0].shape[1] == shared[1].shape[1]
    for role, value, found in (("q", q, None), ("k", k, shared[0]), ("v", v, shared[1])):
        affine = found if grouped and found is not None else operands.lies(value)
        if affine is None or (affine.strides[-1] != 1 and affine.shape[-1] != 1):
            value, affine = operands.copied(value)
        item.operands[role] = operands.strided(value, affine, 3)
    (b, _, s, d), groups = shape_of(q), item.operands["k"].shape[1]
    t, e = shape_of(k)[2], shape_of(v)[3]
    if isinstance(mask, Value):
        item.operands["mask"] = _spread(operands, mask, (b, h, s, t), (b, h, s, t))
    scale = node.attributes.get("scale")
    lse = len(node.results) > 1 and node.results[1] in item.outputs
    item.parameters.update(
        b=b, h=h, s=s, t=t, d=d, e=e, group=h // groups, causal=bool(node.attributes["is_causal"]), lse=lse,
        scale=1 / math.sqrt(d) if scale is None else scale,
    )


def _shared_heads(operands: Operands, value: Value) -> Affine | None:
    """Where `value` (b, h, t, d) lies as (b, h / group, t, d), if neighbouring heads are made equal by an expand."""
    path = operands.flow.path_of(value)
    if not path or not path[-1].in_order:
        return None
    inner = operands.lies(path[-1].node.inputs[0])
    b, h, t, d = shape_of(value)
    if inner is None or len(inner.shape) != 5 or inner.strides[2] != 0:
        return None
    if (inner.shape[0], inner.shape[3], inner.shape[4]) != (b, t, d) or inner.strides[4] != 1:
        return None
    return Affine((*inner.shape[:2], *inner.shape[3:]), (*inner.strides[:2], *inner.strides[3:]), inner.offset)


BINDERS: dict[str, Callable[[Operands, Template], None]] = {
    "gemm": _gemm, "conv": _conv, "depthwise": _conv, "attention": _attention,
}
