"""The frame of a counted loop: guard, phis, test at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monograph.codegen.function import Function, Lanes
from monograph.codegen.text import Value
from monograph.loops.nodes import For

__all__ = ["counted"]


def counted(
    fn: Function, loop: For, lo: Value, hi: Value, step: int, certain: bool, state: list[Lanes],
    body: Callable[[Value, list[Lanes]], list[Lanes]],
) -> list[Lanes]:
    """`for iv in range(lo, hi, step)` around `body(iv, state) -> state`; `certain`: it runs at least once."""
    text = fn.text
    fn.forget(fn.facts.stored(loop))
    if certain:
        fn.open()
        entry = text.mark("enter")
        exit_label = text.label("exit")
        guard = None
    else:
        guard_place = fn.open()
        assert guard_place
        guard = text.mark("guard")
        entry, exit_label = text.label("enter"), text.label("exit")
        test = text.compare("slt", lo, hi)
        text.line(f"br {test}, label %{entry}, label %{exit_label}")
        text.place(entry)
    head = text.label("loop")
    text.line(f"br label %{head}")
    text.place(head)
    iv = Value(text.fresh(), "i64")
    phis = text.reserve()
    inner = [_like(fn, value) for value in state]
    fn.enter(loop, certain=certain)
    result = body(iv, inner)
    following = text.binary("add nsw", iv, Value(str(step), "i64"))
    latch = text.mark("latch")
    again = text.compare("slt", following, hi)
    text.line(f"br {again}, label %{head}, label %{exit_label}")
    phis.append(f"{iv.ref} = phi i64 [ {lo.ref}, %{entry} ], [ {following.ref}, %{latch} ]")
    for before, now, after in zip(state, inner, result, strict=True):
        for a, b, c in zip(_parts(before), _parts(now), _parts(after), strict=True):
            phis.append(f"{b.ref} = phi {b.type} [ {a.ref}, %{entry} ], [ {c.ref}, %{latch} ]")
    fn.close()
    text.place(exit_label)
    if guard is None:
        return result
    merged = [_like(fn, value) for value in state]
    for before, now, after in zip(state, merged, result, strict=True):
        for a, b, c in zip(_parts(before), _parts(now), _parts(after), strict=True):
            text.line(f"{b.ref} = phi {b.type} [ {a.ref}, %{guard} ], [ {c.ref}, %{latch} ]")
    return merged


def _parts(value: Lanes) -> Sequence[Value]:
    return (value,) if isinstance(value, Value) else value


def _like(fn: Function, value: Lanes) -> Lanes:
    if isinstance(value, Value):
        return Value(fn.text.fresh(), value.element, value.lanes)
    return tuple(Value(fn.text.fresh(), v.element, v.lanes) for v in value)
