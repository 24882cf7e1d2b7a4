"""Index arithmetic that knows the range of every loop variable.

An index is kept as a sum of terms with integer coefficients, so that a chain of reshapes, transposes and
slices ends in plain strides:

    (i*4 + j) // 4 -> i                 where 0 <= j < 4
    (i*6 + j*2 + k) % 6 -> j*2 + k      where 0 <= j*2 + k < 6
    (x // 4)*4 + x % 4 -> x
    (x // a) // b -> x // (a*b)         (x % (a*b)) // b -> (x // b) % a

Every variable has one range [0, extent) for the whole kernel. Sums wrap like i64, so terms may always be collected;
divisions are only taken apart where nothing can overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from monograph.ir.sized import Sized, example, gcd, known_less, maximum, minimum
from monograph.loops import optimise
from monograph.loops.nodes import INDEX, Const, Expr, Op, Var, const, index, number, op
from monograph.source import SourceLoc

__all__ = ["Affine", "Linear"]

Linear = tuple[dict[Expr, int], int]
LARGE = 1 << 62
COMPARE = {"lt", "le", "gt", "ge", "eq", "ne"}


class Affine:
    """Builds simplified expressions over variables whose extents it knows."""

    def __init__(self) -> None:
        self.extents: dict[Var, int] = {}
        self._serial: dict[Expr, int] = {}
        self._ranges: dict[Expr, tuple[int, int]] = {}

    # Building.

    def op(self, name: str, *args: Expr, dtype: torch.dtype, loc: SourceLoc | None = None) -> Expr:
        """`name(args)`, simplified."""
        folded = optimise.fold(name, args, dtype)
        if folded is not None:
            return folded
        if dtype is INDEX and name in ("add", "sub", "mul", "neg", "floordiv", "mod"):
            simple = self._index(name, args)
            if simple is not None:
                return simple
        if name == "select" and dtype is INDEX:
            return self._choice(*args)
        if name in COMPARE and args[0].dtype is INDEX:
            known = self._compare(name, args[0], args[1])
            if known is not None:
                return const(known, torch.bool)
        return op(name, *args, dtype=dtype, loc=loc)

    def _choice(self, condition: Expr, x: Expr, y: Expr) -> Expr:
        """select(c, x + s, y + s) -> s + select(c, x, y): the strides of s stay visible."""
        (left, a), (right, b) = self.linear(x), self.linear(y)
        shared = {term: c for term, c in left.items() if right.get(term) == c}
        if not shared:
            return op("select", condition, x, y, dtype=INDEX)
        x = self.build({term: c for term, c in left.items() if term not in shared}, a)
        y = self.build({term: c for term, c in right.items() if term not in shared}, b)
        return self.add(self.build(shared, 0), x if x is y else op("select", condition, x, y, dtype=INDEX))

    def _index(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        if name == "neg":
            return self.scale(args[0], -1)
        left, right = args
        if name == "add":
            return self.add(left, right)
        if name == "sub":
            return self.add(left, self.scale(right, -1))
        if name == "mul":
            for x, y in ((left, right), (right, left)):
                if isinstance(y, Const):
                    return self.scale(x, number(y))
            return None
        if isinstance(right, Const) and right.value > 0:
            return self.floordiv(left, number(right)) if name == "floordiv" else self.mod(left, number(right))
        return None

    def add(self, *exprs: Expr | int) -> Expr:
        """The sum of index expressions."""
        terms: dict[Expr, int] = {}
        constant = 0
        for expr in exprs:
            if isinstance(expr, int):
                constant += expr
                continue
            more, offset = self.linear(expr)
            constant += offset
            for term, coefficient in more.items():
                terms[term] = terms.get(term, 0) + coefficient
        return self.build(terms, constant)

    def scale(self, expr: Expr, factor: int) -> Expr:
        terms, constant = self.linear(expr)
        return self.build({term: c * factor for term, c in terms.items()}, constant * factor)

    def dot(self, coordinates: Sequence[Expr], strides: Sequence[int]) -> Expr:
        """The sum of coordinate times stride."""
        return self.add(*(self.scale(c, stride) for c, stride in zip(coordinates, strides, strict=True)))

    def linear(self, expr: Expr) -> Linear:
        """`expr` as terms with coefficients, and a constant."""
        if isinstance(expr, Const):
            return {}, number(expr)
        if not isinstance(expr, Op) or expr.dtype is not INDEX or expr.name not in ("add", "sub", "mul", "neg"):
            return {expr: 1}, 0
        if expr.name == "mul":
            other, factor = expr.args
            if not isinstance(factor, Const):
                return {expr: 1}, 0
            terms, constant = self.linear(other)
            return {term: c * number(factor) for term, c in terms.items()}, constant * number(factor)
        terms, constant = self.linear(expr.args[0])
        sign = 1 if expr.name == "add" else -1
        if expr.name == "neg":
            return {term: -c for term, c in terms.items()}, -constant
        terms = dict(terms)
        more, offset = self.linear(expr.args[1])
        for term, c in more.items():
            terms[term] = terms.get(term, 0) + sign * c
        return terms, constant + sign * offset

    def build(self, terms: Mapping[Expr, int], constant: int) -> Expr:
        """The canonical expression of a sum: larger strides first, the constant last."""
        terms = self._recombine({term: c for term, c in terms.items() if c})
        offset = terms.pop(_UNIT, 0)
        constant += offset
        ordered = sorted(terms.items(), key=lambda item: (-abs(example(item[1])), self._number(item[0])))
        result: Expr | None = None
        for term, coefficient in ordered:
            product = term if coefficient == 1 else op("mul", term, index(coefficient), dtype=INDEX)
            result = product if result is None else op("add", result, product, dtype=INDEX)
        if result is None:
            return index(constant)
        return op("add", result, index(constant), dtype=INDEX) if constant else result

    def _number(self, expr: Expr) -> int:
        return self._serial.setdefault(expr, len(self._serial))

    def _recombine(self, terms: dict[Expr, int]) -> dict[Expr, int]:
        """(x // k)*k*c + (x % k)*c -> x*c, until nothing matches; a constant is counted on `_UNIT`."""
        changed = True
        while changed:
            changed = False
            for term, c in list(terms.items()):
                if not (isinstance(term, Op) and term.name == "mod" and isinstance(term.args[1], Const)):
                    continue
                x, k = term.args[0], number(term.args[1])
                quotient, offset = self.linear(self.floordiv(x, k))
                if not quotient or any(terms.get(t) != c * k * q for t, q in quotient.items()):
                    continue
                for t in (term, *quotient):
                    del terms[t]
                whole, base = self.linear(x)
                for t, q in whole.items():
                    terms[t] = terms.get(t, 0) + c * q
                    if not terms[t]:
                        del terms[t]
                constant = c * base - c * k * offset
                if constant:
                    terms[_UNIT] = terms.get(_UNIT, 0) + constant
                changed = True
                break
        return terms

    # Division.

    def floordiv(self, expr: Expr, k: int) -> Expr:
        """expr // k, rounded down, for k > 0."""
        terms, constant = self.linear(expr)
        if k == 1 or not self._safe(expr):
            return expr if k == 1 else op("floordiv", expr, index(k), dtype=INDEX)
        whole = {term: c // k for term, c in terms.items() if c % k == 0}
        rest = {term: c for term, c in terms.items() if c % k}
        quotient, remainder = divmod(constant, k)
        lo, hi = self._span(rest, remainder)
        if lo // k == hi // k:
            return self.build(whole, quotient + lo // k)
        factored = self._factor(rest, remainder, k)
        if factored is not None:
            g, inner, _ = factored
            return self.add(self.build(whole, quotient), self.floordiv(inner, k // g))
        return self.add(self.build(whole, quotient), self._divide(self.build(rest, remainder), k))

    def _divide(self, rest: Expr, k: int) -> Expr:
        if isinstance(rest, Op) and isinstance(rest.args[-1], Const):
            inner, m = rest.args[0], number(rest.args[-1])
            if rest.name == "floordiv":                             # (x // m) // k -> x // (m*k)
                return self.floordiv(inner, m * k)
            if rest.name == "mod" and m % k == 0:                   # (x % (m'*k)) // k -> (x // k) % m'
                return self.mod(self.floordiv(inner, k), m // k)
        return op("floordiv", rest, index(k), dtype=INDEX)

    def mod(self, expr: Expr, k: int) -> Expr:
        """expr % k, never negative, for k > 0."""
        terms, constant = self.linear(expr)
        if k == 1:
            return index(0)
        if not self._safe(expr):
            return op("mod", expr, index(k), dtype=INDEX)
        rest = {term: c for term, c in terms.items() if c % k}
        remainder = constant % k
        lo, hi = self._span(rest, remainder)
        if lo // k == hi // k:
            return self.build(rest, remainder - k * (lo // k))
        factored = self._factor(rest, remainder, k)
        if factored is not None:
            g, inner, low = factored
            return self.add(self.scale(self.mod(inner, k // g), g), low)
        whole = self.build(rest, remainder)
        modulus = whole.args[1] if isinstance(whole, Op) and whole.name == "mod" else None
        if isinstance(modulus, Const) and number(modulus) % k == 0:      # (x % (m*k)) % k -> x % k
            return self.mod(whole.args[0], k)
        return op("mod", whole, index(k), dtype=INDEX)

    def _factor(self, terms: dict[Expr, int], constant: int, k: int) -> tuple[int, Expr, Expr] | None:
        """terms + constant = g*inner + low with 0 <= low < g, where g divides k; the largest such g."""
        candidates = {gcd(c, k) for c in terms.values()} - {1, k}
        for g in sorted(candidates, key=example, reverse=True):
            low = {term: c for term, c in terms.items() if c % g}
            lo, hi = self._span(low, constant % g)
            if known_less(-1, lo) and known_less(hi, g):
                high = {term: c // g for term, c in terms.items() if c % g == 0}
                return g, self.build(high, constant // g), self.build(low, constant % g)
        return None

    # Ranges.

    def range(self, expr: Expr) -> tuple[int, int]:
        """Smallest and largest value, inclusive, as far as is known."""
        found = self._ranges.get(expr)
        if found is None:
            found = self._ranges[expr] = self._range(expr)
        return found

    def _range(self, expr: Expr) -> tuple[int, int]:
        if isinstance(expr, Const):
            return number(expr), number(expr)
        if isinstance(expr, Var):
            return 0, maximum(self.extents[expr] - 1, 0)
        if isinstance(expr, Op):
            known = self._op_range(expr)
            if known is not None:
                return known
        return _dtype_range(expr.dtype)

    def _op_range(self, expr: Op) -> tuple[int, int] | None:
        args = expr.args
        if expr.name == "cast" and not args[0].dtype.is_floating_point:
            lo, hi = self.range(args[0])
            least, most = _dtype_range(expr.dtype)
            return (lo, hi) if known_less(least - 1, lo) and known_less(hi, most + 1) else None
        if expr.dtype is not INDEX:
            return None
        if expr.name in ("floordiv", "mod") and isinstance(args[1], Const) and args[1].value > 0:
            k = number(args[1])
            lo, hi = self.range(args[0])
            return (lo // k, hi // k) if expr.name == "floordiv" else (0, k - 1)
        if expr.name in ("select", "min", "max"):
            (a, b), (c, d) = self.range(args[-2]), self.range(args[-1])
            if expr.name == "select":
                return minimum(a, c), maximum(b, d)
            fold = minimum if expr.name == "min" else maximum
            return fold(a, c), fold(b, d)
        terms, constant = self.linear(expr)
        return None if expr in terms else self._span(terms, constant)

    def _span(self, terms: Mapping[Expr, int], constant: int) -> tuple[int, int]:
        lo = hi = constant
        for term, c in terms.items():
            a, b = self.range(term)
            lo += minimum(a * c, b * c)
            hi += maximum(a * c, b * c)
        return lo, hi

    def _safe(self, expr: Expr) -> bool:
        """Nothing overflows. What is made of sizes counts elements of a tensor."""
        return all(isinstance(end, Sized) or -LARGE < end < LARGE for end in self.range(expr))

    def _compare(self, name: str, a: Expr, b: Expr) -> bool | None:
        """The truth of a comparison where the ranges tell."""
        if a is b:
            return name in ("le", "ge", "eq")
        if not (self._safe(a) and self._safe(b)):
            return None
        lo, hi = self.range(self.add(a, self.scale(b, -1)))
        above, below = known_less(0, lo), known_less(hi, 0)
        if name in ("eq", "ne"):
            return (name == "ne") if above or below else (name == "eq") if lo == hi == 0 else None
        if name in ("gt", "le"):        # a > b is not a <= b
            return (name == "gt") if above else (name == "le") if known_less(hi, 1) else None
        return (name == "lt") if below else (name == "ge") if known_less(-1, lo) else None

    def inside(self, expr: Expr, size: int) -> bool:
        """0 <= expr < size for sure."""
        lo, hi = self.range(expr)
        return known_less(-1, lo) and known_less(hi, size)

    # Shapes.

    def ravel(self, coordinates: Sequence[Expr], shape: Sequence[int]) -> Expr:
        """The row-major position of a point."""
        return self.dot(coordinates, strides_of(shape))

    def unravel(self, flat: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
        """The point at row-major position `flat`."""
        result = []
        for size, stride in zip(shape, strides_of(shape)):
            result.append(self.mod(self.floordiv(flat, stride), size) if not known_less(size, 2) else index(0))
        return tuple(result)


_UNIT: Expr = index(1)


def _dtype_range(dtype: torch.dtype) -> tuple[int, int]:
    if dtype is torch.bool:
        return 0, 1
    if dtype.is_floating_point or dtype.is_complex:
        return -(1 << 63), (1 << 63) - 1
    info = torch.iinfo(dtype)
    return info.min, info.max


def strides_of(shape: Iterable[int]) -> tuple[int, ...]:
    """Row-major strides of `shape`."""
    strides: list[int] = []
    step = 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))
