"""Graph text over our vocabulary: `parse` with ops looked up and missing result types inferred."""

from __future__ import annotations

from monograph.ir import parser
from monograph.ir.graph import Graph
from monograph.ops import infer, table

__all__ = ["parse"]


def parse(text: str) -> Graph:
    """The graph that `text` describes (see `ir.printer` for the grammar); result types may be left out."""
    return parser.parse(text, table.lookup, infer.result_types)
