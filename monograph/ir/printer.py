"""Graphs as text. `ir.parser` reads this text back; what it reads and writes is this:

    graph   ::= "graph" name? "{" file* symbol* input* node* return prologue? "}"
    file    ::= "file" short "=" string                    the folder behind a short file name
    symbol  ::= "symbol" name ":" lo ".." hi?
    input   ::= "input" %value ":" type ("=" source)?      without: argument of the value's name
    node    ::= (%value ":" type ","...) "=" op "(" arguments ")" regions? "# file:line in function"?
    regions ::= "{" (role name? "{" input* node* return "}")* "}"
    return  ::= "return" %value, ...
    prologue::= "prologue" "{" input* node* return "}"
    type    ::= f32[dim, ..., strides=[...], device=...] | int | float | bool | int(symbol) ...

Arguments stand in the order of the op's parameters, operands by position as long as nothing was left
out before them, everything else by keyword; what equals the op's default is left out. Values without
a name print as numbers; `%x~2` is the second value called x. Literals: numbers, inf, nan, None, True,
complex(re, im), "string", f32, device("cpu"), torch.strided, torch.channels_last, [a, b], 2*s0 + 1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import torch

from monograph.ir import dtypes
from monograph.ir.graph import Attribute, Graph, Node, Operand, Source, Value
from monograph.ir.op import NO_DEFAULT, Parameter
from monograph.ir.symbolic import Expr
from monograph.source import SourceLoc

__all__ = ["NAME", "literal", "print_graph", "print_nodes"]

NAME = re.compile(r"[A-Za-z_][\w.]*")
COMMENT_COLUMN = 96
INDENT = "    "
Line: TypeAlias = "tuple[str, str | None]"      # text and comment


def print_graph(graph: Graph) -> str:
    """The text of a whole graph."""
    printer = _Printer(graph)
    lines: list[Line] = [(f"graph {_word(graph.name)} {{" if graph.name != "graph" else "graph {", None)]
    for file, short in printer.files.items():
        if file != short:
            lines.append((f"{INDENT}file {short} = {json.dumps(file)}", None))
    for name, symbol in graph.symbols.items():
        lines.append((f"{INDENT}symbol {name}: {symbol.lo}..{'' if symbol.hi is None else symbol.hi}", None))
    lines += printer.body(graph, INDENT)
    lines.append(("}", None))
    return _aligned(lines)


def print_nodes(graph: Graph, nodes: Iterable[Node]) -> str:
    """The lines of some nodes of `graph` (or of its regions), named as in the whole text."""
    printer = _Printer(graph)
    return _aligned([line for node in nodes for line in printer.node(node, INDENT)])


def _aligned(lines: list[Line]) -> str:
    widths = [len(text) for text, comment in lines if comment is not None]
    column = min(max(widths, default=0), COMMENT_COLUMN)
    return "\n".join(text if comment is None else f"{text.ljust(column)}    # {comment}" for text, comment in lines)


class _Printer:
    """Names of values and files, unique over one graph, its regions and its prologue."""

    def __init__(self, graph: Graph) -> None:
        self.names: dict[Value, str] = {}
        self.used: dict[str, int] = {}
        self.count = 0
        self.name_block(graph)
        blocks = [graph] if graph.prologue is None else [graph, graph.prologue]
        self.files = _short_files([n.loc.file for block in blocks for n in block.walk() if n.loc is not None])

    def name_block(self, graph: Graph) -> None:
        for value in graph.inputs:
            self.name_value(value)
        for node in graph.nodes:
            for region in node.regions:
                self.name_block(region)
            for value in node.results:
                self.name_value(value)
        if graph.prologue is not None:
            self.name_block(graph.prologue)

    def name_value(self, value: Value) -> None:
        if not NAME.fullmatch(value.name):
            self.names[value] = f"%{self.count}"
            self.count += 1
            return
        seen = self.used[value.name] = self.used.get(value.name, 0) + 1
        self.names[value] = f"%{value.name}" if seen == 1 else f"%{value.name}~{seen}"

    def value(self, value: Value) -> str:
        return self.names.get(value) or f"%<undefined {value.name or value.index}>"

    def body(self, graph: Graph, indent: str) -> list[Line]:
        lines: list[Line] = []
        sources: list[Source | None] = [*graph.sources, *[None] * len(graph.inputs)]
        for value, source in zip(graph.inputs, sources):
            text = f"{indent}input {self.value(value)}: {value.type}"
            lines.append((text + _source(value, source), None))
        for node in graph.nodes:
            lines += self.node(node, indent)
        lines.append((f"{indent}return {', '.join(self.value(v) for v in graph.outputs)}".rstrip(), None))
        if graph.prologue is not None:
            lines += self.block("prologue", graph.prologue, indent)
        return lines

    def block(self, role: str, graph: Graph, indent: str) -> list[Line]:
        name = "" if graph.name == role else f" {_word(graph.name)}"
        return [(f"{indent}{role}{name} {{", None), *self.body(graph, indent + INDENT), (f"{indent}}}", None)]

    def node(self, node: Node, indent: str) -> list[Line]:
        results = ", ".join(f"{self.value(value)}: {value.type}" for value in node.results)
        text = f"{indent}{results}{' = ' if results else ''}{node.op.name}({self.arguments(node)})"
        comment = None if node.loc is None else self.loc(node.loc)
        if not node.regions:
            return [(text, comment)]
        lines: list[Line] = [(text + " {", comment)]
        for position, region in enumerate(node.regions):
            roles = node.op.regions
            role = roles[position] if position < len(roles) else f"region{position}"
            lines += self.block(role, region, indent + INDENT)
        return [*lines, (f"{indent}}}", None)]

    def arguments(self, node: Node) -> str:
        slots = iter(node.operands)
        given: list[tuple[Parameter, Any]] = []
        for parameter in node.op.parameters:
            if parameter.is_operand:
                given.append((parameter, next(slots, "missing")))
            elif parameter.name in node.attributes:
                given.append((parameter, node.attributes[parameter.name]))
        pieces = []
        by_position = True
        for parameter, value in given:
            if _is_default(parameter, value):
                by_position = False
            elif by_position and parameter.is_operand:
                pieces.append(self.operand(value))
            else:
                by_position = False
                pieces.append(f"{parameter.name}={self.operand(value)}")
        return ", ".join(pieces)

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Value):
            return self.value(operand)
        if isinstance(operand, tuple):
            return f"[{', '.join(self.operand(entry) for entry in operand)}]"
        return literal(operand)

    def loc(self, loc: SourceLoc) -> str:
        where = f"{self.files.get(loc.file, loc.file)}:{loc.line}"
        return f"{where} in {loc.function}" if loc.function else where


def _is_default(parameter: Parameter, value: Any) -> bool:
    """Whether the parser would fill in this very value: 1, 1.0 and True are three values."""
    default = parameter.default
    return default is not NO_DEFAULT and type(value) is type(default) and repr(value) == repr(default)


def _source(value: Value, source: Source | None) -> str:
    if source is None or source == Source("argument", value.name):
        return ""
    path = source.path
    plain = path == path.strip() and not re.search(r'[#"\n]', path)
    return f" = {source.kind} {path if plain else json.dumps(path)}".rstrip()


def _word(name: str) -> str:
    return name if NAME.fullmatch(name) else json.dumps(name)


def _short_files(files: Iterable[str]) -> Mapping[str, str]:
    """Each file with the shortest tail of its path that no other file has."""
    distinct = list(dict.fromkeys(files))
    table: dict[str, str] = {}
    for file in distinct:
        parts = file.split("/")
        for size in range(1, len(parts) + 1):
            tail = "/".join(parts[-size:])
            if not any(other != file and f"/{other}".endswith(f"/{tail}") for other in distinct):
                break
        else:
            tail = file
        table[file] = tail
    return table


def literal(value: Attribute) -> str:
    """The text of one attribute."""
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(literal(entry) for entry in value)}]"
    if isinstance(value, torch.dtype):
        return dtypes.NAMES.get(value) or str(value)
    if isinstance(value, torch.device):
        return f'device("{value}")'
    if isinstance(value, (torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, Expr):
        return str(value)
    return f"<{type(value).__name__}>"
