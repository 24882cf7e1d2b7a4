"""Ops of our own: control flow, numbers, checks, seeding.

    mono.cond(predicate) {then, otherwise}   predicate is a one-element tensor or a number;
                                             results: those of the region chosen
    mono.while(carried*; history, trips) {condition, body}
                                             condition(carried*) -> bool; body(carried*) -> carried*;
                                             results: the last carried. With `trips`, the name of a symbol, then also
                                             the number of iterations as int(trips), and for each carry k in `history`
                                             its values at the start of every iteration, stacked: [trips, *shape]
    mono.custom_vjp(made*, given*; wrt) {backward}
                                             results: `made`, computed before from `given` by ops whose derivatives do
                                             not count: backward(cotangent of each result) -> the gradients of
                                             given[k] for k in `wrt`; the others get none. Only while a trace runs
    mono.number(x; symbol, lo, number) -> int(symbol)    the element of a one-element integer tensor as a number, which
                                             dims and attributes may use; `lo`: it is at least that; with `number`,
                                             errors.WrongPath(number, it) is raised where it is not
    mono.scalar(n; dtype) -> dtype[]         a number or Dim as a tensor without dims
    mono.sized(x; size, number, dtype) -> dtype[size]
                                             `x`, whose sizes are these, and whose dtype is `dtype` if that is given;
                                             raises errors.WrongPath(number, its sizes) where they are not,
                                             UnsupportedError where `number` is IN_BACKWARD
    mono.check(ok; error, message) ->        raises error(message) when the one element of `ok` is false, error() when
                                             message is None; `error` is for `errors.exception_class`
    mono.expect(x; value, number, asserted) ->
                                             raises errors.WrongPath(number, actual) unless the elements of `x` are, in
                                             order, the numbers `value`; NaN equals itself, 0.0 differs from -0.0;
                                             `asserted`: in calls in which they are not eager raises
    mono.require(left, right; relation, number, asserted) ->
                                             raises errors.WrongPath(number, left, right) unless numbers or Dims are so
                                             related: ==, !=, <, <=, > or >=; `asserted` as above
    mono.seed(; seed)                        the default generator starts anew, as by torch.manual_seed;
                                             result: i8[] that nobody reads
    mono.rng_state(;) -> u8[n]               the state of the default generator
    mono.set_rng_state(state) -> i8[]        as by torch.set_rng_state
    mono.compact(mask) -> i64[n], i64[]      the flat positions of the true elements of `mask`, which has n elements, in
                                             order, then anything; how many they are
    mono.spread(repeats; size) -> dtype[size]
                                             i, repeats[i] times, for every i; the sum of `repeats`, of which none is
                                             negative, is `size`
    mono.sort(x) -> dtype[2 * n], i64[2 * n] the n integers of `x` in order, equal ones as they come, and their flat
                                             positions; then anything
    mono.place(x, at) -> dtype[n]            result[at[i]] = x[i]; `at` has each of 0..n-1 once
    mono.normal(; size, mean, std, dtype) -> dtype[size]
                                             normal numbers in the order in which torch draws them into memory with gaps
                                             or another order than row by row: one by one rather than in blocks

Regions see the values of the graph around them. Both regions of `cond` return the same types;
`while` regions take one input per carried value, and its results have the types of those inputs. Where sizes
differ (between the two regions of a `cond`, between iterations), a result's type has a symbol in their
place, which the result binds: such types are given when the node is made, not inferred.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from monograph import errors
from monograph.ir import symbolic
from monograph.ir.graph import Attribute, Graph, Node, Operand, Value
from monograph.ir.op import Effect, Op, Parameter, ParameterKind, Trait
from monograph.ir.symbolic import Expr, Symbol
from monograph.ir.types import ScalarType, TensorType, Type

__all__ = ["IN_BACKWARD", "IN_REGION", "LEARNT", "TABLE", "Own", "reads_value"]

RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# `number` of sizes that were learnt, of those no other capture can help, of those that a branch or loop decides
LEARNT, IN_BACKWARD, IN_REGION = -1, -2, -3

TypeRule = Callable[[Sequence[Operand], Mapping[str, Attribute], Sequence[Graph]], tuple[Type, ...]]


@dataclass(frozen=True, slots=True)
class Own:
    """An op, its types, and its evaluation in torch (None: it has regions, `ops.evaluate` runs those).

    `single`: a call gives one value rather than a tuple.
    """

    op: Op
    types: TypeRule
    call: Callable[..., Any] | None = None
    single: bool = False


def _inside(type: Type) -> Type:
    return replace(type, strides=None) if isinstance(type, TensorType) else type


# --- types --------------------------------------------------------------------------------------

def _cond_types(_: Sequence[Operand], __: Mapping[str, Attribute], regions: Sequence[Graph]) -> tuple[Type, ...]:
    return tuple(_inside(value.type) for value in regions[0].outputs)


def _while_types(
    _: Sequence[Operand], attributes: Mapping[str, Attribute], regions: Sequence[Graph]
) -> tuple[Type, ...]:
    types = [_inside(value.type) for value in regions[1].inputs]
    trips = attributes["trips"]
    if trips is None:
        return tuple(types)
    stacks = [types[position] for position in attributes["history"]]
    stacked = [replace(type, shape=(Symbol(trips), *type.shape)) for type in stacks if isinstance(type, TensorType)]
    return (*types, ScalarType("int", trips), *stacked)


def _custom_vjp_types(
    operands: Sequence[Operand], _: Mapping[str, Attribute], __: Sequence[Graph]
) -> tuple[Type, ...]:
    made = operands[0]
    assert isinstance(made, tuple)
    return tuple(_inside(value.type) for value in made if isinstance(value, Value))


def _no_results(_: Sequence[Operand], __: Mapping[str, Attribute], ___: Sequence[Graph]) -> tuple[Type, ...]:
    return ()


# --- evaluation ---------------------------------------------------------------------------------

def _number(x: torch.Tensor, symbol: str, lo: int | None, number: int | None) -> int:
    found = int(x.item())
    if lo is not None and found < lo:
        assert number is not None, f"{symbol} is {found}, promised to be at least {lo}"
        raise errors.WrongPath(number, (found,))
    return found


def _scalar(n: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(n, dtype=dtype)


def check(ok: Any, error: str, message: str | None) -> tuple[()]:
    if not bool(ok):
        raised = errors.exception_class(error)
        raise raised() if message is None else raised(message)
    return ()


def _expect(x: torch.Tensor, value: Sequence[Any], number: int, asserted: bool) -> tuple[()]:
    actual = x.detach().reshape(-1).tolist()
    if [repr(entry) for entry in actual] != [repr(entry) for entry in value]:
        raise errors.WrongPath(number, tuple(actual))
    return ()


def _require(left: int, right: int, relation: str, number: int, asserted: bool) -> tuple[()]:
    if not RELATIONS[relation](left, right):
        raise errors.WrongPath(number, (left, right))
    return ()


def _sized(x: torch.Tensor, size: Sequence[int], number: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    if tuple(x.shape) != tuple(size) or dtype not in (None, x.dtype):
        if number == IN_BACKWARD:
            raise errors.UnsupportedError("what a custom op gives in a backward depends on the values of tensors",
                                          why="the backward was made for the sizes of its first run")
        raise errors.WrongPath(number, (*x.shape, x.dtype))
    return x.view(x.shape)


def _sized_types(
    operands: Sequence[Operand], attributes: Mapping[str, Attribute], _: Sequence[Graph]
) -> tuple[Type, ...]:
    x = operands[0]
    assert isinstance(x, Value)
    return (TensorType(x.tensor.dtype, tuple(attributes["size"])),)


def _seed(seed: int) -> torch.Tensor:
    torch.default_generator.manual_seed(seed)
    return torch.zeros((), dtype=torch.int8)


def _rng_state() -> torch.Tensor:
    return torch.default_generator.get_state()


def _set_rng_state(state: torch.Tensor) -> torch.Tensor:
    torch.default_generator.set_state(state.clone())        # it reads past what is no tensor of torch's own making
    return torch.zeros((), dtype=torch.int8)


def _compact(mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    found = mask.reshape(-1).nonzero().squeeze(1)
    places = torch.zeros(mask.numel(), dtype=torch.int64)
    places[:len(found)] = found
    return places, torch.tensor(len(found))


def _compact_types(
    operands: Sequence[Operand], attributes: Mapping[str, Attribute], _: Sequence[Graph]
) -> tuple[Type, ...]:
    mask = operands[0]
    assert isinstance(mask, Value)
    return TensorType(torch.int64, (symbolic.product(mask.tensor.shape),)), TensorType(torch.int64, ())


def _spread(repeats: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    return torch.repeat_interleave(repeats, output_size=size[0])


def _sort(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    elements, places = torch.sort(x.reshape(-1), stable=True)
    return elements.repeat(2), places.repeat(2)


def _sort_types(
    operands: Sequence[Operand], attributes: Mapping[str, Attribute], _: Sequence[Graph]
) -> tuple[Type, ...]:
    x = operands[0]
    assert isinstance(x, Value)
    shape = (2 * symbolic.product(x.tensor.shape),)
    return TensorType(x.tensor.dtype, shape), TensorType(torch.int64, shape)


def _place(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x).index_copy_(0, at, x)


def _same_type(
    operands: Sequence[Operand], attributes: Mapping[str, Attribute], _: Sequence[Graph]
) -> tuple[Type, ...]:
    x = operands[0]
    assert isinstance(x, Value)
    return (_inside(x.type),)


def _normal(size: Sequence[int], mean: float, std: float, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty((*size, 2), dtype=dtype)[..., 0].normal_(mean, std).contiguous()


# --- the table ----------------------------------------------------------------------------------

def _attribute(name: str, *default: Attribute) -> Parameter:
    return Parameter(name, ParameterKind.ATTRIBUTE, *default)


def _tensor(name: str) -> Parameter:
    return Parameter(name, ParameterKind.TENSOR)


RAISES = frozenset({Effect.RAISES})

COND = Op("mono.cond", (_tensor("predicate"),), regions=("then", "otherwise"))
WHILE = Op(
    "mono.while", (Parameter("carried", ParameterKind.TENSORS), _attribute("history", ()), _attribute("trips", None)),
    regions=("condition", "body"),
)
CUSTOM_VJP = Op(
    "mono.custom_vjp",
    (Parameter("made", ParameterKind.TENSORS), Parameter("given", ParameterKind.TENSORS), _attribute("wrt")),
    regions=("backward",),
)
NUMBER = Op(
    "mono.number", (_tensor("x"), _attribute("symbol"), _attribute("lo", None), _attribute("number", None)),
    traits=frozenset({Trait.SYNC}),
)
SCALAR = Op("mono.scalar", (_tensor("n"), _attribute("dtype", torch.int64)))
SIZED = Op(     # what raises on some values is not moved to where it would not have run
    "mono.sized", (_tensor("x"), _attribute("size"), _attribute("number"), _attribute("dtype", None)),
    traits=frozenset({Trait.SYNC}),
)
CHECK = Op("mono.check", (_tensor("ok"), _attribute("error"), _attribute("message", None)), effects=RAISES)
EXPECT = Op("mono.expect", (_tensor("x"), _attribute("value"), _attribute("number"), _attribute("asserted", False)),
            effects=RAISES)
REQUIRE = Op(
    "mono.require",
    (_tensor("left"), _tensor("right"), _attribute("relation"), _attribute("number"), _attribute("asserted", False)),
    effects=RAISES,
)
COMPACT = Op("mono.compact", (_tensor("mask"),))
SPREAD = Op("mono.spread", (_tensor("repeats"), _attribute("size")))
SORT = Op("mono.sort", (_tensor("x"),))
PLACE = Op("mono.place", (_tensor("x"), _tensor("at")))
NORMAL = Op("mono.normal", tuple(map(_attribute, ("size", "mean", "std", "dtype"))), traits=frozenset({Trait.RANDOM}))
SEED = Op("mono.seed", (_attribute("seed"),), effects=frozenset({Effect.WRITES_STATE}))
RNG_STATE = Op("mono.rng_state", (), effects=frozenset({Effect.READS_STATE}))
SET_RNG_STATE = Op("mono.set_rng_state", (_tensor("state"),), effects=frozenset({Effect.WRITES_STATE}))

TABLE: dict[str, Own] = {
    own.op.name: own for own in (
        Own(COND, _cond_types),
        Own(WHILE, _while_types),
        Own(CUSTOM_VJP, _custom_vjp_types),
        Own(NUMBER, lambda _, given, __: (ScalarType("int", given["symbol"]),), _number, single=True),
        Own(SCALAR, lambda _, given, __: (TensorType(given["dtype"], ()),), _scalar, single=True),
        Own(SIZED, _sized_types, _sized, single=True),
        Own(CHECK, _no_results, check),
        Own(EXPECT, _no_results, _expect),
        Own(REQUIRE, _no_results, _require),
        Own(COMPACT, _compact_types, _compact),
        Own(SPREAD, _sized_types, _spread, single=True),
        Own(SORT, _sort_types, _sort),
        Own(PLACE, _same_type, _place, single=True),
        Own(NORMAL, lambda _, given, __: (TensorType(given["dtype"], tuple(given["size"])),), _normal, single=True),
        Own(SEED, lambda _, __, ___: (TensorType(torch.int8, ()),), _seed),
        Own(RNG_STATE, lambda _, __, ___: (TensorType(torch.uint8, tuple(_rng_state().shape)),), _rng_state),
        Own(SET_RNG_STATE, lambda _, __, ___: (TensorType(torch.int8, ()),), _set_rng_state),
    )
}


def reads_value(node: Node) -> bool:
    """Whether the program is for one value of those that a node sees: other conditions on numbers leave many."""
    if node.attributes.get("asserted", False):
        return False
    if node.op.name == "mono.require":
        left, right = (side for side in node.operands if isinstance(side, int | Expr))
        return node.attributes["relation"] == "==" and symbolic.tells_one(left - right)
    return node.op.name == "mono.expect"
