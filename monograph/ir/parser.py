"""Reads the text that `ir.printer` writes; the grammar stands there.

Made to be written by hand too: sources, files, lines and strides may be left out, arguments may stand by
position or keyword as in a torch call, `# anything` is a comment, and with `infer` so may be result types:

    graph {
        input %x: f32[4, 8]
        %y = aten.add.Tensor(%x, 1)
        return %y
    }
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch

from monograph.errors import VerificationError
from monograph.ir import dtypes, symbolic
from monograph.ir.graph import Graph, Node, Operand, Source, Value
from monograph.ir.op import Op
from monograph.ir.symbolic import Dim, Symbol
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.source import SourceLoc

__all__ = ["parse", "parse_type"]

Infer = Callable[[Op, Sequence[Operand], Mapping[str, Any], Sequence[Graph]], Sequence[Type]]

LOC = re.compile(r"#\s*(.+?):(\d+)(?: in (.+?))?\s*$")
NUMBER = re.compile(r"(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\.\d+|\d+)", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z_][\w.]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
VALUE = re.compile(r"%([A-Za-z_][\w.]*(?:~\d+)?|\d+)")
OPERATOR = re.compile(r"//|[%*]")
CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan")}

CALLS: dict[str, Callable[..., Any]] = {
    "complex": complex, "device": torch.device, "max": symbolic.maximum, "min": symbolic.minimum,
}


def parse(text: str, lookup: Callable[[str], Op], infer: Infer | None = None) -> Graph:
    """The graph that `text` describes; ops are found by `lookup`, missing result types by `infer`.

    Raises VerificationError with the line that could not be read.
    """
    return _Parser(text, lookup, infer).graph()


def parse_type(text: str, symbols: Mapping[str, Symbol] | None = None) -> Type:
    """The type that `text` describes."""
    line = _Line(text, 1, symbols or {}, {})
    type = line.type()
    line.end()
    return type


class _Line:
    """A cursor over one line: every method reads one thing and moves past it."""

    def __init__(self, text: str, number: int, symbols: Mapping[str, Symbol], values: Mapping[str, Value]) -> None:
        self.text, self.number, self.position = text, number, 0
        self.symbols, self.values = symbols, values

    def fail(self, what: str) -> NoReturn:
        raise VerificationError(f"line {self.number}: {what}\n  {self.text}\n  {' ' * self.position}^")

    def blank(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def at(self, mark: str) -> bool:
        self.blank()
        return self.text.startswith(mark, self.position)

    def accept(self, mark: str) -> bool:
        if self.at(mark):
            self.position += len(mark)
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(f"expected {mark!r}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.blank()
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def word(self) -> str:
        found = self.match(WORD)
        if found is None:
            self.fail("expected a name")
        return found.group()

    def name(self) -> str:
        """A word or a quoted string."""
        found = self.match(STRING)
        return json.loads(found.group()) if found is not None else self.word()

    def new_value(self) -> str:
        found = self.match(VALUE)
        if found is None:
            self.fail("expected a value such as %x")
        return found.group(1)

    def end(self) -> None:
        self.blank()
        if self.position < len(self.text) and self.text[self.position] != "#":
            self.fail("unexpected text")

    def loc(self, files: Mapping[str, str]) -> SourceLoc | None:
        self.end()
        found = LOC.match(self.text, self.position)
        if found is None:
            return None
        file, number, function = found.groups()
        return SourceLoc(files.get(file, file), int(number), function or "")

    # values and literals

    def operand(self) -> Any:
        if self.at("%"):
            name = self.new_value()
            if name not in self.values:
                self.fail(f"%{name} is not defined here")
            return self.values[name]
        return self.sum()

    def sum(self) -> Any:
        total = self.term()
        while self.at("+") or self.at("-"):
            negative = self.accept("-") or not self.accept("+")
            term = self.term()
            total = total - term if negative else total + term
        return total

    def term(self) -> Any:
        total = self.atom()
        while (found := self.match(OPERATOR)) is not None:
            right = self.atom()
            total = total * right if found.group() == "*" else \
                total // right if found.group() == "//" else total % right
        return total

    def atom(self) -> Any:
        if self.accept("-"):
            return -self.atom()
        if self.accept("["):
            return self.entries("]")
        if self.accept("("):
            inner = self.entries(")")
            one = len(inner) == 1 and not self.text[:self.position - 1].rstrip().endswith(",")
            return inner[0] if one else inner
        if (found := self.match(NUMBER)) is not None:
            digits = found.group()
            return int(digits) if digits.isdigit() else float(digits)
        if (found := self.match(STRING)) is not None:
            return json.loads(found.group())
        return self.named(self.word())

    def entries(self, close: str) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self.accept(close):
            found.append(self.operand())
            if not self.at(close):
                self.expect(",")
        return tuple(found)

    def named(self, word: str) -> Any:
        if word in self.symbols:
            return self.symbols[word]
        if word in CONSTANTS:
            return CONSTANTS[word]
        if word in CALLS:
            self.expect("(")
            return CALLS[word](*self.entries(")"))
        if word in dtypes.BY_NAME:
            return dtypes.BY_NAME[word]
        if word.startswith("torch.") and hasattr(torch, word[6:]):
            return getattr(torch, word[6:])
        self.fail(f"unknown name {word!r}")

    # types

    def type(self) -> Type:
        word = self.word()
        if word in ("int", "float", "bool") and not self.at("["):
            symbol = None
            if self.accept("("):
                symbol = self.word()
                self.expect(")")
            return ScalarType(word, symbol)  # type: ignore[arg-type]
        dtype = dtypes.BY_NAME.get(word) or getattr(torch, word, None)
        if not isinstance(dtype, torch.dtype):
            self.fail(f"unknown type {word!r}")
        self.expect("[")
        shape: list[Dim] = []
        type = TensorType(dtype, ())
        while not self.accept("]"):
            if self.accept("strides="):
                self.expect("[")
                type = replace(type, strides=self.entries("]"))
            elif self.accept("device="):
                found = self.match(re.compile(r"[\w:]+"))
                type = replace(type, device=found.group() if found else "")
            else:
                shape.append(self.sum())
            if not self.at("]"):
                self.expect(",")
        return replace(type, shape=tuple(shape))


class _Parser:
    def __init__(self, text: str, lookup: Callable[[str], Op], infer: Infer | None) -> None:
        self.lookup, self.infer = lookup, infer
        rows = [(number, row) for number, row in enumerate(text.splitlines(), 1)]
        self.rows = [(number, row) for number, row in rows if row.strip() and not row.lstrip().startswith("#")]
        self.rows.reverse()
        self.files: dict[str, str] = {}
        self.symbols: dict[str, Symbol] = {}

    def next(self, values: Mapping[str, Value]) -> _Line:
        if not self.rows:
            raise VerificationError("the text ends inside a graph")
        number, row = self.rows.pop()
        return _Line(row, number, self.symbols, values)

    def graph(self) -> Graph:
        line = self.next({})
        if line.word() != "graph":
            line.fail("expected 'graph'")
        graph = self.open(line, "graph")
        graph.symbols = self.symbols
        self.block(graph, {})
        if self.rows:
            self.next({}).fail("text after the graph")
        return graph

    def open(self, line: _Line, role: str) -> Graph:
        """The rest of a line `role name? {`."""
        graph = Graph(role if line.at("{") else line.name())
        line.expect("{")
        line.end()
        return graph

    def block(self, graph: Graph, outer: Mapping[str, Value]) -> None:
        """Statements up to the closing brace."""
        values = dict(outer)
        while True:
            line = self.next(values)
            if line.accept("}"):
                line.end()
                return
            start = line.position
            found = line.match(WORD)
            statement = found.group() if found is not None else ""
            if statement == "file":
                self.file(line)
            elif statement == "symbol":
                self.symbol(line)
            elif statement == "input":
                self.input(graph, line, values)
            elif statement == "return":
                while line.at("%"):
                    graph.outputs.append(line.operand())
                    line.accept(",")
                line.end()
            elif statement == "prologue":
                graph.prologue = self.open(line, "prologue")
                self.block(graph.prologue, {})
            else:
                line.position = start
                graph.nodes.append(self.node(line, values))

    def file(self, line: _Line) -> None:
        short, _, full = line.text[line.position:].partition(" = ")
        self.files[short.strip()] = json.loads(full)

    def symbol(self, line: _Line) -> None:
        name = line.word()
        found = line.match(re.compile(r":\s*(-?\d+)\.\.(-?\d+)?"))
        if found is None:
            line.fail("expected a range such as 2..64")
        self.symbols[name] = Symbol(name, int(found.group(1)), None if found.group(2) is None else int(found.group(2)))
        line.end()

    def input(self, graph: Graph, line: _Line, values: dict[str, Value]) -> None:
        name = line.new_value()
        line.expect(":")
        type = line.type()
        source = None
        if line.accept("="):
            kind = line.word()
            found = line.match(STRING)
            path = json.loads(found.group()) if found else line.text[line.position:].partition("#")[0].strip()
            source = Source(kind, path)
        else:
            line.end()
        values[name] = graph.add_input(type, _hint(name), source)

    def node(self, line: _Line, values: dict[str, Value]) -> Node:
        names: list[str] = []
        types: list[Type | None] = []
        while line.at("%"):
            names.append(line.new_value())
            types.append(line.type() if line.accept(":") else None)
            if not line.accept(","):
                line.expect("=")
                break
        op_name = line.word()
        try:
            op = self.lookup(op_name)
        except KeyError:
            line.fail(f"no op {op_name!r}")
        operands, attributes = self.arguments(line, op)
        opens = line.accept("{")
        loc = line.loc(self.files)
        regions = self.regions(op, values) if opens else ()
        inferred = self.result_types(line, types, op, operands, attributes, regions)
        node = Node(op, operands, attributes, inferred, regions=regions, loc=loc)
        for name, value in zip(names, node.results):
            value.name = _hint(name)
            values[name] = value
        return node

    def arguments(self, line: _Line, op: Op) -> tuple[tuple[Any, ...], dict[str, Any]]:
        line.expect("(")
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        while not line.accept(")"):
            start = line.position
            found = line.match(WORD)
            if found is not None and line.accept("="):
                kwargs[found.group()] = line.operand()
            else:
                line.position = start
                args.append(line.operand())
            if not line.at(")"):
                line.expect(",")
        try:
            return op.bind(args, kwargs)
        except TypeError as error:
            line.fail(str(error))

    def regions(self, op: Op, values: Mapping[str, Value]) -> tuple[Graph, ...]:
        found: list[Graph] = []
        while True:
            line = self.next(values)
            if line.accept("}"):
                line.loc(self.files)
                return tuple(found)
            region = self.open(line, line.word())
            self.block(region, values)
            found.append(region)

    def result_types(
        self, line: _Line, types: list[Type | None], op: Op, operands: Sequence[Operand],
        attributes: Mapping[str, Any], regions: Sequence[Graph],
    ) -> list[Type]:
        if None not in types and (types or self.infer is None):
            return [type for type in types if type is not None]
        if self.infer is None:
            line.fail("a result type is missing")
        inferred = list(self.infer(op, operands, attributes, regions))
        if types and len(inferred) != len(types):
            line.fail(f"{op.name} has {len(inferred)} results")
        return [given or found for given, found in zip(types, inferred)] if types else inferred


def _hint(name: str) -> str:
    """The name a value had before the printer made it unique."""
    return "" if name[0].isdigit() else name.partition("~")[0]
