"""The graph IR.

    Graph  ::= (inputs: Value*) Node* -> (outputs: Value*)          one block, SSA, topologically ordered
    Node   ::= results = op(operands; attributes) {Region*} @loc
    Region ::= Graph                                                a nested graph; sees outer values
    Operand::= Value | number | Dim | None | (Operand*)             a list for `Tensor[]` parameters
    Source ::= kind path                                            where an input comes from

The IR is purely functional: no node writes to an operand. Aliasing and mutation at the boundary
are told by `ir.boundary`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from monograph.ir.op import Effect, Op
from monograph.ir.symbolic import Expr, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.source import SourceLoc

__all__ = [
    "Attribute", "Graph", "Node", "Operand", "Source", "Value", "flatten_operands", "map_operand", "scalar_symbol",
]

Attribute: TypeAlias = Any     # int float bool str None complex dtype device layout memory_format Expr, tuples of these
Operand: TypeAlias = "Value | int | float | bool | complex | Expr | None | tuple[Any, ...]"


class Value:
    """One SSA value: a graph input (`node is None`) or a result of a node."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(self, type: Type, *, name: str = "", node: Node | None = None, index: int = 0) -> None:
        self.type = type
        self.name = name       # a hint for the printer; need not be unique
        self.node = node
        self.index = index     # position among the results of `node`, or among the graph's inputs

    @property
    def tensor(self) -> TensorType:
        """The type, where the value is known to be a tensor."""
        assert isinstance(self.type, TensorType), self
        return self.type

    def __repr__(self) -> str:
        return f"<Value {self.name or self.index}: {self.type}>"


def map_operand(operand: Operand, fn: Any) -> Operand:
    """`fn` applied to every Value inside one operand slot; numbers and None pass through."""
    if isinstance(operand, Value):
        return fn(operand)
    if isinstance(operand, tuple):
        return tuple(map_operand(entry, fn) for entry in operand)
    return operand


def flatten_operands(operands: Iterable[Operand]) -> Iterator[Value]:
    """Every Value in a list of operand slots, in order."""
    for operand in operands:
        if isinstance(operand, Value):
            yield operand
        elif isinstance(operand, tuple):
            yield from flatten_operands(operand)


class Node:
    """results = op(operands; attributes) {regions} @loc

    `operands` has one slot per operand parameter of the op; `attributes` has every attribute
    parameter of the op, defaults filled in.
    """

    __slots__ = ("attributes", "loc", "op", "operands", "regions", "results")

    def __init__(
        self,
        op: Op,
        operands: Iterable[Operand],
        attributes: Mapping[str, Attribute],
        result_types: Iterable[Type],
        *,
        regions: Iterable[Graph] = (),
        loc: SourceLoc | None = None,
    ) -> None:
        self.op = op
        self.operands: tuple[Operand, ...] = tuple(operands)
        self.attributes: dict[str, Attribute] = dict(attributes)
        self.regions: tuple[Graph, ...] = tuple(regions)
        self.loc = loc
        self.results: tuple[Value, ...] = tuple(
            Value(type, node=self, index=i) for i, type in enumerate(result_types)
        )

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The operand values, flattened, repeats kept; values captured by regions not included."""
        return tuple(flatten_operands(self.operands))

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, self.op
        return self.results[0]

    @property
    def effects(self) -> frozenset[Effect]:
        """What running the node does besides computing, its regions included."""
        return self.op.effects.union(*(node.effects for region in self.regions for node in region.nodes))

    @property
    def is_pure(self) -> bool:
        """No effect and no draw, in regions neither: may be removed when unused, merged with an equal node, moved."""
        return self.op.is_pure and all(node.is_pure for region in self.regions for node in region.nodes)

    @property
    def reads(self) -> list[Value]:
        """Every value the node uses, those its regions see around them included; each once, operands first."""
        captured = (value for region in self.regions for value in region.free_values())
        return list(dict.fromkeys(itertools.chain(flatten_operands(self.operands), captured)))

    def operand(self, name: str) -> Operand:
        """The operand slot of the parameter called `name`."""
        for parameter, operand in zip(self.op.operand_parameters, self.operands, strict=True):
            if parameter.name == name:
                return operand
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<Node {self.op.name} @ {self.loc.short if self.loc else '?'}>"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a graph input comes from.

    kind      argument   the caller's tensor; path is a pytree path such as `args[0]` or `kwargs['mask']`
              parameter, buffer   read through the module; path is its state-dict-like path
              constant   a tensor found while tracing (closure, global, torch.tensor literal)
              derived    result `path` (a number) of the graph's `prologue`
              saved      a value the forward program kept for the backward one
              tangent    gradient of an output
    """

    kind: str
    path: str

    @property
    def is_weight(self) -> bool:
        """Changes rarely: worth deriving folded or packed copies of."""
        return self.kind in ("parameter", "buffer", "constant", "derived")

    def __str__(self) -> str:
        return f"{self.kind} {self.path}" if self.path else self.kind


@dataclass
class Graph:
    """A block of nodes. `sources[i]` tells where `inputs[i]` comes from (top-level graphs only).

    `prologue` computes the inputs whose source is `derived` from weights alone; it runs again
    only when one of those weights changed.
    """

    name: str = "graph"
    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    prologue: Graph | None = None

    def add_input(self, type: Type, name: str = "", source: Source | None = None) -> Value:
        value = Value(type, name=name, index=len(self.inputs))
        self.inputs.append(value)
        self.sources.append(source or Source("argument", name))
        return value

    def append(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    def users(self) -> dict[Value, list[Node]]:
        """Every value used by a node of this graph (or of a nested region), with those nodes."""
        table: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                table.setdefault(value, []).append(node)
            for region in node.regions:
                for value in region.free_values():
                    table.setdefault(value, []).append(node)
        return table

    def free_values(self) -> KeysView[Value]:
        """Values used here or in nested regions but defined outside, as a set in order of first use."""
        defined: set[Value] = set(self.inputs)
        free: dict[Value, None] = {}
        for node in self.nodes:
            free.update((v, None) for v in node.inputs if v not in defined)
            for region in node.regions:
                free.update((v, None) for v in region.free_values() if v not in defined)
            defined.update(node.results)
        free.update((v, None) for v in self.outputs if v not in defined)
        return free.keys()

    def walk(self) -> Iterator[Node]:
        """Every node, those of nested regions included, in program order."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def replace(self, mapping: Mapping[Value, Value]) -> None:
        """Use `mapping[v]` wherever `v` was used, here and in nested regions. Chains are followed."""
        if not mapping:
            return

        def final(value: Value) -> Value:
            while value in mapping:
                value = mapping[value]
            return value

        for node in self.nodes:
            node.operands = tuple(map_operand(operand, final) for operand in node.operands)
            for region in node.regions:
                region.replace(mapping)
        self.outputs = [final(value) for value in self.outputs]


def scalar_symbol(value: Value) -> str | None:
    """The symbol a scalar value binds, if any."""
    return value.type.symbol if isinstance(value.type, ScalarType) else None

