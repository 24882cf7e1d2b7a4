"""Result types of an op.

Two ways, both asking torch itself:
- a pointwise op's dtypes come from one run on one-element meta tensors, kept per signature; its
  shape is the broadcast of its operands', symbolic or not;
- any other op runs on meta or fake tensors of the operands' shapes. Symbolic shapes are tried with several
  values of the symbols and the result's sizes fitted: a size of an operand, a product or sum of two,
  or a linear function of the symbols. What cannot be fitted is refused.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch

from monograph import compat
from monograph.errors import UnsupportedError
from monograph.ir import symbolic
from monograph.ir.graph import Attribute, Graph, Operand, Value, flatten_operands
from monograph.ir.op import Op, Trait
from monograph.ir.symbolic import Dim, Expr
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.ops import families, own, table

__all__ = ["broadcast", "environments", "fit", "is_single", "pool", "result_types"]

SCALARS: dict[str, Any] = {"int": 1, "float": 1.0, "bool": True}


def result_types(
    op: Op, operands: Sequence[Operand], attributes: Mapping[str, Attribute], regions: Sequence[Graph] = ()
) -> tuple[Type, ...]:
    """One type per result (a list result counts as its entries); strides None.

    A result that torch leaves undefined (an output mask is off) gets the empty f32 type `f32[0]`.
    Raises what torch raises for operands that do not fit, UnsupportedError where sizes cannot be told.
    """
    if op.name in own.TABLE:
        return own.TABLE[op.name].types(operands, attributes, regions)
    device = _device(operands, attributes)
    if op.has(Trait.SYNC) and is_number(op):
        return (ScalarType(_number_kind(next(flatten_operands(operands)).tensor.dtype)),)
    if op.has(Trait.POINTWISE):
        shape = broadcast(*(v.tensor.shape for v in flatten_operands(operands) if isinstance(v.type, TensorType)))
        return tuple(TensorType(dtype, shape, device) for dtype in _pointwise(op, operands, attributes))
    symbols: dict[str, symbolic.Symbol] = {}
    for dim in _dims(operands, attributes):
        symbols.update(symbolic.symbols_of(dim))
    if symbols:
        return _fitted(op, operands, attributes, symbols, device)
    return _static(_Call(op, tuple(operands), attributes, {}), device)


@functools.cache
def is_single(op: Op) -> bool:
    """Whether calling the op gives one tensor or number rather than a tuple or list."""
    if op.name in own.TABLE:
        return own.TABLE[op.name].single
    returns = table.overload(op.name)._schema.returns
    return len(returns) == 1 and not str(returns[0].type).startswith("List")


@functools.cache
def is_number(op: Op) -> bool:
    """Whether the op's result is a Python number."""
    return str(table.overload(op.name)._schema.returns[0].type) == "number"


def _number_kind(dtype: torch.dtype) -> Literal["int", "float", "bool"]:
    return "bool" if dtype is torch.bool else "float" if dtype.is_floating_point else "int"


def broadcast(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The shape torch broadcasts `shapes` to; where a symbolic size meets a number other than 1, the number."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, rank - len(shape)):
            known = result[position]
            if size == known or size == 1:
                continue
            if known == 1 or (isinstance(known, Expr) and isinstance(size, int)):
                result[position] = size
            elif isinstance(known, int) and isinstance(size, int):
                raise RuntimeError(f"shapes {shapes} do not broadcast")
    return tuple(result)


def _device(operands: Sequence[Operand], attributes: Mapping[str, Attribute]) -> str:
    asked = attributes.get("device")
    if asked is not None:
        return str(asked)
    for value in flatten_operands(operands):
        if isinstance(value.type, TensorType):
            return value.type.device
    return "cpu"


# --- pointwise ----------------------------------------------------------------------------------

def _pointwise(op: Op, operands: Sequence[Operand], attributes: Mapping[str, Attribute]) -> tuple[torch.dtype, ...]:
    signature = tuple(_signature(operand) for operand in operands)
    frozen = tuple((name, _exact(value)) for name, value in attributes.items())
    return _pointwise_dtypes(op.name, signature, frozen, torch.get_default_dtype())


def _signature(operand: Operand) -> Hashable:
    """What of an operand decides the result's dtype: dtype and whether it has dims, or a number."""
    if isinstance(operand, Value):
        if isinstance(operand.type, TensorType):
            return operand.type.dtype, operand.type.rank > 0
        return _exact(SCALARS[operand.type.kind])
    if isinstance(operand, tuple):
        return ("list", *(_signature(entry) for entry in operand))
    return _exact(operand)


def _exact(value: Any) -> tuple[type, Any]:
    """A key that tells 1, 1.0 and True apart."""
    if isinstance(value, Expr):
        return int, 1
    if isinstance(value, tuple):
        return tuple, tuple(_exact(entry) for entry in value)
    return type(value), value


def _inexact(key: tuple[type, Any]) -> Any:
    kind, value = key
    return tuple(_inexact(entry) for entry in value) if kind is tuple else value


@functools.lru_cache(maxsize=4096)
def _pointwise_dtypes(
    name: str, signature: tuple[Any, ...], attributes: tuple[Any, ...], default: torch.dtype
) -> tuple[torch.dtype, ...]:
    """The dtypes of the results while `default` is torch's default dtype."""
    def operand(key: Any) -> Any:
        if isinstance(key[0], torch.dtype):
            return torch.empty((1,) if key[1] else (), dtype=key[0], device="meta")
        if key[0] == "list":
            return tuple(operand(entry) for entry in key[1:])
        return _inexact(key)

    with compat.plain_torch():
        results = _run(table.lookup(name), [operand(key) for key in signature], {k: _inexact(v) for k, v in attributes})
    return tuple(result.dtype for result in results)


# --- meta execution -----------------------------------------------------------------------------

class _Call:
    """A call of `op` with every symbol replaced by a number."""

    def __init__(
        self, op: Op, operands: tuple[Operand, ...], attributes: Mapping[str, Attribute], env: Mapping[str, int]
    ) -> None:
        self.op = op
        self.operands = tuple(_concrete(operand, env) for operand in operands)
        self.attributes = {name: _concrete(value, env) for name, value in attributes.items()}

    def key(self) -> Hashable:
        return self.op.name, _exact(self.operands), tuple((name, _exact(v)) for name, v in self.attributes.items())


def _concrete(operand: Any, env: Mapping[str, int]) -> Any:
    if isinstance(operand, Value):
        if isinstance(operand.type, ScalarType):
            return SCALARS[operand.type.kind]
        type = operand.type
        # Without strides, which ops of the IR do not see: some kernels refuse some.
        return TensorType(type.dtype, tuple(symbolic.evaluate(size, env) for size in type.shape), type.device)
    if isinstance(operand, Expr):
        return symbolic.evaluate(operand, env)
    if isinstance(operand, tuple):
        return tuple(_concrete(entry, env) for entry in operand)
    return operand


_known: dict[Hashable, tuple[Type, ...]] = {}


def _static(call: _Call, device: str) -> tuple[Type, ...]:
    key = (call.key(), device, torch.get_default_dtype())
    found = _known.get(key)
    if found is None:
        if len(_known) > 20_000:
            _known.clear()
        found = _known[key] = tuple(_type_of(result, device) for result in _execute(call))
    return found


def _type_of(result: Any, device: str) -> Type:
    if isinstance(result, torch.Tensor):
        return TensorType(result.dtype, tuple(result.shape), device)
    if result is None:
        return TensorType(torch.float32, (0,), device)
    return ScalarType(_scalar_kind(result))


def _scalar_kind(number: Any) -> Literal["int", "float", "bool"]:
    return "bool" if isinstance(number, bool) else "int" if isinstance(number, int) else "float"


def _execute(call: _Call) -> list[Any]:
    """Results on meta tensors; on fake ones, which know their device, for all but the plain ops."""
    with compat.plain_torch():
        if call.op.name in families.KERNELS:
            return _run(call.op, _tensors(call.operands, "meta"), call.attributes)
        with compat.fake_tensor_mode(), torch.no_grad():
            return _run(call.op, _tensors(call.operands, None), call.attributes, None)


def _tensors(operands: Any, device: str | None) -> Any:
    if isinstance(operands, TensorType):
        where = device or operands.device
        if operands.strides is None:
            return torch.empty(operands.shape, dtype=operands.dtype, device=where)  # type: ignore[arg-type]
        return torch.empty_strided(operands.shape, operands.strides, dtype=operands.dtype, device=where)  # type: ignore[arg-type]
    if isinstance(operands, tuple):
        return tuple(_tensors(entry, device) for entry in operands)
    return operands


def _run(op: Op, operands: Sequence[Any], attributes: Mapping[str, Any], device: str | None = "meta") -> list[Any]:
    if device is not None and any(parameter.name == "device" for parameter in op.parameters):
        attributes = {**attributes, "device": torch.device(device), "pin_memory": None}
        attributes = {p.name: attributes[p.name] for p in op.attribute_parameters}
    args, kwargs = table.unbind(op, operands, attributes)
    return list(_flat(table.overload(op.name)(*args, **kwargs)))


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for entry in result:
            yield from _flat(entry)
    else:
        yield result


# --- symbolic shapes ----------------------------------------------------------------------------

def _dims(operands: Any, attributes: Mapping[str, Attribute]) -> Iterator[Dim]:
    """Every symbolic size among the operands' shapes, number operands and attributes."""
    for value in flatten_operands(operands):
        if isinstance(value.type, TensorType):
            yield from (dim for dim in value.type.shape if isinstance(dim, Expr))
    pending = [*operands, *attributes.values()]
    while pending:
        entry = pending.pop()
        if isinstance(entry, Expr):
            yield entry
        elif isinstance(entry, tuple):
            pending.extend(entry)


# Far apart and of different remainders, so that a fit that holds on all of them is no accident. Even, for halves.
PROBES = (12, 38, 138)
NEAR = 5        # below it are the steps of small sizes


def _fitted(
    op: Op, operands: Sequence[Operand], attributes: Mapping[str, Attribute],
    symbols: Mapping[str, symbolic.Symbol], device: str,
) -> tuple[Type, ...]:
    if op.has(Trait.SYNC):
        raise UnsupportedError(f"the size of the result of {op.name} depends on values",
                               why="no rule says what a symbol for it is")
    probes = environments(symbols, _dims(operands, attributes))
    runs = [_static(_Call(op, tuple(operands), attributes, env), device) for env in probes]
    known = _candidates(operands, attributes)
    results: list[Type] = []
    for versions in zip(*runs, strict=True):
        first = versions[0]
        if not isinstance(first, TensorType):
            results.append(first)
            continue
        sizes = list(zip(*(version.shape for version in versions), strict=True))
        shape = tuple(fit(f"the result of {op.name}", list(size), known, symbols, probes) for size in sizes)
        results.append(TensorType(first.dtype, shape, device))
    return tuple(results)


def environments(symbols: Mapping[str, symbolic.Symbol], dims: Iterable[Dim] = ()) -> list[dict[str, int]]:
    """Several assignments within the symbols' ranges; the first is the base, then each symbol moves alone. All `dims`
    are of several sizes in them, if they can be: where one is a quotient or has a limit, some symbols are small."""
    asked = [dim for dim in dims if isinstance(dim, Expr)]
    divisors = frozenset[str]().union(*map(symbolic.divisors, asked))
    made: list[dict[str, int]] = []
    for small in ((), divisors, symbols):
        made = _assignments(symbols, small)
        if all(len({symbolic.evaluate(dim, env) for env in made}) > 1 for dim in asked):
            return made
    return _assignments(symbols, ())


def _assignments(symbols: Mapping[str, symbolic.Symbol], small: Collection[str]) -> list[dict[str, int]]:
    names = sorted(symbols)

    def value(name: str, probe: int, times: int) -> int:
        low, high = max(symbols[name].lo, 2), symbols[name].hi
        step = probe % NEAR if name in small else probe * times
        return low + step if high is None else low + step % max(high - low + 1, 1)

    base = {name: value(name, PROBES[0], i) for i, name in enumerate(names, 1)}
    moved = [{**base, name: value(name, PROBES[1], i)} for i, name in enumerate(names, 1)]
    return [base, *moved, {name: value(name, PROBES[2], i + 1) for i, name in enumerate(names, 1)}]


def _candidates(operands: Sequence[Operand], attributes: Mapping[str, Attribute]) -> list[Dim]:
    sizes: list[Dim] = list(dict.fromkeys(_dims(operands, attributes)))
    for value in flatten_operands(operands):
        if isinstance(value.type, TensorType):
            sizes += [size for size in value.type.shape if size not in sizes]
            sizes.append(value.type.numel)
    return pool(sizes)


def pool(sizes: Iterable[Dim]) -> list[Dim]:
    """Dims to try first when sizes are fitted: the given ones, their sums and products."""
    given = list(sizes)
    pairs = itertools.combinations_with_replacement(given[:16], 2)
    return [*given, *itertools.chain.from_iterable((a * b, a + b) for a, b in pairs)]


def fit(
    what: str, sizes: list[Any], pool: Sequence[Dim], symbols: Mapping[str, symbolic.Symbol],
    environments: Sequence[Mapping[str, int]],
) -> Dim:
    """The Dim that has size `sizes[i]` under `environments[i]`, for the values that `environments()` gives."""
    if len(set(sizes)) == 1:
        if any(all(symbolic.evaluate(candidate, env) == sizes[0] for env in environments)
               for candidate in pool if isinstance(candidate, Expr)):
            raise UnsupportedError(f"the symbolic sizes of {what} cannot be told from numbers",
                                   why="one of them is the same number for all examples")
        return sizes[0]
    linear: Dim = sizes[0]
    base = environments[0]
    for name, size, env in zip(sorted(symbols), sizes[1:], environments[1:]):
        step = env[name] - base[name]
        slope = (size - sizes[0]) // step if step else 0
        linear = linear + slope * (symbols[name] - base[name])
    for candidate in (*pool, linear):
        if all(symbolic.evaluate(candidate, env) == size for env, size in zip(environments, sizes)):
            return candidate
    raise UnsupportedError(f"no rule for the symbolic sizes of {what}",
                           why="its sizes for several examples fit no formula")
