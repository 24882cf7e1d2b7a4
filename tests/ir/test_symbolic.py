"""Symbolic sizes: normal form, ranges, and agreement with plain integer arithmetic."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.ir import symbolic as sym
from monograph.ir.symbolic import Symbol

a, b, c = Symbol("a", 2, 64), Symbol("b", 1), Symbol("c")


def test_sums_are_normalised():
    assert a + b == b + a
    assert (a + 1) * (a - 1) == a * a - 1
    assert a - a == 0
    assert isinstance((a + 1) - a, int)
    assert hash(2 * a + b) == hash(b + a + a)


def test_floor_division_and_modulo_simplify():
    assert (4 * a + 2) // 2 == 2 * a + 1
    assert (4 * a + 6) // 8 == (2 * a + 3) // 4
    assert (a * b) // b == a
    assert (a * b + b) // b == a + 1
    assert (a * b) % b == 0
    assert (a * c) // c != a                      # c may be zero
    assert (4 * a) % 4 == 0
    assert a % 128 == a
    assert ((c // 2) // 3) == c // 6
    assert ((a + b) * (a + 2)) // (a + 2) == a + b


def test_maximum_and_minimum_use_ranges():
    assert sym.maximum(a, 1) == a
    assert sym.minimum(a, 100) == a
    assert str(sym.maximum(c, 1)) == "max(1, c)"
    assert sym.maximum(b, sym.maximum(c, b)) == sym.maximum(b, c)


def test_bounds():
    assert sym.bounds(a * 2 + 1) == (5, 129)
    assert sym.bounds(a * b) == (2, None)
    assert sym.bounds(5 - a) == (-59, 3)
    assert sym.bounds(c % 7) == (0, 6)
    assert sym.bounds(a // 3) == (0, 21)


def test_comparisons_are_decided_only_when_known():
    assert sym.known_le(1, a) and sym.known_lt(a, a + 1) and sym.known_unequal(a, 0)
    assert not sym.known_le(a, b) and not sym.known_le(b, a)
    assert sym.statically_equal(2 * (a + b), a + b + a + b)


def test_evaluate_names_a_missing_symbol():
    assert sym.evaluate(a * b + 1, {"a": 3, "b": 4}) == 13
    with pytest.raises(KeyError):
        sym.evaluate(a * b, {"a": 3})


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([a, b, c, 0, 1, 2, 3, -1, 7]))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    kind = draw(st.sampled_from("+-*/%xn"))
    if kind in "/%":
        right = draw(st.sampled_from([1, 2, 3, 4, 6, -2, a, b, a * b]))
        return left // right if kind == "/" else left % right
    return {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right,
            "x": lambda: sym.maximum(left, right), "n": lambda: sym.minimum(left, right)}[kind]()


@given(expressions(4), st.integers(2, 64), st.integers(1, 50), st.integers(0, 50))
@settings(max_examples=150, deadline=None)
def test_text_value_and_bounds_agree(expr, x, y, z):
    env = {"a": x, "b": y, "c": z}
    value = sym.evaluate(expr, env)
    assert eval(str(expr), {"max": max, "min": min}, env) == value
    assert sym.substitute(expr, {"a": a}) == expr
    lo, hi = sym.bounds(expr)
    assert (lo is None or lo <= value) and (hi is None or value <= hi)
    assert eval(str(expr), {"max": sym.maximum, "min": sym.minimum}, {"a": a, "b": b, "c": c}) == expr


def test_products_of_sizes_have_an_order():
    s, t = Symbol("s", 2), Symbol("t", 2)
    assert sym.known_lt(t, s * t) and sym.known_le(s + t, s * t) and not sym.known_le(s * t, t)
    assert sym.bounds(s * t - t) == (2, None) and sym.bounds(t * t - 3 * t) == (-2, None)
    assert sym.bounds(Symbol("u", None) * t - t) == (None, None)


def test_a_small_negative_number_is_one_short_of_a_multiple():
    s = Symbol("s", 2)
    assert (-32 + 0 * s) // (128 * s) == -1 and sym.evaluate((0 * s - 1) % s, {"s": 5}) == 4
    b = Symbol("b", 2)
    assert (b * s - 1) // s == b - 1 and (b * s - 1) % s == s - 1
    assert (s - s * 2) // (3 * s) == -1 and (s - s * 2) % (3 * s) == 2 * s
    assert isinstance((-3 + 0 * s) // s, sym.Quotient)
