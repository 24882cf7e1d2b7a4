"""Random kernels: compiled code equals the interpreter."""

from __future__ import annotations

import random

import pytest
import torch

from monograph.loops.nodes import (
    Buffer,
    Carried,
    Combine,
    Expr,
    For,
    Kernel,
    Stmt,
    Store,
    carry,
    const,
    fresh_var,
    index,
    load,
    op,
)
from tests.codegen.agree import add, mul, outcomes, sample

F32, I64, BOOL = torch.float32, torch.int64, torch.bool
ROOM = 4096


class Maker:
    """Grows a kernel of nested loops over a few buffers; integers only where order would matter to floats."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = self.random.choice([torch.int64, torch.int32, torch.uint8])
        self.inputs = [Buffer(f"x{i}", self.dtype, ROOM) for i in range(2)]
        self.outputs: list[Buffer] = []
        self.variables: list[Expr] = []
        self.values: list[Expr] = []
        self.vector = False

    def pick(self, *options):
        return self.random.choice(options)

    def index(self) -> Expr:
        """A non-negative affine index below ROOM."""
        result = index(self.random.randrange(8))
        for v in self.variables:
            if self.random.random() < 0.7:
                result = add(result, mul(v, index(self.pick(1, 1, 2, 3, 17))))
        return result

    def mask(self) -> Expr:
        v = self.pick(*self.variables)
        return op(self.pick("lt", "ge", "ne"), v, index(self.random.randrange(6)), dtype=BOOL)

    def value(self, depth: int = 3) -> Expr:
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            return self.leaf()
        a, b = self.value(depth - 1), self.value(depth - 1)
        if kind < 0.35:
            divisor = op("max", b, const(1, self.dtype), dtype=self.dtype)
            return op(self.pick("floordiv", "mod"), a, divisor, dtype=self.dtype)
        if kind < 0.8:
            return op(self.pick("add", "add", "sub", "mul", "min", "max", "xor"), a, b, dtype=self.dtype)
        return op("select", op(self.pick("lt", "eq"), a, b, dtype=BOOL), a, self.leaf(), dtype=self.dtype)

    def leaf(self) -> Expr:
        kind = self.random.random()
        if kind < 0.15:
            return const(self.random.randrange(1, 9), self.dtype)
        if kind < 0.3 and self.values:
            return self.pick(*self.values)
        if kind < 0.4 and self.variables:
            number = self.pick(*self.variables)
            return number if self.dtype is I64 else op("cast", number, dtype=self.dtype)
        buffer = self.pick(*self.inputs, self.inputs[0])
        where = self.index()
        if kind < 0.43 and self.variables:
            return load(buffer, add(where, index(1 << 33)), self.never(), self.leaf())
        if kind < 0.5 and self.variables:
            return load(buffer, where, self.mask(), const(3, self.dtype))
        if kind < 0.55 and self.variables:
            small = op("and", op("cast", load(buffer, where), dtype=I64), index(63), dtype=I64)
            return load(self.pick(*self.inputs), small)
        return load(buffer, where)

    def never(self) -> Expr:
        return op("lt", self.pick(*self.variables), index(0), dtype=BOOL)

    def loop(self, depth: int, kind: str) -> list[Stmt]:
        v = fresh_var()
        extent = self.pick(1, 3, 4, 7, 9, 19) if kind == "serial" else self.pick(1, 5, 8, 13, 16, 33, 50)
        hi: Expr = index(extent)
        outer = [w for w in self.variables]
        if outer and not self.vector and self.random.random() < 0.3:
            hi = op("min", self.pick(*outer), index(extent), dtype=I64)
        step = 1 if kind == "vector" else self.pick(1, 2)
        lo: Expr = index(self.pick(0, 0, 1))
        if outer and not self.vector and self.random.random() < 0.3:
            lo = mul(self.pick(*outer), index(2))
            hi = add(lo, index(extent))
        loop = For(v, lo, hi, kind, unroll=self.pick(1, 2, 4), step=step)
        combine = kind == "vector" or self.random.random() < 0.5
        before = list(self.values)
        how = self.pick(Combine.SUM, Combine.MAX, Combine.XOR) if combine else None
        loop.carried = [Carried(f"c{i}", self.dtype, self.value(1), how) for i in range(self.pick(0, 1, 2))]
        self.variables.append(v)
        vector, self.vector = self.vector, self.vector or kind == "vector"
        if not combine:
            self.values += [carry(loop, i) for i in range(len(loop.carried))]
        loop.body = self.body(depth - 1)
        loop.yields = [self.value(2) for _ in loop.carried]
        self.variables.pop()
        self.vector = vector
        self.values = before + [carry(loop, i) for i in range(len(loop.carried))]
        return [loop]

    def store(self) -> Stmt:
        """Each iteration of all loops writes an element of its own."""
        where, scale = index(0), 1
        for v in reversed(self.variables):
            where, scale = add(where, mul(v, index(scale))), scale * self.pick(20, 51) if scale < 1000 else scale
        target = Buffer(f"o{len(self.outputs)}", self.dtype, ROOM)
        self.outputs.append(target)
        limit = op("lt", where, index(ROOM), dtype=BOOL)
        if self.random.random() < 0.3:
            limit = op("and", limit, self.mask(), dtype=BOOL) if self.variables else limit
        return Store(target, where, self.value(), limit)

    def body(self, depth: int) -> list[Stmt]:
        result: list[Stmt] = []
        before = list(self.values)
        for _ in range(self.pick(1, 2)):
            if depth and self.random.random() < 0.7:
                kind = "serial" if self.vector or self.random.random() < 0.5 else "vector"
                result += self.loop(depth, kind)
            else:
                result.append(self.store())
        if not result or isinstance(result[-1], For):
            result.append(self.store())
        self.values = before if depth != 3 else self.values
        return result

    def kernel(self, name: str) -> Kernel:
        body = self.loop(3, self.pick("serial", "vector"))
        return Kernel(name, [*self.inputs, *self.outputs], [], body)


@pytest.mark.parametrize("seed", range(6))
def test_random_kernels(seed):
    makers = [Maker(seed * 1000 + i) for i in range(12)]
    kernels = [m.kernel(f"r{i}") for i, m in enumerate(makers)]
    inputs = []
    for maker in makers:
        empty = [torch.zeros(ROOM, dtype=maker.dtype)] * len(maker.outputs)
        inputs.append([*(sample(maker.dtype, ROOM, i) for i in range(2)), *empty])
    for kernel, (native, result, slow, fault) in zip(kernels, outcomes(kernels, inputs), strict=True):
        assert result is None and fault is None
        for mine, theirs in zip(native, slow, strict=True):
            assert torch.equal(mine, theirs), kernel.name
