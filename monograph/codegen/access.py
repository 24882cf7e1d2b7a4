"""Loads and stores: addresses, and the shape an access has in the variable of the vector loop.

    index = sum(coefficient * atom) + constant

The part of an address that a loop does not change is computed outside it. In a vector loop the
coefficient of the variable decides: 0 one scalar, 1 a vector, -1 a reversed vector, anything else, or an
index that is itself varying, lane by lane (or the target's gather).

A masked access never touches memory its mask excludes: a masked load reads zeros of our own there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monograph.codegen import casts, forms
from monograph.codegen.text import Value
from monograph.codegen.types import constant, memory
from monograph.loops.nodes import Buffer, Const, Expr, Load, Store, Var

if TYPE_CHECKING:
    from monograph.codegen.function import Function, Lanes

__all__ = ["load", "needs", "prefetch", "store"]

GATHER = None       # the stride of an access whose index varies otherwise than affinely


def stride(fn: Function, index: Expr) -> int | None:
    """How far the index moves per lane; None when that is no constant."""
    if fn.vector is None:
        return 0
    terms = fn.facts.linear(index).terms
    variable = fn.vector.loop.var
    if any(atom is not variable and fn.is_varying(atom) for atom in terms):
        return GATHER
    return terms.get(variable, 0)


def needs(fn: Function, load: Load) -> tuple[Expr, ...]:
    """The expressions whose values `load` uses."""
    rest = load.args[1:]
    if stride(fn, load.index) is GATHER:
        return (load.index, *rest)
    return (*_atoms(fn, load.index), *rest)


def _atoms(fn: Function, index: Expr) -> list[Expr]:
    return [atom for atom in fn.facts.linear(index).terms if not isinstance(atom, Var)]


def address(fn: Function, buffer: Buffer, index: Expr) -> tuple[Value, int]:
    """Pointer and constant offset (in elements) of an affine index; of lane 0 in a vector loop."""
    linear = fn.facts.linear(index)
    offset = linear.constant
    parts: dict[int, list[tuple[Value, int]]] = {}
    for atom, coefficient in linear.terms.items():
        if isinstance(atom, Var):
            bound = fn.variables[atom]
            offset += coefficient * bound.offset
            if bound.base is not None:
                parts.setdefault(bound.depth, []).append((bound.base, coefficient))
            continue
        value = fn.value(atom)
        assert isinstance(value, Value)
        parts.setdefault(fn.depth_of(atom), []).append((value, coefficient))
    pointer = fn.pointers[buffer]
    element = memory(buffer.dtype)
    for depth in sorted(parts):
        terms = sorted(parts[depth])
        pointer = _advance(fn, pointer, element, depth, terms)
    return pointer, offset


def _advance(fn: Function, pointer: Value, element: str, depth: int, terms: list[tuple[Value, int]]) -> Value:
    known = fn.scopes[depth].addresses
    key = (pointer.ref, element, tuple((v.ref, c) for v, c in terms))
    found = known.get(key)
    if found is None:
        def write() -> Value:
            text = fn.text
            at = pointer
            for value, coefficient in terms:
                scaled = value if coefficient == 1 else text.binary("mul", value, Value(str(coefficient), "i64"))
                at = text.emit("ptr", 0, f"getelementptr {element}, {at}, {scaled}")
            return at

        made = fn.at(depth, write)
        assert isinstance(made, Value)
        found = known[key] = made
    return found


# -- loads

def load(fn: Function, expr: Load) -> Lanes:
    vector = fn.vector
    mask = fn.value(expr.mask) if expr.mask is not None else None
    other = fn.value(expr.other) if expr.other is not None else None
    step = stride(fn, expr.index)
    if vector is None or not fn.is_varying(expr):
        return _load_scalar(fn, expr, mask, other)
    if step == 0 and (mask is None or isinstance(mask, Value)):
        # Only `other` has lanes: one scalar, then a choice.
        assert mask is not None
        one = _load_scalar(fn, expr, mask, None)
        assert isinstance(mask, Value) and other is not None and isinstance(one, Value)
        return tuple(fn.text.select(mask, fn.splat(one, vector.lanes), o) for o in fn.spread(other))
    guard = mask if isinstance(mask, Value) and step in (1, -1) else None      # one branchless choice of address
    masks = _masks(fn, mask) if guard is None else vector.masks
    others = fn.spread(other) if other is not None and expr.other is not None else None
    if isinstance(expr.other, Const) and constant(expr.other.value, expr.dtype) == constant(0, expr.dtype):
        others = None           # what masked lanes read anyway
    if step is GATHER:
        indices = fn.value(expr.index)
        assert not isinstance(indices, Value)
        pointers = [_pointers(fn, expr.buffer, i) for i in indices]
        return tuple(
            _finish(fn, expr, forms.load_gathered(fn, expr.buffer.dtype, p, m), m, others, u)
            for u, (p, m) in enumerate(zip(pointers, masks, strict=True))
        )
    base, offset = address(fn, expr.buffer, expr.index)
    element = memory(expr.buffer.dtype)
    result = []
    for u, m in enumerate(masks):
        first = offset + u * vector.lanes * step
        if step == 1:
            raw = forms.load_vector(fn, element, _guarded(fn, guard, forms.offset_by(fn, base, element, first)), m)
        elif step == -1:
            order = list(range(vector.lanes))[::-1]
            at = _guarded(fn, guard, forms.offset_by(fn, base, element, first - vector.lanes + 1))
            reversed_mask = fn.text.shuffle(m, None, order) if m is not None else None
            raw = fn.text.shuffle(forms.load_vector(fn, element, at, reversed_mask), None, order)
        else:
            raw = forms.load_strided(fn, expr, element, base, first, step, m)
        result.append(_finish(fn, expr, raw, m if guard is None else guard, others, u))
    return tuple(result)


def _guarded(fn: Function, guard: Value | None, at: Value) -> Value:
    return fn.text.select(guard, at, forms.zeros(fn)) if guard is not None else at


def _finish(
    fn: Function, expr: Load, raw: Value, mask: Value | None, others: tuple[Value, ...] | None, u: int
) -> Value:
    value = casts.from_memory(fn.text, raw, expr.buffer.dtype)
    if mask is None or others is None:
        return value
    return fn.text.select(mask, value, others[u])


def _masks(fn: Function, mask: Lanes | None) -> tuple[Value | None, ...]:
    """The mask of each jammed vector: the access's own and that of the loop's remainder."""
    assert fn.vector is not None
    if mask is None:
        return fn.vector.masks
    both = zip(fn.spread(mask), fn.vector.masks, strict=True)
    return tuple(own if tail is None else fn.text.binary("and", own, tail) for own, tail in both)


def _load_scalar(fn: Function, expr: Load, mask: Lanes | None, other: Lanes | None) -> Value:
    text, dtype = fn.text, expr.buffer.dtype
    element = memory(dtype)
    base, offset = address(fn, expr.buffer, expr.index)
    at = forms.offset_by(fn, base, element, offset)
    if mask is not None:
        assert isinstance(mask, Value)
        at = text.select(mask, at, forms.zeros(fn))
    value = casts.from_memory(text, text.emit(element, 0, f"load {element}, {at}, align {dtype.itemsize}"), dtype)
    if mask is None or other is None or other == constant(0, dtype):
        return value
    assert isinstance(mask, Value) and isinstance(other, Value)
    return text.select(mask, value, other)


def _pointers(fn: Function, buffer: Buffer, index: Value) -> Value:
    return fn.text.emit("ptr", index.lanes, f"getelementptr {memory(buffer.dtype)}, {fn.pointers[buffer]}, {index}")


def prefetch(fn: Function, buffer: Buffer, index: Expr) -> None:
    """Ask for the memory of an affine index (of lane 0), without waiting for it."""
    base, offset = address(fn, buffer, index)
    fn.text.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    place = forms.offset_by(fn, base, memory(buffer.dtype), offset)
    fn.text.line(f"call void @llvm.prefetch.p0({place}, i32 0, i32 3, i32 1)")


# -- stores

def store(fn: Function, statement: Store) -> None:
    """Write `statement`; the caller forgets cached loads of the buffer."""
    dtype = statement.buffer.dtype
    value = fn.value(statement.value)
    mask = fn.value(statement.mask) if statement.mask is not None else None
    step = stride(fn, statement.index)
    uniform = fn.vector is None or (
        step == 0 and isinstance(value, Value) and (mask is None or isinstance(mask, Value))
    )
    if uniform:
        assert isinstance(value, Value)
        _store_scalar(fn, statement, casts.to_memory(fn.text, value, dtype), mask)
        return
    values = [casts.to_memory(fn.text, v, dtype) for v in fn.spread(value)]
    if isinstance(mask, Value) and mask.ref != "true":
        skip = fn.text.label("skip")
        take = fn.text.label("take")
        indices = fn.value(statement.index) if step is GATHER else None
        base, offset = address(fn, statement.buffer, statement.index) if step is not GATHER else (None, 0)
        fn.text.line(f"br {mask}, label %{take}, label %{skip}")
        fn.text.place(take)
        _store_vectors(fn, statement, values, fn.vector.masks, step, indices, base, offset)  # type: ignore[union-attr]
        fn.text.line(f"br label %{skip}")
        fn.text.place(skip)
        return
    masks = _masks(fn, mask)
    indices = fn.value(statement.index) if step is GATHER else None
    base, offset = address(fn, statement.buffer, statement.index) if step is not GATHER else (None, 0)
    _store_vectors(fn, statement, values, masks, step, indices, base, offset)


def _store_vectors(
    fn: Function, statement: Store, values: list[Value], masks: tuple[Value | None, ...],
    step: int | None, indices: Lanes | None, base: Value | None, offset: int,
) -> None:
    element = memory(statement.buffer.dtype)
    lanes = forms.lanes_of(fn)
    for u, (value, mask) in enumerate(zip(values, masks, strict=True)):
        if step is GATHER:
            assert indices is not None and not isinstance(indices, Value)
            forms.scatter(fn, element, value, _pointers(fn, statement.buffer, indices[u]), mask)
            continue
        assert base is not None
        first = offset + u * lanes * step
        if step == 1:
            forms.store_vector(fn, element, value, forms.offset_by(fn, base, element, first), mask)
        elif step == -1:
            order = list(range(lanes))[::-1]
            at = forms.offset_by(fn, base, element, first - lanes + 1)
            backwards = fn.text.shuffle(mask, None, order) if mask is not None else None
            forms.store_vector(fn, element, fn.text.shuffle(value, None, order), at, backwards)
        else:
            at = forms.offset_by(fn, base, element, first)
            steps = ", ".join(f"i64 {lane * step}" for lane in range(lanes))
            pointers = fn.text.emit("ptr", lanes, f"getelementptr {element}, {at}, <{lanes} x i64> <{steps}>")
            forms.scatter(fn, element, value, pointers, mask)


def _store_scalar(fn: Function, statement: Store, value: Value, mask: Lanes | None) -> None:
    text = fn.text
    element = memory(statement.buffer.dtype)
    base, offset = address(fn, statement.buffer, statement.index)
    skip = None
    if mask is not None:
        assert isinstance(mask, Value)
        take, skip = text.label("take"), text.label("skip")
        text.line(f"br {mask}, label %{take}, label %{skip}")
        text.place(take)
    text.line(f"store {value}, {forms.offset_by(fn, base, element, offset)}, align {forms.size_of(element)}")
    if skip is not None:
        text.line(f"br label %{skip}")
        text.place(skip)
