"""Index arithmetic: what it simplifies, and that it never changes a value."""

import random

import pytest
import torch

from monograph.loops import printer
from monograph.loops.affine import Affine
from monograph.loops.nodes import Const, Expr, Var, index, op, var

FUNCTIONS = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y,
}


def value(expr: Expr, point: dict[Var, int]) -> int:
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Var):
        return point[expr]
    return FUNCTIONS[expr.name](*(value(arg, point) for arg in expr.args))


def algebra(**extents: int) -> tuple[Affine, list[Var]]:
    result = Affine()
    result.extents.update({var(name): extent for name, extent in extents.items()})
    return result, list(result.extents)


def shown(exprs) -> list[str]:
    return [printer.expression(expr) for expr in exprs]


def test_a_reshape_of_loop_variables_has_plain_coordinates():
    affine, (i, j, k) = algebra(i=6, j=4, k=5)
    flat = affine.ravel([i, j, k], [6, 4, 5])
    assert shown(affine.unravel(flat, [24, 5])) == ["(i * 4) + j", "k"]
    assert shown(affine.unravel(flat, [6, 20])) == ["i", "(j * 5) + k"]
    assert shown(affine.unravel(flat, [6, 4, 5])) == ["i", "j", "k"]


def test_a_reshape_there_and_back_is_nothing():
    affine, (w,) = algebra(w=120)
    assert affine.ravel(affine.unravel(w, [6, 4, 5]), [6, 4, 5]) is w
    assert affine.ravel(affine.unravel(w, [3, 8, 5]), [3, 8, 5]) is w


def test_comparisons_are_decided_by_ranges():
    affine, (i, j) = algebra(i=4, j=3)
    inside = affine.op("lt", affine.add(i, j), index(6), dtype=torch.bool)
    assert isinstance(inside, Const) and inside.value is True


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_keep_their_value(seed):
    rng = random.Random(seed)
    for _ in range(50):
        affine, variables = algebra(**{f"q{n}": rng.choice([1, 2, 3, 4, 6, 8]) for n in range(3)})
        point = {v: rng.randrange(affine.extents[v]) for v in variables}
        pool: list[tuple[Expr, int]] = list(point.items())
        for _ in range(8):
            (a, at), (b, bt) = rng.choice(pool), rng.choice(pool)
            c, s = rng.choice([1, 2, 3, 4, 6, 8, 12]), rng.choice([-3, -1, 0, 1, 2])
            expr, want = rng.choice([
                (affine.add(a, affine.scale(b, c), s), at + bt * c + s),
                (affine.floordiv(a, c), at // c),
                (affine.mod(a, c), at % c),
                (affine.add(affine.scale(affine.floordiv(a, c), c), affine.mod(a, c)), at),
            ])
            assert value(expr, point) == want
            lo, hi = affine.range(expr)
            assert lo <= want <= hi
            pool.append((expr, want))


def test_division_of_wrapping_data_is_left_alone():
    affine, (i,) = algebra(i=4)
    data = op("cast", op("mul", i, i, dtype=i.dtype), dtype=i.dtype)
    big = affine.add(affine.scale(data, 4), i)
    assert printer.expression(affine.floordiv(big, 4)).startswith("((")
