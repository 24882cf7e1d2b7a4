"""Work over a symbolic number of rows, done a few rows at a time.

A *row value* over symbol s has c*s entries along its first dim (c a number) and static other dims: in row-major order
row r is one piece of it. A node is *row-wise* when rows of its results depend on the same rows of its operands, and on
values that have no rows. `extract` takes maximal sets of such nodes out of a graph and puts a node in their place:

    results = rows(given*; size, chunks) {chunk*}      size: s; chunks: numbers of rows, falling, one region for each

A region takes the given row values, cut to its number of rows, and is static: it is scheduled like any other graph.
The last chunk is moved back so that it ends with the last row: some rows are computed twice, with equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Operand, Value
from monograph.ir.op import Effect, Op, Parameter, ParameterKind, Trait
from monograph.ir.symbolic import Dim, Sum, Symbol, product
from monograph.ir.types import TensorType
from monograph.ops import families, templates
from monograph.schedule import roles
from monograph.schedule.kernel import is_held

__all__ = ["ROWS", "extract", "is_rows"]

ROWS = Op(
    "mono.rows",
    (Parameter("given", ParameterKind.TENSORS), Parameter("size", ParameterKind.ATTRIBUTE),
     Parameter("chunks", ParameterKind.ATTRIBUTE)),
)
MOST_ROWS = 64          # of a chunk
STEP = 8                # how much smaller the next chunk is
ELEMENTS = 1 << 15      # of the widest value of a chunk, roughly
FEWEST = 2              # working nodes; one alone is as well called in torch


def is_rows(node: Node) -> bool:
    return node.op is ROWS


def per_row(value: Value, symbol: Symbol) -> Dim | None:
    """Elements of `value` per row over `symbol`; None where it has no rows."""
    if not isinstance(value.type, TensorType) or not value.type.rank or value.type.device != "cpu":
        return None
    first, *rest = value.type.shape
    factor = 1 if first == symbol else _factor(first, symbol)
    if factor is None or not all(isinstance(size, int) for size in rest) or value.type.dtype not in families.DTYPES:
        return None
    return factor * product(rest)


def _factor(dim: Dim, symbol: Symbol) -> int | None:
    if isinstance(dim, Sum) and not dim.constant and len(dim.terms) == 1:
        (monomial, coefficient), = dim.terms
        return coefficient if monomial == (symbol,) and coefficient > 0 else None
    return None


@dataclass(eq=False)
class _Set:
    """Nodes over one symbol that may become one region; `after` are values that depend on it from outside."""

    symbol: Symbol
    nodes: list[Node] = field(default_factory=list)
    after: set[Value] = field(default_factory=set)
    told: set[str] = field(default_factory=set)         # symbols that such values tell

    def is_after(self, node: Node) -> bool:
        """Does `node` depend on the set by way of nodes outside of it?"""
        return not self.after.isdisjoint(node.reads) or bool(self.told and edit.symbols_read(node) & self.told)


def extract(graph: Graph) -> bool:
    """Put row nodes into `graph`, a copy of the user's."""
    done = False
    for symbol in _symbols(graph):
        for nodes in _sets(graph, symbol):
            if sum(not node.op.has(Trait.VIEW) and not node.op.has(Trait.FACTORY) for node in nodes) >= FEWEST:
                _replace(graph, symbol, nodes)
                done = True
    return done


def _symbols(graph: Graph) -> list[Symbol]:
    """Symbols that stand in the first dim of a value, in order."""
    found: dict[str, Symbol] = {}
    for value in (*graph.inputs, *(result for node in graph.nodes for result in node.results)):
        if isinstance(value.type, TensorType) and value.type.rank and isinstance(value.type.shape[0], Symbol):
            found.setdefault(value.type.shape[0].name, value.type.shape[0])
    return list(found.values())


def _sets(graph: Graph, symbol: Symbol) -> list[list[Node]]:
    finished: list[list[Node]] = []
    now = _Set(symbol)
    members: set[Node] = set()
    for node in graph.nodes:
        if _is_rowwise(node, symbol):
            if now.is_after(node):
                finished.append(now.nodes)
                now, members = _Set(symbol), set()
            now.nodes.append(node)
            members.add(node)
        elif now.is_after(node) or any(value.node in members for value in node.reads if value.node is not None):
            now.after.update(node.results)
            now.told |= set().union(*(edit.symbols_in(value.type) for value in node.results)) - {symbol.name}
    return [*finished, now.nodes]


# ---- which nodes

def _is_rowwise(node: Node, symbol: Symbol) -> bool:
    draws = node.op.has(Trait.RANDOM) and node.attributes.get("dropout_p") != 0.0
    if node.regions or node.op.effects - {Effect.RAISES} or draws or not node.results:
        return False
    rule = RULES.get("template" if node.op.name in templates.ANCHORS else families.family_of(node.op.name))
    if rule is None or any(per_row(result, symbol) is None for result in node.results):
        return False
    if any(is_held(value) and per_row(value, symbol) is None for value in node.inputs):
        return False
    if any(not is_held(value) and value.tensor.dtype not in families.DTYPES for value in node.inputs):
        return False
    return not _reads_number(node) and rule(node, symbol)


def _reads_number(node: Node) -> bool:
    """Does it compute with a symbol, rather than only say a shape with it?"""
    shapes = ("size", "shape", "sizes") if families.family_of(node.op.name) in ("view", "constant") else ()
    entries: list[Any] = [*node.operands, *(v for name, v in node.attributes.items() if name not in shapes)]
    return any(map(edit.symbols_in, entries))


def _has_rows(value: Operand, symbol: Symbol) -> bool:
    return isinstance(value, Value) and per_row(value, symbol) is not None


def _along(value: Value, result: Value, symbol: Symbol) -> bool:
    """Does `value`, broadcast to `result`, have its rows at those of the result, or no rows at all?"""
    own, whole = value.tensor, result.tensor
    if _has_rows(value, symbol):
        return own.rank == whole.rank and own.shape[0] == whole.shape[0]
    return own.rank < whole.rank or own.shape[0] == 1


def _pointwise(node: Node, symbol: Symbol) -> bool:
    return all(_along(value, node.results[0], symbol) for value in node.inputs)


def _fold(node: Node, symbol: Symbol) -> bool:
    return _has_rows(node.inputs[0], symbol) and 0 not in roles.reduced_dims(node)


def _view(node: Node, symbol: Symbol) -> bool:
    operand, result = node.inputs[0], node.results[0]
    if not _has_rows(operand, symbol):
        return "expand" in node.op.name and _along(operand, result, symbol)
    if node.op.name in IN_ORDER:
        return per_row(operand, symbol) == per_row(result, symbol)
    rank, attributes = operand.tensor.rank, node.attributes
    if "dims" in attributes:
        dims = attributes["dims"]
        return bool(dims) and dims[0] % rank == 0
    moved = [attributes[name] for name in ("dim", "dim0", "dim1", "dim2", "dimension") if name in attributes]
    if not moved:
        return "expand" in node.op.name and _along(operand, result, symbol)
    return all(isinstance(d, int) and d % rank for d in moved)


def _move(node: Node, symbol: Symbol) -> bool:
    dims = roles.moved_dims(node)
    first = node.results[0].tensor.shape[0]
    return dims is not None and 0 not in dims and all(
        _has_rows(value, symbol) and value.tensor.shape[0] == first for value in node.inputs
    )


def _gather(node: Node, symbol: Symbol) -> bool:
    x, result = node.inputs[0], node.results[0]
    if "padding_idx" in node.attributes:        # an embedding: rows of indices
        table, indices = node.inputs
        return not _has_rows(table, symbol) and _has_rows(indices, symbol) \
            and indices.tensor.shape[0] == result.tensor.shape[0]
    dim = node.attributes.get("dim")
    if not isinstance(dim, int) or not _has_rows(x, symbol) or not dim % x.tensor.rank:
        return False
    indices = node.inputs[1]
    return indices.tensor.shape[:1] == x.tensor.shape[:1] if _has_rows(indices, symbol) else indices.tensor.rank < 2


def _window(node: Node, symbol: Symbol) -> bool:
    dims = int(next(c for c in node.op.name if c.isdigit()))
    return _has_rows(node.inputs[0], symbol) and node.inputs[0].tensor.rank == dims + 2


def _constant(node: Node, symbol: Symbol) -> bool:
    return "size" in node.attributes and "fill_value" in node.attributes


def _template(node: Node, symbol: Symbol) -> bool:
    capability = templates.ANCHORS[node.op.name]
    result = node.results[0]
    if result.tensor.dtype not in capability.dtypes:
        return False
    operands = {role: node.operand(name) for role, name in capability.roles.items()}
    first, *others = (role for role in capability.roles if role in ("a", "b", "x", "w", "q", "k", "v"))
    lead = operands[first]
    if not isinstance(lead, Value) or not _has_rows(lead, symbol) or lead.tensor.shape[0] != result.tensor.shape[0]:
        return False
    if first == "x" and lead.tensor.rank != operands["w"].tensor.rank:      # type: ignore[union-attr]
        return False
    for role in others:
        value = operands[role]
        batched = first == "q" or (role == "b" and isinstance(value, Value) and value.tensor.rank == 3)
        same = _has_rows(value, symbol) and value.tensor.shape[0] == lead.tensor.shape[0]   # type: ignore[union-attr]
        if same is not batched or (not batched and _has_rows(value, symbol)):
            return False
    free = [operands[role] for role in ("bias", "mask") if isinstance(operands.get(role), Value)]
    if first == "x":
        return not any(_has_rows(value, symbol) for value in free)
    return all(_along(value, result, symbol) for value in free)     # type: ignore[arg-type]


IN_ORDER = frozenset(f"aten.{name}" for name in (
    "view.default", "_unsafe_view.default", "reshape.default", "_reshape_alias.default", "flatten.using_ints",
    "unflatten.int", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default", "alias.default",
    "detach.default", "lift_fresh.default",
))
RULES: dict[str, Callable[[Node, Symbol], bool]] = {
    "pointwise": _pointwise, "reduction": _fold, "scan": _fold, "view": _view, "map": _move, "gather": _gather,
    "window": _window, "constant": _constant, "template": _template,
}


# ---- the region

def _replace(graph: Graph, symbol: Symbol, nodes: list[Node]) -> None:
    inside = set(nodes)
    reads = dict.fromkeys(value for node in nodes for value in node.inputs)
    given = [value for value in reads if value.node not in inside and is_held(value)]
    made = [result for node in nodes for result in node.results]
    seen = set(graph.outputs).union(*(node.reads for node in graph.nodes if node not in inside))
    results = [value for value in made if value in seen]
    chunks = _chunks(symbol, made)
    regions = [_region(symbol, rows, nodes, given, results) for rows in chunks]
    attributes = {"size": symbol, "chunks": chunks}
    types = [value.type for value in results]
    rows = Node(ROWS, (tuple(given),), attributes, types, regions=regions, loc=nodes[0].loc)
    for old, new in zip(results, rows.results, strict=True):
        new.name = old.name
    _insert(graph, rows, nodes)
    graph.replace(dict(zip(results, rows.results, strict=True)))


def _chunks(symbol: Symbol, made: Iterable[Value]) -> tuple[int, ...]:
    """Numbers of rows, falling to one."""
    widest = max(int(per_row(value, symbol) or 1) for value in made)     # type: ignore[arg-type]
    rows = MOST_ROWS
    while rows > 1 and rows * widest > ELEMENTS:
        rows //= STEP
    chunks = []
    while rows >= 1:
        chunks.append(rows)
        rows //= STEP
    return tuple(chunks)


def _region(symbol: Symbol, rows: int, nodes: list[Node], given: list[Value], results: list[Value]) -> Graph:
    region = Graph(f"rows{rows}")
    mapping: dict[Value, Value] = {}
    for value in given:
        first, *rest = value.tensor.shape
        factor = _factor(first, symbol) or 1
        mapping[value] = region.add_input(TensorType(value.tensor.dtype, (factor * rows, *rest)), value.name)
    region.nodes = [edit.copy_node(node, mapping) for node in nodes]
    region.outputs = [mapping[value] for value in results]
    edit.substitute(region, {symbol.name: rows})
    for node in region.nodes:
        for result in node.results:
            result.type = replace(result.tensor, strides=None)
    return region


def _insert(graph: Graph, rows: Node, nodes: list[Node]) -> None:
    """Put `rows` in the place of the last of `nodes`; what depends on them and stands before comes after."""
    inside = set(nodes)
    last = max(place for place, node in enumerate(graph.nodes) if node in inside)
    moved: list[Node] = []
    kept: list[Node] = []
    group = _Set(rows.attributes["size"], nodes)
    for node in graph.nodes[:last + 1]:
        if node in inside:
            continue
        if group.is_after(node) or any(value.node in inside for value in node.reads if value.node is not None):
            group.after.update(node.results)
            group.told |= set().union(*(edit.symbols_in(value.type) for value in node.results)) - {group.symbol.name}
            moved.append(node)
        else:
            kept.append(node)
    graph.nodes[:] = [*kept, rows, *moved, *graph.nodes[last + 1:]]
