"""Opening composites into the ops that kernels cover (`ops.families`).

    RULES[name](builder, node) -> value | tuple of values (None: nobody may use it) | None (does not apply)

Values are those eager computes: where torch's kernel works in f32 on bf16 or f16 operands, so does the
rule, and it rounds where the kernel rounds. An op without a rule of ours takes the automatic route,
torch's own decomposition (`ops.record`), if that ends in covered ops; otherwise it stays whole.
"""

from __future__ import annotations

from collections.abc import Collection

from monograph.ir.graph import Graph, Node, Value, map_operand
from monograph.ir.types import TensorType
from monograph.ops import families, record
from monograph.ops.build import Builder
from monograph.ops.decompose_reduce import over_nothing
from monograph.ops.rules import RULES, Rule

__all__ = ["RULES", "Rule", "expand"]


def expand(graph: Graph, *, keep: Collection[str] = frozenset()) -> bool:
    """Open every composite that opens into covered ops, in regions too; ops named in `keep` stay whole."""
    return _Expansion(graph, keep).run()


class _Expansion:
    def __init__(self, graph: Graph, keep: Collection[str]) -> None:
        self.graph = graph
        self.keep = keep
        self.done = Graph(graph.name)              # collects the nodes of the opened graph
        self.mapping: dict[Value, Value] = {}
        self.changed = False

    def run(self) -> bool:
        for node in self.graph.nodes:
            self.visit(node)
        outputs = [self.mapping.get(value, value) for value in self.graph.outputs]
        self.graph.outputs[:] = self.promised(self.graph.outputs, outputs)
        self.graph.nodes[:] = self.done.nodes
        return self.changed

    def visit(self, node: Node) -> None:
        node.operands = tuple(map_operand(operand, lambda v: self.mapping.get(v, v)) for operand in node.operands)
        for region in node.regions:
            region.replace(self.mapping)
            self.changed |= expand(region, keep=self.keep)
        results = None if node.op.name in self.keep else self.open(node)
        if results is None:
            self.done.nodes.append(node)
            return
        self.changed = True
        for old, new in zip(node.results, results, strict=True):
            if new is not None:
                self.name(old, new)
                self.mapping[old] = new

    def open(self, node: Node) -> list[Value | None] | None:
        """The values that stand for the results of `node`, its opened nodes written; None if it stays whole."""
        scratch = Graph()
        builder = Builder(scratch, loc=node.loc)
        rule = over_nothing if node.op.name in families.KERNELS else RULES.get(node.op.name)
        made = rule(builder, node) if rule is not None else None
        if made is not None:
            results = list(made) if isinstance(made, tuple) else [made]
        else:
            if node.op.name in families.KERNELS or node.op.name in families.TEMPLATE:
                return None
            scratch.nodes.clear()
            spliced = record.splice(builder, node)
            if spliced is None:
                return None
            results = spliced
        for inner in scratch.nodes:
            self.visit(inner)
        return [None if value is None else self.mapping.get(value, value) for value in results]

    def name(self, old: Value, new: Value) -> None:
        if new.node is not None and not new.name:
            new.name = old.name

    def promised(self, old: list[Value], new: list[Value]) -> list[Value]:
        """Outputs keep the types promised to the caller, strides included: a value that has others is copied."""
        result: list[Value] = []
        for before, after in zip(old, new):
            if before.type != after.type:
                shared = after.node is None or after in result or after in old
                if shared and isinstance(before.type, TensorType):
                    after = Builder(self.done).call("aten.clone.default", after)
                after.type = before.type
            result.append(after)
        return result
