"""The reference: run a graph node by node in torch.

`evaluate` is the oracle of every pass and of the compiled code. It frees a value after its last
use, so its memory is comparable with eager's. Views are taken without regard to strides, as the
IR means them. Outputs come back in memory of their own, laid out as their type says.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import torch

from monograph import compat
from monograph.errors import VerificationError
from monograph.ir import symbolic
from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.op import Trait
from monograph.ir.symbolic import Expr, Sum, Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.ops import own, table

__all__ = ["bind_symbols", "evaluate", "lay_out", "node", "run_node", "run_nodes", "special"]

Number: TypeAlias = int | float | bool | complex
Result: TypeAlias = "torch.Tensor | Number | None"
Symbols: TypeAlias = MutableMapping[str, Any]


def _reshape(x: torch.Tensor, size: Sequence[int], *_: Any) -> torch.Tensor:
    return x.reshape(size)


# Views that torch refuses on some strides: the IR has none.
STRIDE_FREE: dict[str, Callable[..., Any]] = {
    "aten.view.default": _reshape,
    "aten._unsafe_view.default": _reshape,
    "aten._reshape_alias.default": _reshape,
    "aten.view.dtype": lambda x, dtype: x.contiguous().view(dtype),
    "aten.view_as_real.default": lambda x: torch.view_as_real(x.contiguous()),
    "aten.view_as_complex.default": lambda x: torch.view_as_complex(x.contiguous()),
}


def evaluate(graph: Graph, inputs: Sequence[Result], *, grad: bool = False, check: bool = False) -> list[Any]:
    """The outputs of `graph`: tensors, and numbers where an output is a scalar.

    `inputs` are the values of the graph's inputs in order; those of source `derived` may be left out,
    they are then computed by the prologue. With `grad` autograd records, and outputs keep the memory
    they were computed in. With `check` every result is compared with its type (VerificationError).
    """
    symbols: dict[str, Any] = {}
    values: dict[Value, Any] = {}
    # The graph says all there is to do: no autocast, no default device, no mode around it.
    if grad:
        with torch.autocast("cpu", enabled=False):
            return _block(graph, inputs, values, symbols, check)
    with compat.no_torch_function(), compat.kernels_only():
        outputs = _block(graph, inputs, values, symbols, check)
        taken = {_storage(x) for x in values.values() if isinstance(x, torch.Tensor)}
        return [lay_out(x, value, symbols, taken) for x, value in zip(outputs, graph.outputs, strict=True)]


def _block(
    graph: Graph, inputs: Sequence[Result], values: dict[Value, Any], symbols: dict[str, Any], check: bool
) -> list[Any]:
    for value, given in zip(graph.inputs, _all_inputs(graph, inputs, check), strict=True):
        values[value] = given
        bind_symbols(value, given, symbols)
    return _Run(symbols, check).block(graph, values)


def run_node(node: Node, operands: Sequence[Any], symbols: Mapping[str, Any] | None = None) -> tuple[Result, ...]:
    """The results of one node without regions, given the values of its operand slots."""
    symbols = symbols or {}
    # A value has no memory: what draws in memory order draws as for one that lies row by row.
    if node.op.name in compat.DENSE_ONLY or node.op.has(Trait.RANDOM):
        operands = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in operands]
    args, kwargs = table.unbind(node.op, _numbers(tuple(operands), symbols), _numbers(node.attributes, symbols))
    result = _function(node.op.name)(*args, **kwargs)
    return tuple(_flat(result)) if node.results else ()


node = run_node


def run_alone(node: Node, operands: Sequence[Any]) -> tuple[Result, ...]:
    """`run_node` with none of the modes around that the process may be in."""
    with compat.no_torch_function(), compat.kernels_only():
        return run_node(node, operands)


def run_nodes(nodes: Iterable[Node], values: dict[Value, Any], symbols: Symbols) -> None:
    """Run nodes in order, regions too; `values` and `symbols` hold what is known before and grow by what is found."""
    run = _Run(symbols, check=False)
    for node in nodes:
        run.store(node, run.run(node, values), values)


def special(name: str) -> Callable[[Sequence[Any], Mapping[str, Any]], Any] | None:
    """function(operands, attributes) for an op that the torch overload of its name will not do for; else None.

    These are our own ops, and views of values whose strides torch refuses.
    """
    if name not in STRIDE_FREE and name not in own.TABLE:
        return None
    function, op = _function(name), table.lookup(name)

    def call(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        args, kwargs = table.unbind(op, operands, attributes)
        return function(*args, **kwargs)

    return call


def _function(name: str) -> Callable[..., Any]:
    if name in STRIDE_FREE:
        return STRIDE_FREE[name]
    if name in own.TABLE:
        call = own.TABLE[name].call
        assert call is not None, name
        return call
    return table.overload(name)


def _flat(result: Any) -> Iterable[Result]:
    if isinstance(result, (tuple, list)):
        for entry in result:
            yield from _flat(entry)
    else:
        yield result


def _numbers(value: Any, symbols: Mapping[str, Any]) -> Any:
    """`value` with every Expr replaced by its number."""
    if isinstance(value, Symbol):
        return symbols[value.name]
    if isinstance(value, Expr):
        return symbolic.evaluate(value, symbols)
    if isinstance(value, tuple):
        return tuple(_numbers(entry, symbols) for entry in value)
    if isinstance(value, dict):
        return {name: _numbers(entry, symbols) for name, entry in value.items()}
    return value


def _all_inputs(graph: Graph, inputs: Sequence[Result], check: bool) -> Sequence[Result]:
    if len(inputs) == len(graph.inputs) or graph.prologue is None:
        return inputs
    given = iter(inputs)
    known = {
        (source.kind, source.path): next(given) for source in graph.sources if source.kind != "derived"
    }
    prologue = graph.prologue
    derived = evaluate(prologue, [known[source.kind, source.path] for source in prologue.sources], check=check)
    return [
        derived[int(source.path)] if source.kind == "derived" else known[source.kind, source.path]
        for source in graph.sources
    ]


def bind_symbols(value: Value, given: Result, symbols: Symbols) -> None:
    """Learn the symbols of a value's type from the actual value."""
    type = value.type
    if isinstance(type, ScalarType):
        if type.symbol is not None:
            symbols[type.symbol] = given
        return
    if not isinstance(given, torch.Tensor):
        return
    actual = [*given.shape, *(given.stride() if type.strides is not None else ())]
    for at, (dim, size) in enumerate(zip([*type.shape, *(type.strides or ())], actual)):
        if isinstance(dim, Symbol):
            if at < type.rank:
                symbols[dim.name] = size
            else:            # strides of a result are as they shall be, which the value at hand need not have
                symbols.setdefault(dim.name, size)
        elif isinstance(dim, Sum) and len(dim.terms) == 1:      # k * s + c
            (monomial, coefficient), = dim.terms
            if len(monomial) == 1 and isinstance(monomial[0], Symbol):
                symbols.setdefault(monomial[0].name, (size - dim.constant) // coefficient)


def _storage(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


def lay_out(x: Any, value: Value, symbols: Mapping[str, Any], taken: set[int]) -> Any:
    """`x` as an output: at the start of memory that no one in `taken` has, strided as the type says."""
    if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
        return x
    strides = value.tensor.strides
    wanted = x.stride() if strides is None else tuple(_numbers(strides, symbols))
    if x.stride() != wanted or x.storage_offset() or _storage(x) in taken or x.is_conj() or x.is_neg():
        if strides is None:     # torch's own choice, which spreads out expanded views
            laid = torch.empty_like(x)
        else:
            laid = torch.empty_strided(x.shape, wanted, dtype=x.dtype, device=x.device)
        x = laid.copy_(x)
    taken.add(_storage(x))
    return x


class _Run:
    """Runs blocks; symbols are shared by nested regions, values are looked up outwards."""

    def __init__(self, symbols: Symbols, check: bool) -> None:
        self.symbols = symbols
        self.check = check

    def block(self, graph: Graph, values: dict[Value, Any], outer: Mapping[Value, Any] | None = None) -> list[Any]:
        """Outputs of `graph`, whose inputs are in `values`."""
        local = dict(values)
        scope: Mapping[Value, Any] = local if outer is None else ChainMap(local, outer)  # type: ignore[arg-type]
        dies = _last_uses(graph)
        for position, node in enumerate(graph.nodes):
            self.store(node, self.run(node, scope), local)
            for value in dies.get(position, ()):
                local.pop(value, None)
        return [scope[value] for value in graph.outputs]

    def store(self, node: Node, results: tuple[Any, ...], local: dict[Value, Any]) -> None:
        for value, result in zip(node.results, results, strict=True):
            local[value] = result
            bind_symbols(value, result, self.symbols)
            if self.check:
                self.compare(node, value, result)

    def run(self, node: Node, scope: Mapping[Value, Any]) -> tuple[Any, ...]:
        operands = [_read(operand, scope) for operand in node.operands]
        if node.regions:
            return REGIONS[node.op.name](self, node, operands, scope)
        return run_node(node, operands, self.symbols)

    def region(self, graph: Graph, arguments: Sequence[Any], outer: Mapping[Value, Any]) -> list[Any]:
        values = dict(zip(graph.inputs, arguments, strict=True))
        for value, given in values.items():
            bind_symbols(value, given, self.symbols)
        return self.block(graph, values, outer)

    def compare(self, node: Node, value: Value, result: Any) -> None:
        type = value.type
        if isinstance(type, TensorType) and isinstance(result, torch.Tensor):
            shape = _numbers(type.shape, self.symbols)
            if (type.dtype, shape) == (result.dtype, tuple(result.shape)):
                return
            got = f"{result.dtype}{list(result.shape)}"
        else:
            number = isinstance(type, ScalarType) and isinstance(result, (int, float, bool))
            masked = isinstance(type, TensorType) and type.shape == (0,) and result is None      # an output mask is off
            if number or masked:
                return
            got = str(result)
        raise VerificationError(f"{node.op.name} gave {got}, its type says {type}", loc=node.loc)


def _read(operand: Operand, scope: Mapping[Value, Any]) -> Any:
    if isinstance(operand, Value):
        return scope[operand]
    if isinstance(operand, tuple):
        return tuple(_read(entry, scope) for entry in operand)
    return operand


def _last_uses(graph: Graph) -> dict[int, list[Value]]:
    """Position of a node -> values that nobody reads after it."""
    seen: set[Value] = set(graph.outputs)
    dies: dict[int, list[Value]] = {}
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        used = [*node.inputs, *(value for region in node.regions for value in region.free_values())]
        dead = [value for value in dict.fromkeys([*used, *node.results]) if value not in seen]
        seen.update(dead)
        if dead:
            dies[position] = dead
    return dies


def _cond(run: _Run, node: Node, operands: Sequence[Any], scope: Mapping[Value, Any]) -> tuple[Any, ...]:
    then, otherwise = node.regions
    return tuple(run.region(then if bool(operands[0]) else otherwise, (), scope))


def _while(run: _Run, node: Node, operands: Sequence[Any], scope: Mapping[Value, Any]) -> tuple[Any, ...]:
    condition, body = node.regions
    history: Sequence[int] = node.attributes["history"]
    kept: list[list[torch.Tensor]] = [[] for _ in history]
    first = carried = operands[0]
    trips = 0
    while bool(run.region(condition, carried, scope)[0]):
        for stack, position in zip(kept, history):
            stack.append(carried[position])
        carried = run.region(body, carried, scope)
        trips += 1
    if node.attributes["trips"] is None:
        return tuple(carried)
    stacks = [torch.stack(stack) if stack else first[position].new_empty((0, *first[position].shape))
              for stack, position in zip(kept, history)]
    return (*carried, trips, *stacks)


def _custom_vjp(run: _Run, node: Node, operands: Sequence[Any], scope: Mapping[Value, Any]) -> tuple[Any, ...]:
    return tuple(operands[0])


REGIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "mono.cond": _cond, "mono.while": _while, "mono.custom_vjp": _custom_vjp}
