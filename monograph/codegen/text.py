"""LLVM IR as text: values, instructions, and code that is put where it belongs.

    Value    ::= ref : element x lanes          lanes 0: a scalar
    Lines    ::= (line | Lines)*                nested, so that hoisted code can be added to an earlier place

A `Text` writes one function. Every phi names labels that were made for it (`mark`), so straight-line
code may grow control flow of its own at any time.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple, TypeAlias

__all__ = ["Lines", "Module", "Text", "Value", "float_literal", "type_name"]

Lines: TypeAlias = "list[str | Lines]"


class Value(NamedTuple):
    """An SSA value or a literal: `ref` as written in IR, the element type, and how many lanes (0: scalar)."""

    ref: str
    element: str
    lanes: int = 0

    @property
    def type(self) -> str:
        return type_name(self.element, self.lanes)

    def __str__(self) -> str:
        return f"{type_name(self.element, self.lanes)} {self.ref}"


@functools.cache
def type_name(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>" if lanes else element


@functools.cache
def overload_suffix(element: str, lanes: int) -> str:
    """How an intrinsic's name spells a type: `v8f32`."""
    short = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short


def float_literal(value: float, element: str) -> str:
    """LLVM's exact spelling: the bits of the number as a double, rounded to f32 first for `float`."""
    if element == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Module:
    """Declarations, globals and helper functions shared by the functions of a module."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}      # name -> declare line
        self.globals: dict[str, str] = {}
        self.helpers: dict[str, str] = {}           # name -> define text
        self.functions: list[str] = []

    def declare(self, name: str, result: str, arguments: str, attributes: str = "") -> None:
        if name not in self.declarations:
            self.declarations[name] = f"declare {result} @{name}({arguments}) {attributes}".rstrip()


class Text:
    """Writes the body of one function, instruction by instruction."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: Lines = []
        self.out: Lines = self.lines
        self.count = 0

    # -- raw text

    def line(self, text: str) -> None:
        self.out.append(text)

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def place(self, label: str) -> None:
        self.out.append(f"{label}:")

    def mark(self, hint: str) -> str:
        """End the current block and begin one whose label a phi can name."""
        label = self.label(hint)
        self.out.append(f"br label %{label}")
        self.out.append(f"{label}:")
        return label

    def reserve(self) -> Lines:
        """A place in the text that code can still be added to."""
        lines: Lines = []
        self.out.append(lines)
        return lines

    def body(self) -> str:
        flat: list[str] = []
        stack = [iter(self.lines)]
        while stack:
            for entry in stack[-1]:
                if isinstance(entry, str):
                    flat.append(entry if entry.endswith(":") else "  " + entry)
                else:
                    stack.append(iter(entry))
                    break
            else:
                stack.pop()
        return "\n".join(flat)

    # -- instructions

    def emit(self, element: str, lanes: int, text: str) -> Value:
        self.count += 1
        ref = f"%v{self.count}"
        self.out.append(f"{ref} = {text}")
        return Value(ref, element, lanes)

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        return self.emit(a.element, a.lanes, f"{opcode} {a}, {b.ref}")

    def unary(self, opcode: str, a: Value) -> Value:
        return self.emit(a.element, a.lanes, f"{opcode} {a}")

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        opcode = "fcmp" if a.element in ("float", "double") else "icmp"
        return self.emit("i1", a.lanes, f"{opcode} {predicate} {a}, {b.ref}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        if condition.lanes == 0 or condition.lanes == a.lanes:
            return self.emit(a.element, a.lanes, f"select {condition}, {a}, {b}")
        raise AssertionError("select: lanes differ")

    def convert(self, opcode: str, a: Value, element: str) -> Value:
        return self.emit(element, a.lanes, f"{opcode} {a} to {type_name(element, a.lanes)}")

    def call(self, name: str, element: str, lanes: int, *arguments: Value, attributes: str = "nounwind") -> Value:
        """Call a function, declaring it on first use."""
        result = type_name(element, lanes)
        self.module.declare(name, result, ", ".join(a.type for a in arguments), attributes)
        return self.emit(element, lanes, f"call {result} @{name}({', '.join(map(str, arguments))})")

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """An overloaded LLVM intrinsic whose result has the type of its first argument."""
        a = arguments[0]
        full = f"llvm.{name}.{overload_suffix(a.element, a.lanes)}"
        return self.call(full, a.element, a.lanes, *arguments, attributes="")

    def splat(self, a: Value, lanes: int) -> Value:
        """`a` in every lane; a literal stays a literal."""
        if not lanes or a.lanes:
            return a
        if not a.ref.startswith("%"):
            return literal_vector(a, lanes)
        kind = type_name(a.element, lanes)
        first = self.emit(a.element, lanes, f"insertelement {kind} poison, {a}, i64 0")
        return self.emit(a.element, lanes, f"shufflevector {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def extract(self, a: Value, lane: int | Value) -> Value:
        where = f"i64 {lane}" if isinstance(lane, int) else str(lane)
        return self.emit(a.element, 0, f"extractelement {a}, {where}")

    def insert(self, a: Value, b: Value, lane: int) -> Value:
        return self.emit(a.element, a.lanes, f"insertelement {a}, {b}, i64 {lane}")

    def shuffle(self, a: Value, b: Value | None, order: list[int]) -> Value:
        second = str(b) if b is not None else f"{a.type} poison"
        mask = ", ".join(f"i32 {lane}" for lane in order)
        return self.emit(a.element, len(order), f"shufflevector {a}, {second}, <{len(order)} x i32> <{mask}>")


def literal_vector(a: Value, lanes: int) -> Value:
    ref = "zeroinitializer" if a.ref in ("0", "false", "null") else f"splat ({a.element} {a.ref})"
    return Value(ref, a.element, lanes)
