"""What a program is."""

from monograph.ir.graph import Graph
from monograph.ir.printer import print_graph

Graph.__str__ = print_graph  # type: ignore[method-assign,assignment]
