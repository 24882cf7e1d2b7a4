"""Arithmetic on scalars or vectors of f32 and f64, as the elementary functions are written in.

Every method takes and returns values of one shape; numbers may stand for constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monograph.codegen.target import Target
from monograph.codegen.text import Text, Value, float_literal, literal_vector

__all__ = ["Math"]

Operand = Value | float


class Math:
    def __init__(self, text: Text, target: Target) -> None:
        self.text = text
        self.target = target

    # -- constants

    def constant(self, number: float, like: Value) -> Value:
        scalar = Value(float_literal(number, like.element), like.element)
        return literal_vector(scalar, like.lanes) if like.lanes else scalar

    def integer(self, number: int, like: Value) -> Value:
        """An integer constant as wide as `like`'s elements."""
        element = self.integer_element(like)
        bits = int(element[1:])
        number &= (1 << bits) - 1
        scalar = Value(str(number - (1 << bits) if number >> (bits - 1) else number), element)
        return literal_vector(scalar, like.lanes) if like.lanes else scalar

    def integer_element(self, like: Value) -> str:
        return {"float": "i32", "double": "i64"}.get(like.element, like.element)

    def _operand(self, value: Operand, like: Value) -> Value:
        return value if isinstance(value, Value) else self.constant(value, like)

    def _two(self, opcode: str, a: Operand, b: Operand) -> Value:
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value)
        return self.text.binary(opcode, self._operand(a, like), self._operand(b, like))

    # -- float arithmetic

    def add(self, a: Operand, b: Operand) -> Value:
        return self._two("fadd", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self._two("fsub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        return self._two("fmul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        return self._two("fdiv", a, b)

    def neg(self, a: Value) -> Value:
        return self.text.unary("fneg", a)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, fused where the machine can."""
        like = next(v for v in (a, b, c) if isinstance(v, Value))
        a, b, c = (self._operand(v, like) for v in (a, b, c))
        if self.target.has_fma:
            return self.text.intrinsic("fma", a, b, c)
        return self.text.binary("fadd", self.text.binary("fmul", a, b), c)

    def exact_fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.text.intrinsic("fma", a, b, c)

    def abs(self, a: Value) -> Value:
        return self.text.intrinsic("fabs", a)

    def sqrt(self, a: Value) -> Value:
        return self.text.intrinsic("sqrt", a)

    def round(self, a: Value) -> Value:
        return self.text.intrinsic("roundeven", a)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self.text.intrinsic("copysign", magnitude, sign)

    def max(self, a: Operand, b: Operand) -> Value:
        """b where unordered: one maxps."""
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value)
        a, b = self._operand(a, like), self._operand(b, like)
        return self.text.select(self.text.compare("ogt", a, b), a, b)

    def min(self, a: Operand, b: Operand) -> Value:
        """b where unordered: one minps."""
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value)
        a, b = self._operand(a, like), self._operand(b, like)
        return self.text.select(self.text.compare("olt", a, b), a, b)

    def poly(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Horner's rule, highest power first."""
        result: Operand = coefficients[0]
        for c in coefficients[1:]:
            result = self.fma(result, x, c)
        assert isinstance(result, Value)
        return result

    # -- comparison and choice

    def compare(self, predicate: str, a: Value, b: Operand) -> Value:
        return self.text.compare(predicate, a, self._operand(b, a))

    def is_nan(self, a: Value) -> Value:
        return self.text.compare("uno", a, a)

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value), "select between two numbers: make one a constant"
        return self.text.select(condition, self._operand(a, like), self._operand(b, like))

    def both(self, a: Value, b: Value) -> Value:
        return self.text.binary("and", a, b)

    def either(self, a: Value, b: Value) -> Value:
        return self.text.binary("or", a, b)

    def all_true(self, like: Value) -> Value:
        return Value("splat (i1 true)" if like.lanes else "true", "i1", like.lanes)

    # -- bits

    def bits(self, a: Value) -> Value:
        return self.text.convert("bitcast", a, self.integer_element(a))

    def from_bits(self, a: Value) -> Value:
        return self.text.convert("bitcast", a, {"i32": "float", "i64": "double"}[a.element])

    def whole(self, opcode: str, a: Value, b: Value | int) -> Value:
        """An integer operation: add, sub, and, or, xor, shl, lshr, ashr."""
        return self.text.binary(opcode, a, b if isinstance(b, Value) else self.integer(b, a))

    def whole_compare(self, predicate: str, a: Value, b: Value | int) -> Value:
        return self.text.compare(predicate, a, b if isinstance(b, Value) else self.integer(b, a))

    # -- shape

    def widened(self, fn: Callable[..., Value], *args: Value) -> Value:
        """`fn` of f32 arguments, computed in f64."""
        return self.text.convert("fptrunc", fn(*(self.text.convert("fpext", a, "double") for a in args)), "float")

    def rarely(self, condition: Value, fast: Value, slow: Callable[[], Value]) -> Value:
        """`fast`, or `slow()` for all lanes where `condition` holds in any: a branch that is seldom taken."""
        text = self.text
        if condition.lanes:
            element = f"i{condition.lanes}"
            bits = text.emit(element, 0, f"bitcast {condition} to {element}")
            condition = text.compare("ne", bits, Value("0", element))
        text.module.globals["!mg.rare"] = '!0 = !{!"branch_weights", i32 1, i32 4000}'
        before = text.mark("fast")
        other, join = text.label("slow"), text.label("join")
        text.line(f"br {condition}, label %{other}, label %{join}, !prof !0")
        text.place(other)
        value = slow()
        after = text.mark("slowed")
        text.line(f"br label %{join}")
        text.place(join)
        sources = f"[ {fast.ref}, %{before} ], [ {value.ref}, %{after} ]"
        return text.emit(fast.element, fast.lanes, f"phi {fast.type} {sources}")
