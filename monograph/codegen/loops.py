"""Statements: stores, serial loops, and the blocks of a function.

A serial loop is rotated (test at the bottom) behind a guard, which constant bounds make unnecessary.
With `unroll` each trip holds that many copies of the body, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from monograph.codegen import access, checks, outline, vectorloop
from monograph.codegen.counting import counted
from monograph.codegen.facts import static_trips
from monograph.codegen.function import Bound, Function, Lanes
from monograph.codegen.mathbuilder import Math
from monograph.codegen.operations import fold
from monograph.codegen.text import Value
from monograph.errors import CompileError
from monograph.loops.nodes import Check, For, Stmt, Store, carry

__all__ = ["block", "region", "statement"]


def block(fn: Function, body: Sequence[Stmt]) -> None:
    for entry in body:
        statement(fn, entry)


def statement(fn: Function, entry: Stmt) -> None:
    if isinstance(entry, Store):
        access.store(fn, entry)
        fn.forget(frozenset((entry.buffer,)))
    elif isinstance(entry, Check):
        checks.check(fn, entry)
    elif entry.kind == "vector" and entry.alone and outline.can_stand_alone(entry):
        outline.write(fn, entry, block)
    elif entry.kind == "vector":
        vectorloop.write(fn, entry, block)
    elif entry.kind == "serial":
        _serial(fn, entry)
    else:
        raise CompileError("a parallel loop stands inside another statement")


# -- serial loops

def _serial(fn: Function, loop: For) -> None:
    fn.forget(fn.facts.stored(loop))
    state = [_initial(fn, loop, i) for i in range(len(loop.carried))]
    trips = static_trips(loop)
    unroll = max(1, loop.unroll)
    if trips is not None and trips <= unroll:
        for copy in range(trips):
            state = _copy(fn, loop, fn.start(loop, copy * loop.step), state)
    else:
        state = _counted_serial(fn, loop, trips, unroll, state)
    for position, value in enumerate(state):
        fn.bind_carry(carry(loop, position), value)


def _initial(fn: Function, loop: For, position: int) -> Lanes:
    value = fn.value(loop.carried[position].init)
    if fn.vector is not None and carry(loop, position) in fn.vector.varying:
        return fn.spread(value)
    return value


def _copy(fn: Function, loop: For, variable: Bound, state: list[Lanes]) -> list[Lanes]:
    """One iteration in a scope of its own, with the variable bound; returns the next state."""
    fn.open()
    fn.bind(loop.var, variable)
    fn.enter(loop, certain=True)
    state = _iteration(fn, loop, state)
    fn.close()
    return state


def _iteration(fn: Function, loop: For, state: list[Lanes]) -> list[Lanes]:
    """The body in the current scope."""
    for position, value in enumerate(state):
        fn.bind_carry(carry(loop, position), value)
    for buffer, place in loop.ahead:
        access.prefetch(fn, buffer, place)
    block(fn, loop.body)
    result = []
    for position, entry in enumerate(loop.carried):
        new = fn.value(loop.yields[position])
        old = state[position]
        if not isinstance(old, Value):
            new = fn.spread(new)
        if entry.combine is not None:
            m = Math(fn.text, fn.target)
            if isinstance(old, Value) and isinstance(new, Value):
                new = fold(m, entry.combine, entry.dtype, old, new)
            else:
                assert not isinstance(old, Value) and not isinstance(new, Value)
                new = tuple(fold(m, entry.combine, entry.dtype, o, n) for o, n in zip(old, new, strict=True))
        result.append(new)
    return result


def _counted_serial(fn: Function, loop: For, trips: int | None, unroll: int, state: list[Lanes]) -> list[Lanes]:
    text = fn.text
    lo, hi = fn.scalar(loop.lo), fn.scalar(loop.hi)
    step = loop.step
    if unroll == 1:
        return counted(fn, loop, lo, hi, step, trips is not None, state, lambda iv, s: _in_place(fn, loop, iv, s))
    stride = step * unroll
    if trips is not None:
        after = fn.start(loop, (trips // unroll) * stride)
        middle = fn.number(after)
    else:
        # lo + (number of whole groups) * stride, at least lo
        span = text.binary("sub", hi, lo)
        span = text.binary("add", span, Value(str(step - 1), "i64"))
        groups = text.binary("sdiv", span, Value(str(stride), "i64"))
        groups = text.call("llvm.smax.i64", "i64", 0, groups, Value("0", "i64"), attributes="")
        middle = text.binary("add", lo, text.binary("mul", groups, Value(str(stride), "i64")))

    def group(iv: Value, inner: list[Lanes]) -> list[Lanes]:
        depth = len(fn.scopes) - 1
        fn.homes[iv.ref] = depth
        if step == 1:
            fn.groups[loop.var] = unroll
        for copy in range(unroll):
            inner = _copy(fn, loop, Bound(iv, copy * step, depth), inner)
        fn.groups.pop(loop.var, None)
        return inner

    state = counted(fn, loop, lo, middle, stride, trips is not None, state, group)
    if trips is not None:
        rest = trips % unroll
        if rest == 0:
            return state
        if rest == 1:
            return _copy(fn, loop, after, state)
    return counted(
        fn, loop, middle, hi, step, trips is not None, state, lambda iv, s: _in_place(fn, loop, iv, s)
    )


def _in_place(fn: Function, loop: For, iv: Value, state: list[Lanes]) -> list[Lanes]:
    fn.bind(loop.var, iv)
    return _iteration(fn, loop, state)


def region(fn: Function, loop: For, lo: Value, hi: Value) -> None:
    """The iterations lo .. hi of a parallel loop, at least one."""
    if loop.carried:
        raise CompileError("a parallel loop carries nothing")
    counted(fn, loop, lo, hi, loop.step, True, [], lambda iv, s: _in_place(fn, loop, iv, s))
