"""Pointwise ops: result[i] is a function of operand[i], after broadcasting and promotion.

    TABLE: packet name -> Pointwise(kind, fn)          one entry serves all overloads of a packet
    fn(m, *arguments) -> Expr                          arguments in the order of the schema: expressions for
                                                       tensors, plain Python for numbers and attributes

kind says in which dtype the tensor arguments reach `fn` and what happens to its result:

    result     computed in the op-math dtype of the result, then rounded to the result's dtype
    promoted   computed in the op-math dtype of what the operands promote to (comparisons)
    moved      operands cast to the result's dtype and not computed with (where, masked_fill); bool stays bool
    raw        operands in their own dtypes; fn's result is cast to the result's dtype
"""

from __future__ import annotations

import functools
import math as pymath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.sized import Sized, example
from monograph.ir.types import TensorType
from monograph.loops import lower_special
from monograph.loops.lower_scalar import Scalars, opmath
from monograph.loops.lower_value import Coordinates, Rule, Values, dtype_of, shape_of
from monograph.loops.nodes import Const, Expr, const, index

__all__ = ["TABLE", "RULES", "broadcast", "promoted"]

BOOL = torch.bool
UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "lgamma", "log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)
Function = Callable[..., Expr]


@dataclass(frozen=True, slots=True)
class Pointwise:
    kind: str
    fn: Function
    wide: str = ""          # the parameter whose numbers are not rounded to a half


def broadcast(value: Value, coordinates: Coordinates) -> Coordinates:
    """Where a broadcast operand is read: dims aligned at the right, size 1 read at 0."""
    shape = shape_of(value)
    own = coordinates[len(coordinates) - len(shape):]
    return tuple(index(0) if size == 1 else c for size, c in zip(shape, own, strict=True))


def promoted(operands: list[Any]) -> torch.dtype:
    """torch.result_type of tensors and numbers; a ScalarType value counts as a number."""
    keys = []
    for operand in operands:
        if isinstance(operand, Value):
            kind = operand.type
            keys.append((kind.dtype, kind.rank == 0) if isinstance(kind, TensorType) else _SAMPLE[kind.kind])
        elif operand is not None:
            keys.append(1 if isinstance(operand, Sized) else type(operand)(1))
    return _result_type(tuple(keys), tuple(type(key) for key in keys))


_SAMPLE: dict[str, int | float | bool] = {"int": 1, "float": 1.0, "bool": True}


@functools.cache
def _result_type(keys: tuple[Any, ...], kinds: tuple[type, ...]) -> torch.dtype:
    samples = [
        torch.empty(() if key[1] else (1,), dtype=key[0], device="meta") if isinstance(key, tuple) else kind(key)
        for key, kind in zip(keys, kinds)
    ]
    result = torch.result_type(samples[0], samples[-1])
    for sample in samples[1:-1]:
        result = torch.promote_types(result, torch.result_type(sample, samples[0]))
    return result


def _arguments(node: Node) -> list[Any]:
    """Operands and attributes in the order of the schema."""
    slots = iter(node.operands)
    return [next(slots) if p.is_operand else node.attributes[p.name] for p in node.op.parameters]


def _rule(entry: Pointwise) -> Rule:
    def rule(values: Values, node: Node, k: int, coordinates: Coordinates) -> Expr:
        result = dtype_of(node.results[k])
        given = _arguments(node)
        common = promoted([g for g, p in zip(given, node.op.parameters) if p.is_operand or p.name == "other"]) \
            if entry.kind == "promoted" else result
        compute = common if entry.kind == "moved" else opmath(common)
        require = functools.partial(_require, values, node)
        m = Scalars(values.affine, compute, node.loc, require, result, pymath.prod(shape_of(node.results[k])))
        arguments = [
            _argument(values, m, entry, common, argument, coordinates, parameter.name)
            for argument, parameter in zip(given, node.op.parameters)
        ]
        return m.cast(entry.fn(m, *arguments), result)

    return rule


# Note [Numbers among halves]: in an op on f16 or bf16 a Python number, or a 0-d tensor of another dtype, is first
# rounded to the half type; only the second factor of `mul` and the divisor of `div` stay in f32 (seen on torch 2.13).
ROUNDED = ("other", "self", "exponent", "alpha", "min", "max")


def _argument(
    values: Values, m: Scalars, entry: Pointwise, common: torch.dtype, argument: Any, coordinates: Coordinates,
    name: str,
) -> Any:
    """An argument as the function takes it."""
    if not isinstance(argument, Value):
        if isinstance(argument, (int, float)) and m.dtype is not common and name in ROUNDED and name != entry.wide:
            return torch.tensor(argument, dtype=torch.float64).to(common).item()
        return argument
    expr = values.at(argument, broadcast(argument, coordinates))
    if entry.kind == "raw":
        return expr
    if entry.kind == "moved":
        return expr if name in ("condition", "mask") else m.cast(expr, common)
    if name != entry.wide or shape_of(argument):
        expr = m.cast(expr, common)
    return m.cast(expr, m.dtype)


def _require(values: Values, node: Node, condition: Expr, exception: str, message: str) -> None:
    values.check(condition, exception, message, (), node)


# Functions of several lines.

def _add(m: Scalars, a: Any, b: Any, alpha: float = 1) -> Expr:
    """a + b * alpha, fused where alpha counts."""
    a, b = m.lift(a), m.lift(b)
    if alpha == 1:
        return m.add(a, b)
    return m("fma", b, alpha, a) if a.dtype.is_floating_point else m.add(a, m.mul(b, alpha))


def _sub(m: Scalars, a: Any, b: Any, alpha: float = 1) -> Expr:
    a, b = m.lift(a), m.lift(b)
    if alpha == 1:
        return m.sub(a, b)
    return m("fma", b, -alpha, a) if a.dtype.is_floating_point else m.sub(a, m.mul(b, alpha))


def _sign(m: Scalars, x: Expr) -> Expr:
    if x.dtype is BOOL:
        return x
    return m.select(m.gt(x, 0), 1, m.select(m.lt(x, 0), m.lift(-1) if _signed(x) else x, 0))


def _signed(x: Expr) -> bool:
    return x.dtype.is_floating_point or (x.dtype is not BOOL and x.dtype.is_signed)


def _abs(m: Scalars, x: Expr) -> Expr:
    return m("abs", x) if _signed(x) else x


def _clamp(m: Scalars, x: Expr, lo: Any = None, hi: Any = None) -> Expr:
    """NaN wins, among the bounds too; the upper bound wins where the bounds cross."""
    for name, beyond, bound in (("max", m.lt, lo), ("min", m.gt, hi)):
        if isinstance(bound, Expr):
            x = _extremum(m, name, x, bound)
        elif bound is not None:
            x = m.lift(bound) if bound != bound else m.select(beyond(x, bound), bound, x)
    return x


def _rounding(unary: str) -> Function:
    """Integers are whole already."""
    return lambda m, x: m(unary, x) if x.dtype.is_floating_point else x


def _round(m: Scalars, x: Expr, decimals: int = 0) -> Expr:
    if not x.dtype.is_floating_point or decimals == 0:
        return m("round", x) if x.dtype.is_floating_point else x
    scale = 10.0 ** abs(decimals)
    return m.div(m("round", m.mul(x, scale)), scale) if decimals > 0 else m.mul(m("round", m.div(x, scale)), scale)


def _compare(name: str) -> Function:
    return lambda m, a, b: m(name, m.lift(a), m.lift(b))


def _logical(name: str) -> Function:
    return lambda m, *args: m(name, *(m.truth(arg) for arg in args))


def _is(name: str) -> Function:
    def test(m: Scalars, x: Expr) -> Expr:
        if not x.dtype.is_floating_point:
            return const(name == "isfinite", BOOL)
        infinity = float("inf")
        return {
            "isnan": lambda: m("isnan", x), "isinf": lambda: m("isinf", x),
            "isfinite": lambda: m.lt(m("abs", x), infinity),
            "isposinf": lambda: m.eq(x, infinity), "isneginf": lambda: m.eq(x, -infinity),
        }[name]()

    return test


def _signbit(m: Scalars, x: Expr) -> Expr:
    if x.dtype.is_floating_point:
        return m("signbit", x)
    return m.lt(x, 0) if _signed(x) else const(False, BOOL)


def _shift(name: str) -> Function:
    return lambda m, a, b: m(name, m.lift(a), m.lift(b))


def _pow(m: Scalars, base: Any, exponent: Any) -> Expr:
    if isinstance(exponent, Const):
        exponent = exponent.value
    if isinstance(exponent, (int, float)) and isinstance(base, Expr):
        return _pow_number(m, base, exponent)
    base, exponent = m.lift(base), m.lift(exponent)
    if base.dtype.is_floating_point:
        return m("pow", base, exponent)
    return lower_special.integer_pow(m, base, exponent)


def _pow_number(m: Scalars, x: Expr, exponent: float) -> Expr:
    """The exponents torch treats apart, and whole powers of integers."""
    if not x.dtype.is_floating_point:
        if x.dtype is BOOL:
            return m("or", x, const(True, BOOL)) if exponent == 0 else x
        return lower_special.integer_pow(m, x, m.lift(exponent)) if exponent < 0 else _power(m, x, int(exponent))
    def square() -> Expr:
        return m.rounded(m.mul(x, x)) if m.result is torch.bfloat16 else m.mul(x, x)

    if abs(exponent) == 0.5 and m.result is torch.float16:      # no root: that of -inf is inf
        return m("pow", x, m.lift(exponent))
    simple = {
        0.0: lambda: m.lift(1.0), 1.0: lambda: x, 2.0: lambda: m.mul(x, x), 3.0: lambda: m.mul(square(), x),
        0.5: lambda: m("sqrt", x), -0.5: lambda: m.div(1.0, m("sqrt", x)), -1.0: lambda: m.div(1.0, x),
        -2.0: lambda: m.div(1.0, square()),
    }.get(float(exponent))
    return simple() if simple else m("pow", x, m.lift(exponent))


def _power(m: Scalars, x: Expr, exponent: int) -> Expr:
    result, square = m.lift(1), x
    while exponent:
        if exponent & 1:
            result = m.mul(result, square)
        square, exponent = m.mul(square, square) if exponent > 1 else square, exponent >> 1
    return result


def _neg(m: Scalars, x: Expr) -> Expr:
    return m("neg", x)


def _ldexp(m: Scalars, x: Expr, exponent: Expr) -> Expr:
    return m.mul(x, m.rounded(m("exp2", exponent)))


def _lerp(m: Scalars, start: Expr, end: Expr, weight: Any) -> Expr:
    """As torch: from the nearer end."""
    weight = m.lift(weight)
    difference = m.sub(end, start)
    near = m("fma", weight, difference, start)
    far = m("fma", m("neg", difference), m.sub(1.0, weight), end)
    return m.select(m.lt(m("abs", weight), 0.5), near, far)


def _addc(name: str) -> Function:
    """x + value * a * b, fused in the end as torch's compiler does; or x + value * a / b."""
    def fn(m: Scalars, x: Expr, a: Expr, b: Expr, value: float = 1) -> Expr:
        scaled = a if value == 1 else m.mul(m.lift(value), a)
        if name == "mul" and x.dtype.is_floating_point:
            return m("fma", scaled, b, x)
        return m.add(x, m(name, scaled, b))

    return fn


def _nan_to_num(m: Scalars, x: Expr, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Expr:
    """The largest finite number is that of the tensor's own dtype."""
    if not x.dtype.is_floating_point:
        return x
    info = torch.finfo(x.dtype)
    wide = m.cast(x, opmath(x.dtype))
    result = m.select(m("isnan", wide), m.lift(0.0 if nan is None else nan), wide)
    result = m.select(m.eq(wide, pymath.inf), m.lift(info.max if posinf is None else posinf), result)
    return m.select(m.eq(wide, -pymath.inf), m.lift(info.min if neginf is None else neginf), result)


def _where(m: Scalars, condition: Expr, x: Any, y: Any) -> Expr:
    return m.select(m.truth(condition), m.lift(x), m.lift(y))


def _masked_fill(m: Scalars, x: Expr, mask: Expr, value: Any) -> Expr:
    return m.select(m.truth(mask), m.lift(value), x)


def _heaviside(m: Scalars, x: Expr, at_zero: Expr) -> Expr:
    return m.select(m.eq(x, 0), at_zero, m.select(m.gt(x, 0), 1, 0))


def _threshold(m: Scalars, x: Expr, threshold: float, value: float) -> Expr:
    return m.select(m.le(x, threshold), value, x)


def _unary(name: str) -> Pointwise:
    return Pointwise("result", lambda m, x: m(name, x))


def _table() -> dict[str, Pointwise]:
    table = {name: _unary(name) for name in UNARY}
    for name in ("floor", "ceil", "trunc"):
        table[name] = Pointwise("result", _rounding(name))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        table[name] = Pointwise("promoted", _compare(name))
    for name in ("and", "or", "xor"):
        table[f"logical_{name}"] = Pointwise("raw", _logical(name))
        table[f"bitwise_{name}"] = table[f"__{name}__"] = Pointwise(
            "result", lambda m, a, b, name=name: m(name, m.lift(a), m.lift(b)))
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf"):
        table[name] = Pointwise("promoted", _is(name))
    for name, op in (("maximum", "max"), ("minimum", "min"), ("fmax", "fmax"), ("fmin", "fmin")):
        table[name] = Pointwise("result", lambda m, a, b, op=op: _extremum(m, op, a, b))
    for name in ("atan2", "hypot", "copysign"):
        table[name] = Pointwise("result", lambda m, a, b, name=name: m(name, m.lift(a), m.lift(b)))
    for name, op in (("left_shift", "shl"), ("right_shift", "shr")):
        table[f"bitwise_{name}"] = table[f"__{'l' if op == 'shl' else 'r'}shift__"] = Pointwise("result", _shift(op))
    result: dict[str, Function] = {
        "add": _add, "sub": _sub, "rsub": lambda m, a, b, alpha=1: _sub(m, b, a, alpha),
        "neg": _neg, "abs": _abs, "sign": _sign, "sgn": _sign,
        "positive": lambda m, x: x,
        "square": lambda m, x: m.mul(x, x),
        "reciprocal": lambda m, x: m.div(1.0, x),
        "frac": lambda m, x: m.sub(x, m("trunc", x)),
        "round": _round,
        "pow": _pow,
        "clamp": _clamp, "clip": _clamp,
        "clamp_min": lambda m, x, lo: _clamp(m, x, lo=lo), "clamp_max": lambda m, x, hi: _clamp(m, x, hi=hi),
        "relu": lambda m, x: m.select(m.lt(x, 0), 0, x) if _signed(x) else x,
        "relu6": lambda m, x: _clamp(m, x, 0, 6),
        "hardtanh": lambda m, x, lo=-1, hi=1: _clamp(m, x, lo, hi),
        "threshold": _threshold,
        "lerp": _lerp, "addcmul": _addc("mul"), "addcdiv": _addc("div"),
        "heaviside": _heaviside,
        "bitwise_not": lambda m, x: m("not", x),
        "deg2rad": lambda m, x: m.mul(x, pymath.pi / 180), "rad2deg": lambda m, x: m.mul(x, 180 / pymath.pi),
        "ldexp": _ldexp,
    }
    table.update((name, Pointwise("result", fn)) for name, fn in result.items())
    table.update((name, Pointwise("result", fn)) for name, fn in lower_special.FUNCTIONS.items())
    for name in ("mul", "multiply"):
        table[name] = Pointwise("result", lambda m, a, b: m.mul(m.lift(a), m.lift(b)), wide="other")
    for name in ("div", "divide", "true_divide", "floor_divide"):
        table[name] = Pointwise("result", lower_special.FUNCTIONS[name], wide="other")
    raw: dict[str, Function] = {
        "logical_not": lambda m, x: m("not", m.truth(x)),
        "nan_to_num": _nan_to_num,
        "clone": lambda m, x, *_: x, "_to_copy": lambda m, x, *_: x, "convert_element_type": lambda m, x, *_: x,
        "alias": lambda m, x: x, "detach": lambda m, x: x, "lift_fresh_copy": lambda m, x: x,
        "lift_fresh": lambda m, x: x, "contiguous": lambda m, x, *_: x, "conj_physical": lambda m, x: x,
        "real": lambda m, x: x,
        "resolve_conj": lambda m, x: x, "resolve_neg": lambda m, x: x,
    }
    table.update((name, Pointwise("raw", fn)) for name, fn in raw.items())
    table["where"] = Pointwise("moved", _where)
    table["masked_fill"] = Pointwise("moved", _masked_fill)
    table["nextafter"] = Pointwise("moved", lower_special.nextafter)
    table["signbit"] = Pointwise("promoted", _signbit)
    return table


# Note [Which zero]: of zeros with different signs torch's vectors give the second operand, its scalar code the first.
# A contiguous tensor runs by pairs of vectors and the rest one by one; `fmax` and `fmin` know no vectors, and give
# the second for bf16. We follow the pairs where there is one, and give the remainder's elements the same.
TORCH_PAIR = 128 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 64     # bytes


def _extremum(m: Scalars, name: str, a: Any, b: Any) -> Expr:
    a, b = m.lift(a), m.lift(b)
    if not a.dtype.is_floating_point:
        return m(name.replace("fm", "m"), a, b)
    vectors = example(m.count) * m.result.itemsize >= TORCH_PAIR
    second = vectors if name in ("max", "min") else m.result is torch.bfloat16
    return m(name, a, b) if second else m(name, b, a)


TABLE: dict[str, Pointwise] = _table()


def _rules() -> dict[str, Rule]:
    """Every functional overload of the packets in the table."""
    rules: dict[str, Rule] = {}
    for packet, entry in TABLE.items():
        for namespace in ("aten", "prims"):
            overloads = getattr(getattr(torch.ops, namespace), packet, None)
            for overload in overloads.overloads() if overloads is not None else ():
                if not getattr(overloads, overload)._schema.is_mutable:
                    rules[f"{namespace}.{packet}.{overload}"] = _rule(entry)
    rules["aten.max.other"] = _rule(TABLE["maximum"])
    rules["aten.min.other"] = _rule(TABLE["minimum"])
    del rules["aten.where.default"]         # the indices of true elements
    return rules


RULES: dict[str, Rule] = _rules()
