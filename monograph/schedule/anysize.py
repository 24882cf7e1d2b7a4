"""Work over tensors of any size, by kernels that take the sizes when they run.

`extract` takes maximal sets of nodes that touch tensors with symbolic sizes out of a graph and puts a node in their
place, as `schedule.rowwise` does for rows:

    results = any_size(given*; examples, symbols) {region}

Branches and loops are such nodes where all that is in them is. In the region every size is an `ir.sized.Sized` number,
so that it is scheduled and lowered like a static graph: one arena, views as strides, fusion, templates, packed weights.
`symbols` are those that the nodes name, which the region no longer shows; `examples` are the values that estimates are
made with; no decision that could be wrong for other sizes is taken by them (`sized.Undecided` instead). What a kernel
is not made for stays outside: `refused` has what `kind` says of such nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from monograph.errors import CompileError
from monograph.ir import edit, sized, symbolic
from monograph.ir.graph import Graph, Node, Value
from monograph.ir.op import Effect, Op, Parameter, ParameterKind, Trait
from monograph.ir.symbolic import Expr, Symbol
from monograph.ir.types import TensorType, Type
from monograph.ops import families, templates
from monograph.schedule import roles, sets
from monograph.schedule.kernel import is_held
from monograph.schedule.roles import Role

__all__ = ["ANY_SIZE", "Kind", "OneSize", "extract", "is_any_size", "kind"]

ANY_SIZE = Op(
    "mono.any_size",
    (Parameter("given", ParameterKind.TENSORS), Parameter("examples", ParameterKind.ATTRIBUTE),
     Parameter("symbols", ParameterKind.ATTRIBUTE)),
)
FEWEST = 1              # working nodes
NEEDS_ELEMENTS = frozenset(f"aten.{name}" for name in (
    "amax.default", "amin.default", "argmax.default", "argmin.default", "max.default", "max.dim", "min.default",
    "min.dim"))
EXAMPLES = (61, 67, 71, 73, 79, 83, 89, 97)     # of sizes, in the order of the symbols
Kind = tuple[str, str]


class OneSize(CompileError):
    """A kernel for nodes of these kinds would only do for some sizes."""

    def __init__(self, message: str, nodes: Iterable[Node]) -> None:
        super().__init__(message)
        self.kinds = frozenset(kind(node) for node in nodes if roles.role(node) not in (Role.VIEW, Role.CONSTANT))


def is_any_size(node: Node) -> bool:
    return node.op is ANY_SIZE


def kind(node: Node) -> Kind:
    """What a kernel for `node` depends on, roughly; the same before and after its symbols became numbers."""
    shapes = [type.shape if isinstance(type, TensorType) else () for type in (v.type for v in node.results)]
    return node.op.name, str([[str(sized.expression(dim)) for dim in shape] for shape in shapes])   # type: ignore[arg-type]


def extract(graph: Graph, refused: Collection[Kind] = ()) -> bool:
    """Put nodes for any size into `graph`, a copy of the user's, and into the branches and loops that stay in it."""
    return _extract(graph, refused, _told(graph.inputs), _examples(graph))


def _extract(graph: Graph, refused: Collection[Kind], known: set[str], examples: dict[str, int]) -> bool:
    """`known`: symbols told before."""
    outside: set[Node] = set()
    while True:
        choice = _Choice(graph, examples, known, outside, frozenset(refused))
        found = [nodes for nodes in sets.sets(graph, choice.accepts, known) if _is_worthwhile(nodes, known)]
        regions = [_Region(nodes, examples) for nodes in found]
        library = {node for region in regions for node in region.without_kernel()}
        if not library:
            break
        outside |= library
    taken: dict[Value, Value] = {}
    for region in regions:
        region.follow(taken)
        taken.update(region.replace(graph, known))
    found = bool(regions)
    told = set(known)
    for node in graph.nodes:
        for region in node.regions if _is_control(node) and not is_any_size(node) else ():
            found |= _extract(region, refused, told | _told(region.inputs), examples)
        told |= _told(list(node.results))
    return found


def _told(values: list[Value]) -> set[str]:
    return set().union(*(edit.symbols_told(value.type) for value in values))


def _examples(graph: Graph) -> dict[str, int]:
    names = sorted({name for node in graph.nodes for name in edit.symbols_read(node)}
                   | {name for value in graph.inputs for name in edit.symbols_in(value.type)})
    return {name: EXAMPLES[at % len(EXAMPLES)] for at, name in enumerate(names)}


def _is_worthwhile(nodes: list[Node], known: set[str]) -> bool:
    """Is there work in it, or a size that torch would have to be called for in the middle of the program?"""
    if any(edit.symbols_read(node) - known for node in nodes):
        return True
    inner = [inside for node in nodes for region in node.regions for inside in region.walk()]
    return sum(not node.op.has(Trait.VIEW) and not node.op.has(Trait.FACTORY) for node in (*nodes, *inner)) >= FEWEST


@dataclass
class _Choice:
    """Which nodes may be computed by kernels for any size; asked in the order of the graph."""

    graph: Graph
    examples: dict[str, int]
    known: set[str]             # symbols told by inputs
    outside: set[Node]
    refused: frozenset[Kind]

    def __post_init__(self) -> None:
        self.told = set(self.known)         # and by nodes that stay outside
        self.made: set[Value] = set()       # by nodes that do not

    def accepts(self, node: Node) -> bool:
        taken = self._accepts(node)
        if taken:
            self.made.update(node.results)
        else:
            self.told |= _told(list(node.results))
        return taken

    def _accepts(self, node: Node) -> bool:
        if node in self.outside or not node.results or node.effects - {Effect.RAISES}:
            return False
        symbols = edit.symbols_read(node)
        touches = symbols or any(map(is_held, (*node.reads, *node.results))) or not self.made.isdisjoint(node.reads)
        return bool(touches) and symbols <= self.told and self._has_kernel(node)

    def _has_kernel(self, node: Node) -> bool:
        """Not yet whether lowering can do it: see `_Region.without_kernel`."""
        values = (*node.inputs, *node.results)
        if node.regions:
            return _is_control(node) and all(map(_is_plain, values)) and all(
                all(map(_is_plain, region.inputs)) and all(self._fits_inside(inner) for inner in region.nodes)
                for region in node.regions)
        if not all(map(_is_plain, values)) or kind(node) in self.refused or _may_fold_nothing(node):
            return False
        if node.op.has(Trait.RANDOM) and node.attributes.get("dropout_p") != 0.0:
            return False
        if node.op.name in templates.ANCHORS:
            return _is_template(node)
        return families.family_of(node.op.name) not in ("", "window") or families.is_ordered_scatter(node)


    def _fits_inside(self, node: Node) -> bool:
        """May it be in a branch or loop? What touches no symbolic size is scheduled there as anywhere."""
        is_static = not node.regions and not edit.symbols_read(node) and not any(
            map(is_held, (*node.inputs, *node.results)))
        return not node.op.has(Trait.RANDOM) if is_static else self._has_kernel(node)


def _is_control(node: Node) -> bool:
    """A branch, or a loop without a history."""
    return bool(node.op.regions) and node.attributes.get("trips") is None


def _is_plain(value: Value) -> bool:
    """A tensor that kernels compute with."""
    type = value.type
    return isinstance(type, TensorType) and type.device == "cpu" and type.dtype in families.DTYPES


def _may_fold_nothing(node: Node) -> bool:
    """Does it need an element of dims that may have none, and raise where there is none?"""
    if node.op.name not in NEEDS_ELEMENTS:
        return False
    shape = node.inputs[0].tensor.shape
    return not all(isinstance(shape[dim], int) or symbolic.known_le(1, shape[dim]) for dim in roles.reduced_dims(node))


def _is_template(node: Node) -> bool:
    """Templates for any size: products, and attention with static heads to keys that there are."""
    capability = templates.ANCHORS[node.op.name]
    if capability.template == "conv":
        return False
    operands = [node.operand(name) for name in capability.roles.values()]
    if capability.template == "attention":
        q, k, v = (operand.tensor for operand in operands[:3])     # type: ignore[union-attr]
        rest = (*q.shape[1:2], *q.shape[3:], *k.shape[1:2], *k.shape[3:], *v.shape[1:2], *v.shape[3:])
        return all(isinstance(dim, int) for dim in rest) and symbolic.known_le(1, k.shape[2])
    return True


def _is_native(node: Node) -> bool:
    """Of `Sized` numbers: can the runner run it, what is static in branches and loops aside?"""
    if node.regions:
        return all(_is_native(inner) or _is_static(inner) for region in node.regions for inner in region.nodes)
    return roles.role(node) is not Role.LIBRARY


def _is_static(node: Node) -> bool:
    shapes = [value.type.shape for value in (*node.inputs, *node.results) if isinstance(value.type, TensorType)]
    return not node.regions and not sized.is_sized([*node.operands, *node.attributes.values(), *shapes])


class _Region:
    """A set of nodes as a graph of `Sized` numbers."""

    def __init__(self, nodes: list[Node], examples: dict[str, int]) -> None:
        self.nodes, self.examples = nodes, examples
        inside = set(nodes)
        reads = dict.fromkeys(value for node in nodes for value in node.reads)
        self.given = [value for value in reads if value.node not in inside and is_held(value)]
        self.graph = Graph("any_size")
        self.mapping: dict[Value, Value] = {}
        self.copies: dict[Node, Node] = {}
        for value in self.given:
            self.mapping[value] = self.graph.add_input(self.type(value), value.name)
        for node in nodes:
            copied = edit.copy_node(node, self.mapping)
            self.sized(copied)
            self.copies[node] = copied
            self.graph.nodes.append(copied)

    def sized(self, node: Node) -> None:
        """Numbers in the place of symbols, in a copied node and in its regions."""
        node.operands = self.numbers(node.operands)
        node.attributes = {name: self.numbers(entry) for name, entry in node.attributes.items()}
        for value in node.results:
            value.type = self.type(value)
        for region in node.regions:
            for value in region.inputs:
                value.type = self.type(value)
            for inner in region.nodes:
                self.sized(inner)

    def numbers(self, entry: Any) -> Any:
        if isinstance(entry, Expr):
            return sized.sized(entry, self.examples)
        return tuple(map(self.numbers, entry)) if isinstance(entry, tuple) else entry

    def type(self, value: Value) -> Type:
        if not isinstance(value.type, TensorType):
            return value.type
        return replace(value.tensor, shape=self.numbers(value.tensor.shape), strides=None)

    def without_kernel(self) -> list[Node]:
        """Nodes that only torch can run."""
        return [node for node, copied in self.copies.items() if not _is_native(copied)]

    def follow(self, taken: dict[Value, Value]) -> None:
        """Read what regions in front of this one give."""
        self.given = [taken.get(value, value) for value in self.given]
        self.graph.replace(taken)

    def replace(self, graph: Graph, known: set[str]) -> dict[Value, Value]:
        """Put a node with this region in the place of the nodes in `graph`; their results -> its."""
        inside = set(self.nodes)
        seen = set(graph.outputs).union(*(node.reads for node in graph.nodes if node not in inside))
        results = [result for node in self.nodes for result in node.results if result in seen]
        self.graph.outputs = [self.mapping[value] for value in results]
        examples = tuple(sorted(self.examples.items()))
        symbols = tuple(map(Symbol, sorted(set().union(*map(edit.symbols_read, self.nodes)))))
        node = Node(ANY_SIZE, (tuple(self.given),), {"examples": examples, "symbols": symbols},
                    [value.type for value in results], regions=[self.graph], loc=self.nodes[0].loc)
        for old, new in zip(results, node.results, strict=True):
            new.name = old.name
        sets.insert(graph, node, self.nodes, known)
        given = dict(zip(results, node.results, strict=True))
        graph.replace(given)
        return given
