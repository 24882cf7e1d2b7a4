"""Symbolic sizes: integers known only at run time.

    Dim  ::= int | Expr
    Expr ::= Symbol(name, lo, hi)
           | Sum(coefficient * Atom* ..., constant)        normalised; never a lone atom or a number
           | Quotient(Dim, Dim) | Remainder(Dim, Dim)      floor division and modulo, as in Python
           | Maximum(Dim*) | Minimum(Dim*)
    Atom ::= every Expr but Sum

Expressions are immutable, hashable, compared structurally after normalisation, and know their
range. Build them with `+ - * // %`, `maximum` and `minimum`; operators give an int back where the
result is constant. `str` is Python source over the symbols' names. Never a sympy object.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

__all__ = [
    "Dim", "Expr", "Maximum", "Minimum", "Quotient", "Remainder", "Sum", "Symbol", "bounds", "divisors", "evaluate",
    "filled", "free_symbols", "known_equal", "known_le", "known_lt", "known_nonzero", "known_unequal", "maximum",
    "minimum", "product", "quotient", "remainder", "statically_equal", "substitute", "symbols_of", "tells_one",
]

Bounds: TypeAlias = "tuple[int | None, int | None]"


class Expr:
    """A non-constant integer expression."""

    __slots__ = ("_filled", "_hash", "_key", "_text")

    _key: tuple[object, ...]
    _hash: int
    _text: str | None
    _filled: Dim | None

    def _seal(self, *key: object) -> None:
        self._key = (type(self).__name__, *key)
        self._hash = hash(self._key)
        self._text = self._filled = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self._hash == other._hash and self._key == other._key)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self)
        return self._text

    __repr__ = __str__

    def __add__(self, other: Dim) -> Dim:
        return _sum([(self, 1), (other, 1)]) if isinstance(other, (int, Expr)) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _sum([(self, -1)])

    def __sub__(self, other: Dim) -> Dim:
        return _sum([(self, 1), (other, -1)]) if isinstance(other, (int, Expr)) else NotImplemented

    def __rsub__(self, other: Dim) -> Dim:
        return _sum([(self, -1), (other, 1)]) if isinstance(other, (int, Expr)) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return _times(self, other) if isinstance(other, (int, Expr)) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return _quotient(self, other) if isinstance(other, (int, Expr)) else NotImplemented

    def __rfloordiv__(self, other: Dim) -> Dim:
        return _quotient(other, self) if isinstance(other, (int, Expr)) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return _remainder(self, other) if isinstance(other, (int, Expr)) else NotImplemented

    def __rmod__(self, other: Dim) -> Dim:
        return _remainder(other, self) if isinstance(other, (int, Expr)) else NotImplemented


class Symbol(Expr):
    """A named size with a range; `hi` None means unbounded. Two symbols of one name are equal."""

    __slots__ = ("hi", "lo", "name")

    def __init__(self, name: str, lo: int = 0, hi: int | None = None) -> None:
        self.name = name
        self.lo = lo
        self.hi = hi
        self._seal(name)


Dim: TypeAlias = int | Expr
Monomial: TypeAlias = tuple[Expr, ...]      # atoms, sorted, repeated for powers


class Sum(Expr):
    """constant + sum of coefficient * product of atoms."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], constant: int) -> None:
        self.terms = terms
        self.constant = constant
        self._seal(terms, constant)


class _Pair(Expr):
    __slots__ = ("left", "right")

    def __init__(self, left: Dim, right: Dim) -> None:
        self.left = left
        self.right = right
        self._seal(left, right)


class Quotient(_Pair):
    """left // right"""

    __slots__ = ()


class Remainder(_Pair):
    """left % right"""

    __slots__ = ()


class _Many(Expr):
    __slots__ = ("args",)

    def __init__(self, args: tuple[Dim, ...]) -> None:
        self.args = args
        self._seal(args)


class Maximum(_Many):
    __slots__ = ()


class Minimum(_Many):
    __slots__ = ()


# --- building in normal form --------------------------------------------------------------------

def _order(monomial: Monomial) -> tuple[int, list[str]]:
    return -len(monomial), [str(atom) for atom in monomial]


def _terms(dim: Dim) -> tuple[dict[Monomial, int], int]:
    if isinstance(dim, int):
        return {}, dim
    if isinstance(dim, Sum):
        return dict(dim.terms), dim.constant
    return {(dim,): 1}, 0


def _rebuild(terms: Mapping[Monomial, int], constant: int) -> Dim:
    kept = sorted(((m, c) for m, c in terms.items() if c), key=lambda term: _order(term[0]))
    if not kept:
        return constant
    if constant == 0 and len(kept) == 1 and kept[0][1] == 1 and len(kept[0][0]) == 1:
        return kept[0][0][0]
    return Sum(tuple(kept), constant)


def _sum(parts: Iterable[tuple[Dim, int]]) -> Dim:
    terms: dict[Monomial, int] = {}
    constant = 0
    for dim, factor in parts:
        more, number = _terms(dim)
        constant += factor * number
        for monomial, coefficient in more.items():
            terms[monomial] = terms.get(monomial, 0) + factor * coefficient
    return _rebuild(terms, constant)


def _times(a: Dim, b: Dim) -> Dim:
    left, left_constant = _terms(a)
    right, right_constant = _terms(b)
    if left_constant:
        left[()] = left_constant
    if right_constant:
        right[()] = right_constant
    terms: dict[Monomial, int] = {}
    for m, c in left.items():
        for n, d in right.items():
            monomial = tuple(sorted(m + n, key=str))
            terms[monomial] = terms.get(monomial, 0) + c * d
    constant = terms.pop((), 0)
    return _rebuild(terms, constant)


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """The monomial divided by `factor`, or None where it is not a multiple."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _exact(a: Dim, b: Expr) -> Dim | None:
    """a / b where that is a polynomial again (long division by the leading term of b)."""
    divisor, divisor_constant = _terms(b)
    lead = min(divisor, key=_order)
    quotient: Dim = 0
    rest = a
    for _ in range(16):
        terms, constant = _terms(rest)
        if not terms:
            return quotient if constant == 0 else None
        top = min(terms, key=_order)
        shared = _without(top, lead)
        if shared is None or terms[top] % divisor[lead]:
            return None
        step = _rebuild({shared: terms[top] // divisor[lead]}, 0) if shared else terms[top] // divisor[lead]
        quotient = quotient + step
        rest = rest - step * b
    return None


def _quotient(a: Dim, b: Dim) -> Dim:
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"{a} // 0")
        if isinstance(a, int):
            return a // b
        if b < 0:
            return _quotient(-a, -b)
        return _quotient_by_number(a, b)
    if known_nonzero(b):
        if a == 0:
            return 0
        exact = _exact(a, b)
        if exact is not None:
            return exact
    times = _known_quotient(a, b)
    return Quotient(a, b) if times is None else times


def quotient(a: Dim, b: Dim) -> Dim:
    """a // b for who does not ask where b is 0, which the ranges need not rule out."""
    exact = _exact(a, b) if isinstance(b, Expr) else None
    return a // b if exact is None else exact


def remainder(a: Dim, b: Dim) -> Dim:
    """a % b in the same way."""
    return a % b if not isinstance(b, Expr) or _exact(a, b) is None else 0


def _known_quotient(a: Dim, b: Dim) -> Dim | None:
    """How many times `b`, at least 1, goes into `a`, where that can be told: (x * b + r) // b -> x + r // b, which is
    0 or -1 where the ranges say so."""
    if not known_le(1, b):
        return None
    if isinstance(b, int):
        return 0 if known_le(0, a) and known_lt(a, b) else None
    whole: Dim = 0
    terms, constant = _terms(a)
    rest: Dim = constant
    for monomial, coefficient in terms.items():
        term = coefficient * product(monomial)
        exact = _exact(term, b)
        whole, rest = (whole, rest + term) if exact is None else (whole + exact, rest)
    for times in (0, -1):
        if known_le(times * b, rest) and known_lt(rest, (times + 1) * b):
            return whole + times
    return None


def _quotient_by_number(a: Expr, b: int) -> Dim:
    terms, constant = _terms(a)
    # (b * x + r) // b -> x + r // b
    whole = _rebuild({m: c // b for m, c in terms.items() if c % b == 0}, constant // b)
    rest = {m: c for m, c in terms.items() if c % b}
    left = constant % b
    if not rest:
        return whole
    # (g * x + r) // (g * b) -> (x + r // g) // b
    common = math.gcd(b, *rest.values())
    inner = _rebuild({m: c // common for m, c in rest.items()}, left // common)
    b //= common
    assert isinstance(inner, Expr)
    if b == 1:
        return whole + inner
    lo, hi = bounds(inner)
    if lo is not None and hi is not None and lo // b == hi // b:
        return whole + lo // b
    if isinstance(inner, Quotient) and isinstance(inner.right, int) and inner.right > 0:
        return whole + _quotient(inner.left, inner.right * b)
    return whole + Quotient(inner, b)


def _remainder(a: Dim, b: Dim) -> Dim:
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"{a} % 0")
        if isinstance(a, int):
            return a % b
        terms, constant = _terms(a)
        if b > 0:
            a = _rebuild({m: c % b for m, c in terms.items()}, constant % b)
            if isinstance(a, int):
                return a % b
    elif known_nonzero(b) and (a == 0 or _exact(a, b) is not None):
        return 0
    times = _known_quotient(a, b)
    return Remainder(a, b) if times is None else a - times * b


def maximum(*dims: Dim) -> Dim:
    """The largest of `dims`."""
    return _extreme(Maximum, dims)


def minimum(*dims: Dim) -> Dim:
    """The smallest of `dims`."""
    return _extreme(Minimum, dims)


def _extreme(cls: type[Maximum] | type[Minimum], dims: Iterable[Dim]) -> Dim:
    flat: list[Dim] = []
    for dim in dims:
        flat.extend(dim.args if isinstance(dim, cls) else (dim,))
    kept: list[Dim] = []
    for dim in flat:
        if any(_covers(cls, other, dim) for other in kept):
            continue
        kept = [other for other in kept if not _covers(cls, dim, other)]
        kept.append(dim)
    if len(kept) == 1:
        return kept[0]
    return cls(tuple(sorted(kept, key=str)))


def _covers(cls: type[Maximum] | type[Minimum], a: Dim, b: Dim) -> bool:
    return known_le(b, a) if cls is Maximum else known_le(a, b)


def product(dims: Iterable[Dim]) -> Dim:
    """Product of dims; 1 for none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


# --- ranges and decidable comparisons -----------------------------------------------------------

def bounds(dim: Dim) -> Bounds:
    """(lo, hi), both inclusive; None where there is no bound."""
    if isinstance(dim, int):
        return dim, dim
    if isinstance(dim, Symbol):
        return dim.lo, dim.hi
    if isinstance(dim, Sum):
        total: Bounds = (dim.constant, dim.constant)
        for monomial, coefficient in dim.terms:
            part: Bounds = (coefficient, coefficient)
            for atom in monomial:
                part = _multiply_bounds(part, bounds(atom))
            total = _add(total[0], part[0]), _add(total[1], part[1])
        return (total[0] if total[0] is not None else _least(dim)), total[1]
    if isinstance(dim, Quotient):
        return _quotient_bounds(bounds(dim.left), bounds(dim.right))
    if isinstance(dim, Remainder):
        lo, hi = bounds(dim.right)
        if lo is not None and lo > 0:
            return 0, None if hi is None else hi - 1
        return None, None
    assert isinstance(dim, (Maximum, Minimum))
    return _extreme_bounds(dim)


def _least(dim: Sum) -> int | None:
    """A lower bound of what intervals do not tell of: with every atom written as its least value and something that is
    not negative, the constant, if no coefficient is negative.   s*t - t, both from 2: (s'+2)(t'+2) - (t'+2) >= 2"""
    shifted: dict[tuple[Expr, ...], int] = {}
    for monomial, coefficient in dim.terms:
        parts: dict[tuple[Expr, ...], int] = {(): coefficient}
        for atom in monomial:
            low = bounds(atom)[0]
            if low is None:
                return None
            grown = {(*atoms, atom): factor for atoms, factor in parts.items()}
            for atoms, factor in parts.items():
                grown[atoms] = grown.get(atoms, 0) + low * factor
            parts = grown
        for atoms, factor in parts.items():
            shifted[atoms] = shifted.get(atoms, 0) + factor
    constant = dim.constant + shifted.pop((), 0)
    return constant if all(factor >= 0 for factor in shifted.values()) else None


def _extreme_bounds(dim: Maximum | Minimum) -> Bounds:
    pairs = [bounds(arg) for arg in dim.args]
    lows, highs = [lo for lo, _ in pairs], [hi for _, hi in pairs]
    known_lows, known_highs = [lo for lo in lows if lo is not None], [hi for hi in highs if hi is not None]
    if isinstance(dim, Maximum):
        return max(known_lows, default=None), None if None in highs else max(known_highs)
    return None if None in lows else min(known_lows), min(known_highs, default=None)


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _multiply_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Interval product, unbounded ends taken as infinities (0 * inf is 0)."""
    def widen(pair: Bounds) -> tuple[float, float]:
        return (-math.inf if pair[0] is None else pair[0]), (math.inf if pair[1] is None else pair[1])

    def times(x: float, y: float) -> float:
        return 0 if x == 0 or y == 0 else x * y

    corners = [times(x, y) for x in widen(a) for y in widen(b)]
    return _narrow(min(corners)), _narrow(max(corners))


def _narrow(value: float) -> int | None:
    return None if isinstance(value, float) and math.isinf(value) else int(value)


def _quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    low_divisor, high_divisor = b
    if low_divisor is None or low_divisor <= 0:
        return None, None
    if a[0] is None:
        lo = None
    elif a[0] >= 0:
        lo = 0 if high_divisor is None else a[0] // high_divisor
    else:
        lo = a[0] // low_divisor
    if a[1] is None:
        hi = None
    elif a[1] >= 0:
        hi = a[1] // low_divisor
    else:
        hi = -1 if high_divisor is None else a[1] // high_divisor
    return lo, hi


def tells_one(dim: Dim) -> bool:
    """Whether there is one value of one symbol for which `dim` is 0: k * s + c."""
    if not isinstance(dim, Sum):
        return isinstance(dim, Symbol)
    return len(dim.terms) == 1 and len(dim.terms[0][0]) == 1 and isinstance(dim.terms[0][0][0], Symbol)


def statically_equal(a: Dim, b: Dim) -> bool:
    """Equal whatever the symbols are."""
    return a == b or (a - b) == 0


known_equal = statically_equal


def known_le(a: Dim, b: Dim) -> bool:
    """a <= b for every value the symbols' ranges allow; False also means "not known"."""
    lo, _ = bounds(b - a)
    return lo is not None and lo >= 0


def known_lt(a: Dim, b: Dim) -> bool:
    return known_le(a + 1, b)


def filled(dim: Dim) -> Dim:
    """`dim` for who only asks about it where no symbol is 0: its ranges are narrower."""
    if isinstance(dim, int):
        return dim
    if dim._filled is None:
        empty = {name: Symbol(name, 1, symbol.hi) for name, symbol in symbols_of(dim).items() if symbol.lo < 1}
        dim._filled = substitute(dim, empty) if empty else dim
    return dim._filled


def known_unequal(a: Dim, b: Dim) -> bool:
    return known_lt(a, b) or known_lt(b, a)


def known_nonzero(dim: Dim) -> bool:
    return known_unequal(dim, 0)


# --- walking ------------------------------------------------------------------------------------

def _children(dim: Expr) -> tuple[Dim, ...]:
    if isinstance(dim, Sum):
        return tuple(atom for monomial, _ in dim.terms for atom in monomial)
    if isinstance(dim, _Pair):
        return dim.left, dim.right
    return dim.args if isinstance(dim, _Many) else ()


def substitute(dim: Dim, env: Mapping[str, Dim]) -> Dim:
    """`dim` with the symbols named in `env` replaced, normalised again."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, Symbol):
        return env.get(dim.name, dim)
    if isinstance(dim, Sum):
        total: Dim = dim.constant
        for monomial, coefficient in dim.terms:
            total = total + coefficient * product(substitute(atom, env) for atom in monomial)
        return total
    if isinstance(dim, Quotient):
        return _quotient(substitute(dim.left, env), substitute(dim.right, env))
    if isinstance(dim, Remainder):
        return _remainder(substitute(dim.left, env), substitute(dim.right, env))
    assert isinstance(dim, _Many)
    return _extreme(type(dim), [substitute(arg, env) for arg in dim.args])  # type: ignore[arg-type]


def evaluate(dim: Dim, env: Mapping[str, int]) -> int:
    """The number `dim` stands for when its symbols have the values of `env`; KeyError for a missing one."""
    result = substitute(dim, env)
    if isinstance(result, int):
        return result
    raise KeyError(min(free_symbols(result)))


def symbols_of(dim: Dim) -> dict[str, Symbol]:
    """The symbols in `dim` by name."""
    if isinstance(dim, int):
        return {}
    if isinstance(dim, Symbol):
        return {dim.name: dim}
    found: dict[str, Symbol] = {}
    for child in _children(dim):
        found.update(symbols_of(child))
    return found


def free_symbols(dim: Dim) -> frozenset[str]:
    """Names of the symbols in `dim`."""
    return frozenset(symbols_of(dim))


def divisors(dim: Dim) -> frozenset[str]:
    """Names of the symbols that `dim` divides others by."""
    if isinstance(dim, _Pair):
        return divisors(dim.left) | divisors(dim.right) | free_symbols(dim.right) - free_symbols(dim.left)
    parts = dim.args if isinstance(dim, _Many) else [
        atom for monomial, _ in dim.terms for atom in monomial] if isinstance(dim, Sum) else []
    return frozenset[str]().union(*map(divisors, parts))


# --- text ---------------------------------------------------------------------------------------

def _text(dim: Expr) -> str:
    if isinstance(dim, Symbol):
        return dim.name
    if isinstance(dim, Sum):
        return _sum_text(dim)
    if isinstance(dim, _Pair):
        sign = "//" if isinstance(dim, Quotient) else "%"
        return f"{_factor(dim.left)}{sign}{_factor(dim.right)}"
    assert isinstance(dim, _Many)
    return f"{'max' if isinstance(dim, Maximum) else 'min'}({', '.join(str(arg) for arg in dim.args)})"


def _factor(dim: Dim) -> str:
    simple = isinstance(dim, (Symbol, _Many)) or (isinstance(dim, int) and dim >= 0)
    return str(dim) if simple else f"({dim})"


def _sum_text(dim: Sum) -> str:
    text = ""
    pieces = [("*".join(_factor(atom) for atom in m), c) for m, c in dim.terms]
    for body, coefficient in pieces:
        size = abs(coefficient)
        piece = body if size == 1 else f"{size}*{body}"
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {piece}" if text else (f"-{piece}" if coefficient < 0 else piece)
    if dim.constant:
        text += f" {'-' if dim.constant < 0 else '+'} {abs(dim.constant)}"
    return text
