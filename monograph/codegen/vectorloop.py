"""Vector loops: full steps of `lanes * jam` iterations, then the remainder under masks.

With constant bounds the remainder is one straight piece of code (its masks are constants) or nothing;
otherwise a loop of single masked vectors. Carried values are kept per lane and per jammed vector, and
folded across lanes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monograph.codegen.cost import worthwhile_jam
from monograph.codegen.counting import counted
from monograph.codegen.facts import static_trips
from monograph.codegen.function import Bound, Function, Lanes, VectorLoop
from monograph.codegen.mathbuilder import Math
from monograph.codegen.operations import fold, identity
from monograph.codegen.text import Value
from monograph.codegen.types import lanes_of
from monograph.errors import CompileError
from monograph.loops.nodes import Carried, For, Stmt, carry

__all__ = ["write"]


def write(fn: Function, loop: For, block: Callable[[Function, Sequence[Stmt]], None]) -> None:
    """Write `loop`; `block` writes the statements inside."""
    if fn.vector is not None:
        raise CompileError("vector loops do not nest")
    if loop.step != 1 or any(entry.combine is None for entry in loop.carried):
        raise CompileError("a vector loop has step 1 and only reductions")
    fn.forget(fn.facts.stored(loop))
    inits = [fn.scalar(entry.init) for entry in loop.carried]
    trips = static_trips(loop)
    varying = fn.facts.varying(loop)
    lanes = lanes_of(fn.facts.dtypes(loop, varying), fn.target, trips)
    vector = VectorLoop(loop, lanes, varying, block)
    if trips is None:
        state = _dynamic(fn, vector)
    else:
        state = _static(fn, vector, trips)
    for position, entry in enumerate(loop.carried):
        fn.bind_carry(carry(loop, position), _across(fn, entry, inits[position], state[position]))


def _static(fn: Function, vector: VectorLoop, trips: int) -> list[tuple[Value, ...]]:
    loop, lanes = vector.loop, vector.lanes
    jam = max(1, min(worthwhile_jam(loop), trips // lanes))
    steps = trips // (lanes * jam)
    done = steps * lanes * jam
    state: list[tuple[Value, ...]] = [() for _ in loop.carried]
    vector.jam = jam
    if steps == 1:
        state = _piece(fn, vector, fn.start(loop), (None,) * jam, state)
    elif steps:
        state = _steps(fn, vector, fn.number(fn.start(loop)), fn.number(fn.start(loop, done)), True)
    rest = trips - done
    if rest:
        masks: list[Value | None] = [None] * (rest // lanes)
        if rest % lanes:
            bits = ", ".join(f"i1 {'true' if lane < rest % lanes else 'false'}" for lane in range(lanes))
            masks.append(Value(f"<{bits}>", "i1", lanes))
        vector.jam = len(masks)
        state = _piece(fn, vector, fn.start(loop, done), tuple(masks), state)
    return state


def _dynamic(fn: Function, vector: VectorLoop) -> list[tuple[Value, ...]]:
    loop, lanes, text = vector.loop, vector.lanes, fn.text
    lo, hi = fn.scalar(loop.lo), fn.scalar(loop.hi)
    vector.jam = max(1, worthwhile_jam(loop))
    size = Value(str(lanes * vector.jam), "i64")
    groups = text.binary("sdiv", text.binary("sub", hi, lo), size)
    groups = text.call("llvm.smax.i64", "i64", 0, groups, Value("0", "i64"), attributes="")
    middle = text.binary("add", lo, text.binary("mul", groups, size))
    state = _steps(fn, vector, lo, middle, False)
    m = Math(text, fn.target)
    first = [(_jammed(m, entry, parts),) for entry, parts in zip(loop.carried, state, strict=True)]
    vector.jam = 1

    def one(iv: Value, inner: list[Lanes]) -> list[Lanes]:
        left = text.splat(text.binary("sub", hi, iv), lanes)
        lane_numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        mask = text.compare("slt", Value(f"<{lane_numbers}>", "i64", lanes), left)
        return _body(fn, vector, iv, (mask,), inner)

    result = counted(fn, loop, middle, hi, lanes, False, list(first), one)
    return [value for value in result if not isinstance(value, Value)]


def _steps(fn: Function, vector: VectorLoop, lo: Value, hi: Value, certain: bool) -> list[tuple[Value, ...]]:
    """The loop of full steps."""
    start: list[Lanes] = [
        (identity(entry.combine, entry.dtype, vector.lanes),) * vector.jam      # type: ignore[arg-type]
        for entry in vector.loop.carried
    ]
    masks: tuple[Value | None, ...] = (None,) * vector.jam
    result = counted(
        fn, vector.loop, lo, hi, vector.lanes * vector.jam, certain, start,
        lambda iv, inner: _body(fn, vector, iv, masks, inner),
    )
    return [value for value in result if not isinstance(value, Value)]


def _piece(
    fn: Function, vector: VectorLoop, variable: Bound, masks: tuple[Value | None, ...], state: list[tuple[Value, ...]]
) -> list[tuple[Value, ...]]:
    """One step of straight-line code; `state` may have more vectors than `masks`, or none yet."""
    fn.open()
    fn.bind(vector.loop.var, variable)
    result = _lanes(fn, vector, masks, [parts[: len(masks)] for parts in state])
    fn.close()
    return [new + parts[len(masks):] for new, parts in zip(result, state, strict=True)]


def _body(
    fn: Function, vector: VectorLoop, iv: Value, masks: tuple[Value | None, ...], state: list[Lanes]
) -> list[Lanes]:
    fn.bind(vector.loop.var, iv)
    parts = [value for value in state if not isinstance(value, Value)]
    return list(_lanes(fn, vector, masks, parts))


def _lanes(
    fn: Function, vector: VectorLoop, masks: tuple[Value | None, ...], state: list[tuple[Value, ...]]
) -> list[tuple[Value, ...]]:
    """The body for one step in the current scope."""
    loop = vector.loop
    vector.masks = masks
    fn.enter(loop, certain=True)
    fn.vector = vector
    vector.block(fn, loop.body)
    m = Math(fn.text, fn.target)
    result = []
    for position, entry in enumerate(loop.carried):
        new = fn.spread(fn.value(loop.yields[position]))
        result.append(_folded(m, entry, state[position], new, masks))
    fn.vector = None
    return result


def _folded(
    m: Math, entry: Carried, old: tuple[Value, ...], new: tuple[Value, ...], masks: tuple[Value | None, ...]
) -> tuple[Value, ...]:
    assert entry.combine is not None
    result = []
    for u, (value, mask) in enumerate(zip(new, masks, strict=True)):
        if mask is not None:
            value = m.text.select(mask, value, identity(entry.combine, entry.dtype, value.lanes))
        result.append(fold(m, entry.combine, entry.dtype, old[u], value) if old else value)
    return tuple(result)


def _jammed(m: Math, entry: Carried, parts: tuple[Value, ...]) -> Value:
    """The vectors of a step folded into one, as a tree."""
    assert entry.combine is not None
    while len(parts) > 1:
        pairs = [fold(m, entry.combine, entry.dtype, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = (*pairs, *parts[len(pairs) * 2:])
    return parts[0]


def _across(fn: Function, entry: Carried, init: Value, parts: tuple[Value, ...]) -> Value:
    """The final value: all lanes and the initial value."""
    if not parts:
        return init
    m = Math(fn.text, fn.target)
    vector = _jammed(m, entry, parts)
    assert entry.combine is not None
    while vector.lanes > 1:
        half = vector.lanes // 2
        low = fn.text.shuffle(vector, None, list(range(half)))
        high = fn.text.shuffle(vector, None, list(range(half, 2 * half)))
        vector = fold(m, entry.combine, entry.dtype, low, high)
    return fold(m, entry.combine, entry.dtype, init, fn.text.extract(vector, 0))


