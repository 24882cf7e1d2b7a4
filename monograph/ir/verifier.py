"""Does a graph keep its grammar?

Checked: every value is defined once and before its use (regions see outer values, nothing sees into a
region); operand slots fit the op's parameters, attributes are complete; what enters and leaves a region fits
its inputs and the results of its node; every symbol in a type, operand or attribute is declared and bound by an input
or an earlier result; sources stand parallel to inputs; derived inputs and the prologue agree; with
`infer`, result types are those the op gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from monograph.errors import VerificationError
from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.op import Op, Parameter, ParameterKind
from monograph.ir.printer import print_nodes
from monograph.ir.symbolic import Expr, Symbol, free_symbols
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.source import SourceLoc

__all__ = ["verify"]

Infer = Callable[[Op, Sequence[Operand], Mapping[str, Any], Sequence[Graph]], Sequence[Type]]
AROUND = 3      # nodes printed on each side of a fault


def verify(graph: Graph, infer: Infer | None = None) -> None:
    """Raise VerificationError, with the nodes around the fault, unless `graph` keeps its grammar."""
    if graph.prologue is not None:
        _verify_prologue(graph, graph.prologue, infer)
    elif any(source.kind == "derived" for source in graph.sources):
        raise VerificationError("a derived input needs a prologue")
    _check_sources(graph)
    _Verifier(graph, infer).run()


def _check_sources(graph: Graph) -> None:
    if len(graph.sources) != len(graph.inputs):
        raise VerificationError(f"{len(graph.inputs)} inputs but {len(graph.sources)} sources")
    for position, value in enumerate(graph.inputs):
        if value.index != position or value.node is not None:
            raise VerificationError(f"input {position} ({value.name}) says it is number {value.index} of {value.node}")
    for name, symbol in graph.symbols.items():
        if symbol.name != name:
            raise VerificationError(f"symbol {symbol.name} is filed under {name}")


def _verify_prologue(graph: Graph, prologue: Graph, infer: Infer | None) -> None:
    derived = [(v, s) for v, s in zip(graph.inputs, graph.sources) if s.kind == "derived"]
    numbers = sorted(int(source.path) for _, source in derived)
    if numbers != list(range(len(prologue.outputs))):
        raise VerificationError(f"derived inputs {numbers} do not cover the prologue's {len(prologue.outputs)} outputs")
    for value, source in derived:
        made = prologue.outputs[int(source.path)]
        if not _same(value.type, made.type):
            raise VerificationError(f"derived input %{value.name}: {value.type}, the prologue makes {made.type}")
    known = set(graph.sources)
    for source in prologue.sources:
        if not source.is_weight or source not in known:
            raise VerificationError(f"the prologue reads {source}, which is no weight among the graph's inputs")
    verify(prologue, infer)


def _same(a: Type, b: Type) -> bool:
    """Equal but for strides, which a boundary may fix."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device)
    return isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.kind == b.kind


class _Verifier:
    def __init__(self, graph: Graph, infer: Infer | None) -> None:
        self.graph = graph
        self.infer = infer
        self.defined: set[Value] = set()      # ever, so that nothing is defined twice
        self.bound: set[str] = set()
        self.forward: set[str] = set()        # bound by tangents, whose sizes are told by what they are gradients of

    def run(self) -> None:
        for value in self.graph.inputs:
            self.define(self.graph, None, value)
        tangent = {value for value, source in zip(self.graph.inputs, self.graph.sources) if source.kind == "tangent"}
        for value in self.graph.inputs:
            if value not in tangent:
                self.bind(value.type)
        given = set(self.bound)
        for value in tangent:
            self.bind(value.type)
        self.forward = self.bound - given
        for value in self.graph.inputs:
            self.symbols(self.graph, None, _symbols_of_type(value.type))
        self.block(self.graph, set(self.graph.inputs))

    def fail(self, graph: Graph, node: Node | None, what: str) -> NoReturn:
        position = next((i for i, other in enumerate(graph.nodes) if other is node), len(graph.nodes))
        around = graph.nodes[max(position - AROUND, 0):position + AROUND + 1]
        marked = print_nodes(self.graph, around).splitlines()
        shown = "\n".join(f"  {line}" for line in marked)
        loc: SourceLoc | None = node.loc if node is not None else None
        where = f"{node.op.name}: " if node is not None else f"graph {graph.name}: "
        raise VerificationError(f"{where}{what}\n{shown}", loc=loc)

    def block(self, graph: Graph, visible: set[Value]) -> None:
        """Check the nodes of a graph or region; `visible` grows by its results."""
        for node in graph.nodes:
            for value in node.inputs:
                if value not in visible:
                    self.fail(graph, node, f"uses %{value.name or value.index}, which is not defined before it")
            self.slots(graph, node)
            self.symbols(graph, node, _symbols_of([*node.operands, *node.attributes.values()]))
            self.regions(graph, node, visible)
            for position, value in enumerate(node.results):
                if value.node is not node or value.index != position:
                    self.fail(graph, node, f"result {position} does not point back at its node")
                self.define(graph, node, value)
                self.bind(value.type)
                self.symbols(graph, node, _symbols_of_type(value.type))
            visible.update(node.results)
            self.types(graph, node)
        for value in graph.outputs:
            if value not in visible:
                self.fail(graph, None, f"returns %{value.name or value.index}, which is not defined in it")

    def define(self, graph: Graph, node: Node | None, value: Value) -> None:
        if value in self.defined:
            self.fail(graph, node, f"defines %{value.name or value.index} a second time")
        self.defined.add(value)

    def slots(self, graph: Graph, node: Node) -> None:
        parameters = node.op.operand_parameters
        if len(parameters) != len(node.operands):
            self.fail(graph, node, f"{len(node.operands)} operands for {len(parameters)} parameters")
        for parameter, operand in zip(parameters, node.operands):
            if not _fits(parameter, operand):
                self.fail(graph, node, f"operand {parameter.name} cannot be {operand!r}")
        wanted = {parameter.name for parameter in node.op.attribute_parameters}
        if wanted != set(node.attributes):
            missing, extra = sorted(wanted - set(node.attributes)), sorted(set(node.attributes) - wanted)
            self.fail(graph, node, f"attributes missing {missing}, unknown {extra}")
        for name, attribute in node.attributes.items():
            if not _is_attribute(attribute):
                self.fail(graph, node, f"attribute {name} cannot be {attribute!r}")

    def regions(self, graph: Graph, node: Node, visible: set[Value]) -> None:
        if len(node.regions) != len(node.op.regions):
            self.fail(graph, node, f"{len(node.regions)} regions, takes {node.op.regions}")
        loops = "body" in node.op.regions
        carried = list(node.inputs) if loops else []
        outer = set(self.bound)
        for role, region in zip(node.op.regions, node.regions):
            if len(region.inputs) != len(carried):
                self.fail(graph, node, f"region {role} takes {len(region.inputs)} values, is given {len(carried)}")
            for given, taken in zip(carried, region.inputs):
                if not _may_become(given.type, taken.type, outer - self.forward):
                    self.fail(graph, node, f"region {role} takes {taken.type}, is given {given.type}")
                self.define(region, None, taken)
                self.bind(taken.type)
                self.symbols(graph, node, _symbols_of_type(taken.type))
            self.block(region, visible | set(region.inputs))
            self.bound = set(outer)
            self.returns(graph, node, role, region)

    def returns(self, graph: Graph, node: Node, role: str, region: Graph) -> None:
        """What region `role` gives: one truth value, the next carried values, or the results of the node."""
        types = [value.type for value in region.outputs]
        if role == "condition":
            if len(types) != 1 or not _is_single(types[0]):
                self.fail(graph, node, f"region {role} returns {', '.join(map(str, types))}, not one truth value")
            return
        wanted = [value.type for value in (region.inputs if role == "body" else node.results)]
        if len(types) != len(wanted):
            self.fail(graph, node, f"region {role} returns {len(types)} values instead of {len(wanted)}")
        for type, want in zip(types, wanted):
            if not _may_become(type, want, self.bound - self.forward):
                self.fail(graph, node, f"region {role} returns {type}, which cannot become {want}")
        if role == "body" and len(node.results) < len(wanted):
            self.fail(graph, node, f"has {len(node.results)} results for {len(wanted)} carried values")

    def types(self, graph: Graph, node: Node) -> None:
        if self.infer is None:
            return
        inferred = self.infer(node.op, node.operands, node.attributes, node.regions)
        if len(inferred) != len(node.results):
            self.fail(graph, node, f"has {len(node.results)} results, gives {len(inferred)}")
        for value, type in zip(node.results, inferred):
            if not (_may_become(type, value.type) if node.regions else _same(value.type, type)):
                self.fail(graph, node, f"%{value.name or value.index}: {value.type}, the op gives {type}")

    def bind(self, type: Type) -> None:
        """A symbol standing alone in the type of an input or result is bound by it."""
        if isinstance(type, TensorType):
            sizes = [*type.shape, *(type.strides or ())]
            self.bound.update(dim.name for dim in sizes if isinstance(dim, Symbol))
            for dim in sizes:       # k * s + c tells s
                if isinstance(dim, Expr) and len(free_symbols(dim)) == 1:
                    self.bound |= free_symbols(dim)
        elif type.symbol is not None:
            self.bound.add(type.symbol)

    def symbols(self, graph: Graph, node: Node | None, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.bound:
                self.fail(graph, node, f"symbol {name} is used before a value binds it")
            if name not in self.graph.symbols:
                self.fail(graph, node, f"symbol {name} is not declared")


def _may_become(given: Type, taken: Type, bound: Collection[str] = ()) -> bool:
    """A value entering or leaving a region may take a looser type: a symbol in place of a size, which it then binds.

    Symbols that others have `bound` say what a size is.
    """
    if isinstance(given, TensorType) and isinstance(taken, TensorType):
        same = (given.dtype, given.rank, given.device) == (taken.dtype, taken.rank, taken.device)
        loose = [b for a, b in zip(given.shape, taken.shape) if a != b]
        return same and all(isinstance(dim, Symbol) and dim.name not in bound for dim in loose)
    return isinstance(given, ScalarType) and isinstance(taken, ScalarType) and given.kind == taken.kind


def _is_single(type: Type) -> bool:
    return not isinstance(type, TensorType) or type.numel == 1 or not type.is_static


def _fits(parameter: Parameter, operand: Operand) -> bool:
    if operand is None:
        return parameter.kind is not ParameterKind.TENSOR
    if isinstance(operand, tuple):
        return parameter.kind is ParameterKind.TENSORS and all(
            entry is None or isinstance(entry, (Value, int, float, complex, Expr)) for entry in operand
        )
    return parameter.kind is not ParameterKind.TENSORS and isinstance(operand, (Value, int, float, complex, Expr))


def _is_attribute(attribute: Any) -> bool:
    if isinstance(attribute, tuple):
        return all(_is_attribute(entry) for entry in attribute)
    return not isinstance(attribute, (Value, list, dict, set, Node, Graph))


def _symbols_of(entries: Iterable[Any]) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, Expr):
            found |= free_symbols(entry)
        elif isinstance(entry, tuple):
            found |= _symbols_of(entry)
    return found


def _symbols_of_type(type: Type) -> set[str]:
    if isinstance(type, TensorType):
        return _symbols_of(type.shape) | _symbols_of(type.strides or ())
    return {type.symbol} if type.symbol is not None else set()
