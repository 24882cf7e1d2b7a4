"""Work over a symbolic number of rows, done a few rows at a time.

A *unit* is a symbol, after others or numbers perhaps, whose product counts: (s,), (b, s), (8, s). A *row value* over a
unit has it in its first dims, after dims of size 1: [b, s, ...], [1, s, ...], or multiplied, [3*b*s, ...]; its other
dims are static. In
row-major order each row is one piece of it. A node is *row-wise* when rows of its results depend on the same rows of
its operands, and on values that have no rows. `extract` takes maximal sets of such nodes out of a graph and puts a
node in their place:

    results = rows(given*; size, chunks) {chunk*}

`size` is that of the unit. `chunks` are pairs (most, fewest) of numbers of rows, falling, with a region for each, which
takes the given row values, cut to `most` rows, and is scheduled like any other static graph. The last chunk is moved
back so that it ends with the last row: some rows are computed twice, with equal results.

Where `fewest` is less than `most` the region serves any number of rows up to `most`: rows come first in memory, so that
no stride depends on their number, and kernels only have to know where to stop. See `loops.counted`. There `most` is a
prime that divides no other number in the region: what is a multiple of it counts rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from monograph.ir import edit
from monograph.ir.graph import Graph, Node, Operand, Value, map_operand
from monograph.ir.op import Effect, Op, Parameter, ParameterKind, Trait
from monograph.ir.symbolic import Dim, Symbol, product
from monograph.ir.types import TensorType
from monograph.ops import families, table, templates
from monograph.ops.build import Builder
from monograph.schedule import roles, sets
from monograph.schedule.kernel import is_held
from monograph.schedule.rowunits import Unit, counted_rows, cut_rows, fixed_chunks, rows_of

__all__ = ["ROWS", "extract", "is_rows"]

ROWS = Op(
    "mono.rows",
    (Parameter("given", ParameterKind.TENSORS), Parameter("size", ParameterKind.ATTRIBUTE),
     Parameter("chunks", ParameterKind.ATTRIBUTE)),
)
FEWEST = 2              # working nodes; one alone is as well called in torch


def is_rows(node: Node) -> bool:
    return node.op is ROWS


def extract(graph: Graph, count: bool = True) -> bool:
    """Put row nodes into `graph`, a copy of the user's. `count`: make regions for any number of rows."""
    done = False
    for unit in _units(graph):
        _spread(graph, unit)
        for nodes in _sets(graph, unit):
            if sum(not node.op.has(Trait.VIEW) and not node.op.has(Trait.FACTORY) for node in nodes) >= FEWEST:
                _replace(graph, unit, nodes, count)
                done = True
    return done


def _units(graph: Graph) -> list[Unit]:
    """Runs of dims up to a symbol that the shapes of values begin with, long ones first."""
    found: dict[Unit, None] = {}
    for value in (*graph.inputs, *(result for node in graph.nodes for result in node.results)):
        if isinstance(value.type, TensorType):
            unit = tuple(itertools.dropwhile(lambda dim: dim == 1, value.type.shape))
            while unit and not isinstance(unit[-1], Symbol):
                unit = unit[:-1]
            symbols = [dim for dim in unit if isinstance(dim, Symbol)]
            if unit and len(set(symbols)) == len(symbols) and all(isinstance(dim, (int, Symbol)) for dim in unit):
                found[unit] = None
    return sorted(found, key=lambda unit: -len(unit))


def _spread(graph: Graph, unit: Unit) -> None:
    """Make rows of what is one for several: [1, s, ...] of unit (b, s), where it meets rows and would stop them."""
    made: dict[Value, Value] = {}
    for node in list(graph.nodes):
        if families.family_of(node.op.name) != "pointwise" or node.result.tensor.shape[:len(unit)] != unit:
            continue
        if not any(is_held(value) and _along(value, node.result, unit) for value in node.inputs):
            continue
        for value in node.inputs:
            shape = _spread_shape(value, node.result, unit)
            if shape is not None:
                if value not in made:
                    builder = Builder(graph, before=node)
                    made[value] = builder.call("aten.expand_copy.default", value, shape)
                node.operands = tuple(map_operand(entry, lambda v: made.get(v, v)) for entry in node.operands)


def _spread_shape(value: Value, result: Value, unit: Unit) -> tuple[Dim, ...] | None:
    """The shape of `value` with all of the unit in front; None where that is not what it lacks."""
    own, rank = value.tensor.shape, result.tensor.rank
    lead, rest = ((1,) * (rank - len(own)) + own)[:len(unit)], ((1,) * (rank - len(own)) + own)[len(unit):]
    fits = all(mine in (1, dim) for mine, dim in zip(lead, unit, strict=True)) and all(isinstance(d, int) for d in rest)
    return (*unit, *rest) if is_held(value) and fits and lead != unit and value.tensor.device == "cpu" else None


def _sets(graph: Graph, unit: Unit) -> list[list[Node]]:
    return sets.sets(graph, lambda node: _is_rowwise(node, unit), _names(unit))


def _names(unit: Unit) -> set[str]:
    return {dim.name for dim in unit if isinstance(dim, Symbol)}


# ---- which nodes

def _is_rowwise(node: Node, unit: Unit) -> bool:
    draws = node.op.has(Trait.RANDOM) and node.attributes.get("dropout_p") != 0.0
    if node.regions or node.op.effects - {Effect.RAISES} or draws or not node.results:
        return False
    rule = RULES.get("template" if node.op.name in templates.ANCHORS else families.family_of(node.op.name))
    if rule is None or any(rows_of(result, unit) is None for result in node.results):
        return False
    for value in node.inputs:
        if is_held(value) and rows_of(value, unit) is None:
            return False
        if not is_held(value) and value.tensor.dtype not in families.DTYPES:
            return False
    return not _reads_number(node) and rule(node, unit)


def _reads_number(node: Node) -> bool:
    """Does it compute with a symbol, rather than only say a shape with it?"""
    shapes = ("size", "shape", "sizes") if families.family_of(node.op.name) in ("view", "constant") else ()
    entries: list[Any] = [*node.operands, *(v for name, v in node.attributes.items() if name not in shapes)]
    return any(map(edit.symbols_in, entries))


def _lead(value: Operand, unit: Unit) -> int:
    """How many dims of `value` are rows."""
    rows = rows_of(value, unit)
    return rows.lead if rows is not None else 0


def _along(value: Value, result: Value, unit: Unit) -> bool:
    """Does `value`, broadcast to `result`, have its rows at those of the result, or no rows at all?"""
    own, whole, lead = value.tensor.shape, result.tensor.shape, _lead(result, unit)
    missing, given = len(whole) - len(own), _lead(value, unit)
    if given:
        return given + missing == lead and own[:given] == whole[missing:lead]
    return all(dim == 1 for dim in own[:max(0, lead - missing)])


def _pointwise(node: Node, unit: Unit) -> bool:
    return all(_along(value, node.results[0], unit) for value in node.inputs)


def _inside(value: Value, unit: Unit, *dims: Any) -> bool:
    """Has `value` rows, and are all `dims` within them?"""
    lead, rank = _lead(value, unit), value.tensor.rank
    return bool(lead) and all(isinstance(d, int) and d % rank >= lead for d in dims)


def _fold(node: Node, unit: Unit) -> bool:
    return _inside(node.inputs[0], unit, *roles.reduced_dims(node))


def _view(node: Node, unit: Unit) -> bool:
    operand, result, attributes = node.inputs[0], node.results[0], node.attributes
    given, made = rows_of(operand, unit), rows_of(result, unit)
    assert made is not None
    if given is None or "implicit" in attributes:       # an expand
        return "implicit" in attributes and _along(operand, result, unit)
    if node.op.name in IN_ORDER:
        return given.elements == made.elements
    moved = [attributes[name] for name in ("dim", "dim0", "dim1", "dim2", "dimension") if name in attributes]
    alone = [operand.tensor.shape[d] == 1 or operand.tensor.shape == result.tensor.shape
             for d in moved if isinstance(d, int) and operand.tensor.rank]
    if moved and len(alone) == len(moved) and all(alone):       # only dims of size 1
        return given.elements == made.elements
    if "dims" in attributes:
        rank = operand.tensor.rank
        return [d % rank for d in attributes["dims"][:given.lead]] == list(range(given.lead)) == list(range(made.lead))
    return bool(moved) and _inside(operand, unit, *moved) and given.lead == made.lead


def _move(node: Node, unit: Unit) -> bool:
    dims, lead = roles.moved_dims(node), _lead(node.results[0], unit)
    first = node.results[0].tensor.shape[:lead]
    return dims is not None and all(_inside(v, unit, *dims) and v.tensor.shape[:lead] == first for v in node.inputs)


def _gather(node: Node, unit: Unit) -> bool:
    x, lead = node.inputs[0], _lead(node.results[0], unit)
    if "padding_idx" in node.attributes:        # an embedding: rows of indices
        table, indices = node.inputs
        same = indices.tensor.shape[:lead] == node.results[0].tensor.shape[:lead]
        return not _lead(table, unit) and _lead(indices, unit) == lead and same
    dim = node.attributes.get("dim")
    if dim is None or not _inside(x, unit, dim):
        return False
    indices = node.inputs[1]
    return indices.tensor.shape[:lead] == x.tensor.shape[:lead] if _lead(indices, unit) else indices.tensor.rank < 2


def _window(node: Node, unit: Unit) -> bool:
    dims = int(next(c for c in node.op.name if c.isdigit()))
    return _lead(node.inputs[0], unit) == 1 and node.inputs[0].tensor.rank == dims + 2


def _constant(node: Node, unit: Unit) -> bool:
    return "size" in node.attributes and "fill_value" in node.attributes


def _template(node: Node, unit: Unit) -> bool:
    capability = templates.ANCHORS[node.op.name]
    result = node.results[0]
    operands = {role: node.operand(name) for role, name in capability.roles.items()}
    first, *others = (operands[role] for role in capability.roles if role in ("a", "b", "x", "w", "q", "k", "v"))
    lead = _lead(result, unit)
    if result.tensor.dtype not in capability.dtypes or not isinstance(first, Value) or _lead(first, unit) != lead:
        return False
    if first.tensor.shape[:lead] != result.tensor.shape[:lead] or (lead > 1 and capability.packed != "b"):
        return False
    batched = capability.packed is None or (result.tensor.rank == 3 and lead == 1 and node.op.name in BATCHED)
    weight = others[0] if others else None
    if capability.template == "conv" and not (isinstance(weight, Value) and weight.tensor.rank == first.tensor.rank):
        return False
    if node.op.name in BATCHED and lead > 1:
        # One batch with a matrix for all rows.
        alone = first.tensor.shape[0] == 1 and isinstance(weight, Value) and weight.tensor.shape[0] == 1
        if not alone:
            return False
    for value in others:
        same = isinstance(value, Value) and _lead(value, unit) == lead and value.tensor.shape[:lead] == \
            first.tensor.shape[:lead]
        if same is not batched or (not batched and _lead(value, unit)):
            return False
    free = [operands[role] for role in ("bias", "mask") if isinstance(operands.get(role), Value)]
    if capability.template == "conv":
        return not any(_lead(value, unit) for value in free)
    return all(_along(value, result, unit) for value in free)     # type: ignore[arg-type]


IN_ORDER = frozenset(f"aten.{name}" for name in (
    "view.default", "_unsafe_view.default", "reshape.default", "_reshape_alias.default", "flatten.using_ints",
    "unflatten.int", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default", "alias.default",
    "detach.default", "lift_fresh.default",
))
BATCHED = frozenset({"aten.bmm.default", "aten.baddbmm.default"})
RULES: dict[str, Callable[[Node, Unit], bool]] = {
    "pointwise": _pointwise, "reduction": _fold, "scan": _fold, "view": _view, "map": _move, "gather": _gather,
    "window": _window, "constant": _constant, "template": _template,
}


# ---- the region

def _replace(graph: Graph, unit: Unit, nodes: list[Node], count: bool) -> None:
    inside = set(nodes)
    reads = dict.fromkeys(value for node in nodes for value in node.inputs)
    given = [value for value in reads if value.node not in inside and is_held(value)]
    made = [result for node in nodes for result in node.results]
    seen = set(graph.outputs).union(*(node.reads for node in graph.nodes if node not in inside))
    results = [value for value in made if value in seen]
    def cut(most: int) -> Graph:
        return _region(unit, most, nodes, given, results)

    widths = {value: rows.elements for value in made if (rows := rows_of(value, unit)) is not None}
    most = counted_rows([widths[value] for value in made if value not in results], cut(1)) if count else None
    chunks = fixed_chunks(widths.values()) if most is None else ((most, 2), (1, 1))
    regions = [cut(most) for most, _ in chunks]
    attributes = {"size": product(unit), "chunks": chunks}
    types = [value.type for value in results]
    node = Node(ROWS, (tuple(given),), attributes, types, regions=regions, loc=nodes[0].loc)
    for old, new in zip(results, node.results, strict=True):
        new.name = old.name
    sets.insert(graph, node, nodes, _names(unit))
    graph.replace(dict(zip(results, node.results, strict=True)))


def _region(unit: Unit, count: int, nodes: list[Node], given: list[Value], results: list[Value]) -> Graph:
    """The nodes for `count` rows: all dims of the unit are 1 but the last."""
    region = Graph(f"rows{count}")
    mapping: dict[Value, Value] = {}
    for value in given:
        mapping[value] = region.add_input(TensorType(value.tensor.dtype, cut_rows(value, unit, count)), value.name)
    for node in nodes:
        copied = edit.copy_node(_plain(node, unit, count), mapping)
        for old, new in zip(node.results, copied.results, strict=True):
            new.type = TensorType(old.tensor.dtype, cut_rows(old, unit, count))
            mapping[old] = new
        region.nodes.append(copied)
    region.outputs = [mapping[value] for value in results]
    return region


def _plain(node: Node, unit: Unit, count: int) -> Node:
    """`node`, or one like it that says the shape of its result, if any, with numbers."""
    shape = cut_rows(node.results[0], unit, count)
    if node.op.name in IN_ORDER:
        op = table.lookup("aten.reshape.default")
        return Node(op, (node.inputs[0],), {"shape": shape}, [node.results[0].type], loc=node.loc)
    if "size" not in node.attributes:
        return node
    types = [value.type for value in node.results]
    return Node(node.op, node.operands, {**node.attributes, "size": shape}, types, loc=node.loc)
