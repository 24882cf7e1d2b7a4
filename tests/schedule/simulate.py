"""Runs a schedule in torch as a program would: only places, strides and operands count, never the graph's values."""

from __future__ import annotations

from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ops import evaluate, panels
from monograph.schedule.kernel import Fused, LibraryCall, Schedule, Strided, Template
from monograph.schedule.views import row_major

__all__ = ["Lanes", "overlaps", "simulate"]


class Lanes:
    """A target with vectors of 32 bytes."""

    def lanes(self, dtype: torch.dtype) -> int:
        return 32 // dtype.itemsize


def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 0 if 0 in shape else 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


class Memory:
    """The places of a schedule, filled with garbage where nothing has been written."""

    def __init__(self, schedule: Schedule, inputs: list[torch.Tensor]) -> None:
        self.schedule = schedule
        self.inputs = inputs
        self.arena = torch.full((schedule.arena_bytes,), 0x7F, dtype=torch.uint8)
        self.outputs = [
            torch.empty_strided(value.tensor.shape, value.tensor.strides or row_major(value.tensor.shape),
                                dtype=value.tensor.dtype)
            for value in schedule.graph.outputs
        ]
        self.derived: list[torch.Tensor] = []
        self.derived = [panels.apply(self.buffer(pack.source), pack.steps) for pack in schedule.packs]

    def memory(self, value: Value) -> torch.Tensor:
        """The flat elements from the start of a value's place."""
        place = self.schedule.places[value]
        if place.kind == "arena":
            count = extent(value.tensor.shape, self.schedule.layouts[value].strides)
            start, size = place.position, count * value.tensor.dtype.itemsize
            assert start % 64 == 0 and start + size <= self.arena.numel()
            return self.arena[start:start + size].view(value.tensor.dtype)
        held = {"input": self.inputs, "output": self.outputs, "derived": self.derived}[place.kind][place.position]
        return held.as_strided((extent(held.shape, held.stride()),), (1,))

    def buffer(self, value: Value) -> torch.Tensor:
        strides = self.schedule.layouts[value].strides
        return self.memory(value).as_strided(value.tensor.shape, strides)

    def strided(self, operand: Strided) -> torch.Tensor:
        memory = self.memory(operand.value)
        return memory.as_strided(operand.shape, operand.strides, memory.storage_offset() + operand.offset)


def simulate(schedule: Schedule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of a schedule."""
    memory = Memory(schedule, inputs)
    for item in schedule.items:
        if isinstance(item, LibraryCall):
            known = {v: memory.buffer(v) for v in item.inputs}
            known.update({v: memory.strided(operand) for v, operand in item.operands.items()})
            results = evaluate.run_node(item.node, [_read(operand, known) for operand in item.node.operands])
            known.update(zip(item.node.results, results, strict=True))
        else:
            known = {v: memory.buffer(v).clone() for v in item.inputs}
            if isinstance(item, Template):
                results = ANCHORS[item.name](item, memory)
                known.update({
                    v: t.reshape(v.tensor.shape) for v, t in zip(item.anchor.results, results, strict=False)
                })
            _run(item, known)
        for value in item.outputs:
            memory.buffer(value).copy_(known[value])
    return memory.outputs


def _run(item: Fused | Template, known: dict[Value, Any]) -> None:
    """Every node of the item whose operands are known, the anchor aside."""
    for node in item.nodes:
        if node.results[0] not in known and all(value in known for value in node.inputs):
            operands = [_read(operand, known) for operand in node.operands]
            known.update(zip(node.results, evaluate.run_node(node, operands), strict=True))


def _read(operand: Any, known: dict[Value, Any]) -> Any:
    if isinstance(operand, Value):
        return known[operand]
    return tuple(_read(entry, known) for entry in operand) if isinstance(operand, tuple) else operand


def _gemm(item: Template, memory: Memory) -> list[torch.Tensor]:
    p = item.parameters
    a, b = memory.strided(item.operands["a"]), memory.strided(item.operands["b"])
    assert a.shape == (*p["batch"], p["m"], p["k"])
    if p["packed"]:
        b = b.permute(1, 0, 2).reshape(p["k"], -1)[:, :p["n"]]
    result = p["alpha"] * (a @ b)
    if "bias" in item.operands:
        result = result + p["beta"] * memory.strided(item.operands["bias"])
    assert result.shape == (*p["batch"], p["m"], p["n"])
    return [result]


def _conv(item: Template, memory: Memory) -> list[torch.Tensor]:
    p = item.parameters
    x, w = memory.strided(item.operands["x"]), memory.strided(item.operands["w"])
    assert x.shape == (p["n"], p["c"], p["h"], p["w"]) and (x.stride(1) == 1 or p["c"] <= 4)
    if item.name == "depthwise":
        w = w.permute(2, 0, 1).unsqueeze(1)
    else:
        each = p["o"] // p["groups"]
        w = w.permute(0, 1, 5, 4, 2, 3).reshape(p["groups"], -1, p["c"] // p["groups"], p["kh"], p["kw"])
        w = w[:, :each].reshape(p["o"], -1, p["kh"], p["kw"])
    bias = memory.strided(item.operands["bias"]) if "bias" in item.operands else None
    border = []
    for size, out, window, axis in ((p["w"], p["ow"], p["kw"], 1), (p["h"], p["oh"], p["kh"], 0)):
        reach = (out - 1) * p["stride"][axis] + (window - 1) * p["dilation"][axis] + 1
        border += [p["padding"][axis], reach - size - p["padding"][axis]]
    x = torch.nn.functional.pad(x, border)
    result = torch.nn.functional.conv2d(x, w, bias, p["stride"], 0, p["dilation"], p["groups"])
    assert result.shape == (p["n"], p["o"], p["oh"], p["ow"])
    return [result]


def _attention(item: Template, memory: Memory) -> list[torch.Tensor]:
    p = item.parameters
    q, k, v = (memory.strided(item.operands[role]) for role in "qkv")
    mask = memory.strided(item.operands["mask"]) if "mask" in item.operands else None
    assert all(x.stride(-1) == 1 for x in (q, k, v))
    result = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, 0.0, p["causal"], scale=p["scale"], enable_gqa=p["group"] > 1)
    return [result]


ANCHORS = {"gemm": _gemm, "conv": _conv, "depthwise": _conv, "attention": _attention}


def overlaps(schedule: Schedule) -> list[tuple[Value, Value]]:
    """Pairs of values that are alive at once and share bytes, beyond an output in place over a dying input."""
    life: dict[Value, list[int]] = {}
    for at, item in enumerate(schedule.items):
        for value in (*item.outputs, *item.inputs):
            if schedule.places[value].kind == "arena":
                life.setdefault(value, []).append(at)
    values = list(life)
    bad = []
    for i, a in enumerate(values):
        for b in values[i + 1:]:
            first, second = sorted((a, b), key=lambda v: life[v][0])
            apart = life[first][-1] < life[second][0]
            same = life[first][-1] == life[second][0] and schedule.places[a] == schedule.places[b]
            if not apart and not same and _touch(schedule, a, b):
                bad.append((a, b))
    return bad


def _touch(schedule: Schedule, a: Value, b: Value) -> bool:
    def span(value: Value) -> tuple[int, int]:
        start = schedule.places[value].position
        size = extent(value.tensor.shape, schedule.layouts[value].strides) * value.tensor.dtype.itemsize
        return start, start + size

    (a0, a1), (b0, b1) = span(a), span(b)
    return a0 < b1 and b0 < a1


def nodes_of(schedule: Schedule) -> set[Node]:
    return {node for item in schedule.items for node in item.nodes}


