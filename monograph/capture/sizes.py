"""Numbers that values decide and that sizes are made of: symbols that the program itself tells.

    %y: i64[v0, 2] = aten.nonzero.default(%x)                 the size of a result
    %n: int(v1) = mono.number(%t; symbol=v1, lo=0, number=4)  an integer that Python uses as a size
    mono.require(v0, v1; relation="<=", number=5)             what the trace took for granted

The trace goes on with a size that in this call is what the values make it (`paths`). Of what is asked about it the
program keeps the conditions: a call in which one does not hold raises WrongPath and is captured on its own. Where the
very number is asked for, the trace starts again and has it (`Sizes.fixed`); what buffers alone decide it has at once:

    %y: i64[v0, 2] = aten.nonzero.default(%x)
    %n: i64[] = mono.scalar(v0)
    mono.expect(%n, value=[3], number=0)
    %z: i64[3, 2] = mono.sized(%y, size=[3, 2], number=0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from monograph import compat, errors
from monograph.capture import blame, handlers
from monograph.capture.call import flatten_result, result_type
from monograph.capture.dims import Relation, key_of, relations
from monograph.capture.layout import Layout
from monograph.capture.recorder import Recorder
from monograph.capture.regions.errors import Unmergeable
from monograph.capture.symbols import strides_of
from monograph.ir import symbolic
from monograph.ir.graph import Value
from monograph.ir.symbolic import Dim, Symbol, free_symbols
from monograph.ir.types import TensorType
from monograph.ops import families, table
from monograph.ops.effects import varies
from monograph.ops.own import IN_REGION
from monograph.source import SourceLoc

if TYPE_CHECKING:
    from monograph.capture.call import Call
    from monograph.capture.tracer import Tracer

__all__ = ["are_new", "check_assumed", "declare", "number", "read", "require"]


aten = torch.ops.aten


# -- sizes of results ------------------------------------------------------------------------------

def are_new(results: list[Any]) -> bool:
    """Whether a result, of an op that makes fresh ones, has a size that only the run knows."""
    return any(isinstance(size, torch.SymInt) and not compat.is_backed(size)
               for result in results if isinstance(result, torch.Tensor) for size in result.shape)


def read(tracer: Tracer, call: Call, result: Any) -> Any:
    """Record `call`, whose fake result is `result`, and give it with sizes that are symbols of the program's."""
    results = flatten_result(result)
    new = {name for leaf in results for size in (leaf.shape if isinstance(leaf, torch.Tensor) else ())
           for name in free_symbols(key_of(size)) - tracer.sizes.numbers.keys()}
    mask = _counted(call)
    key = mask if mask is None or len(new) != 1 else tracer.sizes.alike.number(tracer.memory.read(mask))
    known = tracer.sizes.counts.get(key)
    inside = known is None and tracer.in_region
    fixed = known is None and not inside and (tracer.sizes.fixed(tracer.record.loc)
                                              or not varies(map(tracer.memory.read, call.tensors), tracer.graph,
                                                         tracer.memory.written))
    if inside and not may_be_inside(tracer):
        raise Unmergeable("the size of a tensor depends on values in a branch or loop")
    names: dict[str, Dim] = {name: known or declare(tracer) for name in new}        # torch's symbol -> ours
    types = [_renamed(result_type(leaf), names) for leaf in results]
    values = tracer.node(table.of_overload(call.func), tracer.encode(call.args), tracer.encode(call.kwargs), types)
    if known is None and key in tracer.sizes.fixed_counts and not tracer.paths.can_run:        # in the backward
        fixed = True
        tracer.sizes.numbers.update(dict.fromkeys(map(str, names.values()), tracer.sizes.fixed_counts[key]))
    elif inside:
        for symbol in names.values():
            assert isinstance(symbol, Symbol)
            tracer.sizes.tell_inside(symbol)
    elif known is None:
        _find(tracer, call, names, values, fixed)
    if known is None and key is not None and not fixed:
        tracer.sizes.counts[key] = next(iter(names.values()))
    elif known is None and key is not None and tracer.paths.can_run:
        tracer.sizes.fixed_counts[key] = tracer.sizes.numbers[str(next(iter(names.values())))]
    make: Callable[..., torch.Tensor] = _sized if fixed else _laid
    made = [make(tracer, leaf, value, names) if isinstance(leaf, torch.Tensor) else leaf
            for leaf, value in zip(results, values, strict=True)]
    return type(result)(made) if isinstance(result, (list, tuple)) else made[0]


def may_be_inside(tracer: Tracer) -> bool:
    """Whether a branch or loop may have sizes that its values decide."""
    return tracer.sizes.numeric is not None


def _counted(call: Call) -> torch.Tensor | None:
    """The mask whose true elements a result has as many entries as."""
    if call.func is aten.nonzero.default or call.func is aten.masked_select.default:
        mask = call.tensors[-1]
        return mask if Layout.of(mask).key[0] == Layout.of(call.tensors[0]).key[0] else None
    if call.func is aten.index.Tensor and len(call.tensors) == 2 and call.tensors[1].dtype in families.MASKS:
        return call.tensors[1]
    return None


def declare(tracer: Tracer) -> Symbol:
    """A new symbol of the program, to be told by a value of it."""
    symbol = Symbol(tracer.sizes.name())
    tracer.graph.symbols[symbol.name] = symbol
    return symbol


def _find(tracer: Tracer, call: Call, names: Mapping[str, Dim], values: Sequence[Value], fixed: bool) -> None:
    """Learn from this call what the symbols of results are."""
    if not tracer.paths.can_run:
        raise handlers.needs_value(call.func, tracer.record.loc)
    for value in values:
        tracer.paths.evaluate(value)
    for symbol in names.values():
        assert isinstance(symbol, Symbol)
        if fixed:
            _expect(tracer, symbol)
        else:
            tracer.sizes.tell(symbol, tracer.sizes.numbers[symbol.name], tracer.record.loc)


def _renamed(type: Any, names: Mapping[str, Dim]) -> Any:
    if not isinstance(type, TensorType):
        return type
    return TensorType(type.dtype, tuple(symbolic.substitute(size, names) for size in type.shape))


def _laid(tracer: Tracer, leaf: torch.Tensor, value: Value, names: Mapping[str, Dim]) -> torch.Tensor:
    """A fake that lies as the fake kernel says, unless the result of this call lies otherwise."""
    real, shape, sizes = tracer.paths.values.get(value), value.tensor.shape, tracer.sizes
    strides: Sequence[Dim] = [symbolic.substitute(key_of(step), names) for step in leaf.stride()]
    if real is not None and real.numel() and any(
            size > 1 and symbolic.evaluate(step, sizes.numbers) != actual
            for size, step, actual in zip(real.shape, strides, real.stride(), strict=True)):
        strides = strides_of(real, shape)
    with compat.plain_torch():
        fake = tracer.fresh([*map(sizes.size, shape)], [*map(sizes.size, strides)], leaf.dtype)
    tracer.memory.add(fake, value)
    return fake


def _expect(tracer: Tracer, symbol: Symbol) -> None:
    """Let the program be for the number that a symbol is in this call."""
    with compat.plain_torch():
        fake = tracer.fresh((), (), torch.int64)
    tracer.memory.add(fake, tracer.record.emit("mono.scalar", symbol, dtype=torch.int64, sizes=()))
    tracer.paths.read(fake)


def _sized(tracer: Tracer, leaf: torch.Tensor, value: Value, names: Mapping[str, Dim]) -> torch.Tensor:
    real, numbers = tracer.paths.values.get(value), tracer.sizes.numbers
    shape = [symbolic.evaluate(size, numbers) for size in value.tensor.shape]
    strides = real.stride() if real is not None else [
        symbolic.evaluate(symbolic.substitute(key_of(step), names), numbers) for step in leaf.stride()]
    with compat.plain_torch():
        fake = tracer.fresh(shape, strides, leaf.dtype)
    tracer.memory.add(fake, tracer.record.emit("mono.sized", value, tuple(shape), tracer.paths.last, sizes=shape,
                                                dtype=leaf.dtype))
    return fake


# -- integers --------------------------------------------------------------------------------------

def number(tracer: Tracer, tensor: torch.Tensor) -> Any:
    """The integer in a traced i64[] as a size; NotImplemented where it must be asked for."""
    loc = blame.location(blame.user_frame(2))
    if tracer.known(tensor) is not None or not (tracer.in_region and may_be_inside(tracer) or tracer.paths.can_run):
        return NotImplemented
    with torch._C.DisableTorchFunction(), torch.no_grad():
        found = _Numbers(tracer, loc).of(tracer.memory.read(tensor))
    return NotImplemented if found is None else tracer.sizes.size(found)


class _Numbers:
    """The integers of a program as Dims: arithmetic on what is one is one."""

    def __init__(self, tracer: Tracer, loc: SourceLoc | None) -> None:
        self.tracer = tracer
        self.loc = loc

    def of(self, value: Value) -> Dim | None:
        """None where the very number is needed."""
        known, key = self.tracer.sizes.dims, self.tracer.sizes.alike.number(value)
        if key not in known:
            known[key] = found = self._computed(value)
            if found is None:
                known[key] = self._told(value)
        return known[key]

    def _computed(self, value: Value) -> Dim | None:
        node = value.node
        if node is None or value.tensor.dtype is not torch.int64:
            return None
        if node.op.name in ("mono.scalar", "aten.full.default"):
            given = node.operands[0] if node.op.name == "mono.scalar" else node.attributes["fill_value"]
            return given if isinstance(given, (int, symbolic.Expr)) else None
        if node.op.name in SAME and node.inputs[0].tensor.shape == () and node.inputs[0].tensor.dtype is torch.int64:
            return self.of(node.inputs[0])
        compute = ARITHMETIC.get(node.op.name)
        if compute is None or node.attributes.get("alpha", 1) != 1:
            return None
        args, _ = table.unbind(node.op, node.operands, node.attributes)
        sides = [self._side(side) for side in args[:2]]
        if None in sides or node.op.name in DIVISIONS and not (isinstance(sides[1], int) and sides[1] > 0):
            return None
        return compute(*sides)

    def _side(self, side: Any) -> Dim | None:
        if isinstance(side, Value):
            return self.of(side) if side.tensor.shape == () and side.tensor.dtype is torch.int64 else None
        return side if isinstance(side, (int, symbolic.Expr)) and not isinstance(side, bool) else None

    def _told(self, value: Value) -> Dim | None:
        tracer, sizes = self.tracer, self.tracer.sizes
        if tracer.in_region:
            return self._told_inside(value)
        if sizes.fixed(self.loc) or not varies([value], tracer.graph, tracer.memory.written):
            return None
        with compat.plain_torch():
            found = int(tracer.paths.evaluate(value))
        record = tracer.record
        if found < 0:
            value = record.emit("aten.neg.default", value, sizes=(), dtype=value.tensor.dtype)
        symbol = Symbol(sizes.name(), 1 if found < 0 or found and sizes.positive else 0)
        tracer.graph.symbols[symbol.name] = symbol
        record.number(value, symbol, tracer.paths.note(found))
        sizes.tell(symbol, abs(found), self.loc)
        return symbol if found >= 0 else -symbol


    def _told_inside(self, value: Value) -> Dim:
        """Sizes and most bounds are not negative; a call in which this one is runs in Python."""
        tracer = self.tracer
        symbol = declare(tracer)
        tracer.record.number(value, symbol, IN_REGION)
        tracer.sizes.assumed = True
        tracer.sizes.tell_inside(symbol)
        return symbol


SAME = frozenset("aten.clone.default aten.alias.default aten.detach.default aten._to_copy.default aten.view.default "
                 "aten.lift_fresh_copy.default".split())
DIVISIONS = frozenset({"aten.floor_divide.default", "aten.remainder.Tensor", "aten.remainder.Scalar"})
ARITHMETIC: dict[str, Callable[[Any, Any], Dim]] = {
    **dict.fromkeys(("aten.add.Tensor", "aten.add.Scalar"), lambda a, b: a + b),
    **dict.fromkeys(("aten.sub.Tensor", "aten.sub.Scalar"), lambda a, b: a - b),
    **dict.fromkeys(("aten.mul.Tensor", "aten.mul.Scalar"), lambda a, b: a * b),
    "aten.floor_divide.default": lambda a, b: a // b,
    **dict.fromkeys(("aten.remainder.Tensor", "aten.remainder.Scalar"), lambda a, b: a % b),
    "aten.maximum.default": symbolic.maximum, "aten.minimum.default": symbolic.minimum,
}


# -- conditions ------------------------------------------------------------------------------------

def _assume(tracer: Tracer, found: list[Relation]) -> None:
    """Record conditions on sizes in the branch or loop that tells them. Whether they hold in this call is seen once
    the trace is over (`assumed`)."""
    sizes = tracer.sizes
    for left, relation, right in found:
        if relation == "==" and symbolic.tells_one(left - right) or not tracer.in_region:
            raise Unmergeable("the number of a size is needed that values in a branch or loop decide")
        if (left, relation, right) not in sizes.required:
            sizes.required.add((left, relation, right))
            sizes.assumed = True
            tracer.record.node(table.lookup("mono.require"), (left, right), {
                "relation": relation, "number": IN_REGION, "asserted": sizes.asserting}, ())


def check_assumed(tracer: Tracer) -> bool:
    """Whether what was assumed of sizes in branches and loops holds in this call."""
    try:
        tracer.paths.run_all()
    except errors.WrongPath:
        return False
    except Exception:        # of the program's own: there is a time for it to be raised
        return True
    return True


def require(tracer: Tracer, asked: Any, loc: SourceLoc | None) -> None:
    """Record a condition on symbols that values tell, which holds in this call. It stands outside of regions, as do the
    values."""
    sizes = tracer.sizes
    inside = not sizes.local.isdisjoint(map(str, asked.free_symbols))
    try:
        found = relations(asked, compat.dims_of(sizes.mode), sizes.numbers)
    except errors.UnsupportedError:
        if inside:
            raise Unmergeable("torch asks for a size that values in a branch or loop decide") from None
        sizes.pin(map(str, asked.free_symbols))
        return
    if inside:
        _assume(tracer, found)
        return
    record = Recorder(tracer.graph)
    record.loc = loc
    for left, relation, right in found:
        if relation == "==" and symbolic.tells_one(left - right) and not sizes.asserting:
            sizes.pin(free_symbols(left - right))
        if (left, relation, right) not in sizes.required:
            sizes.required.add((left, relation, right))
            record.node(table.lookup("mono.require"), (left, right),
                        {"relation": relation, "number": tracer.paths.note((left, relation, right)),
                         "asserted": sizes.asserting}, ())
