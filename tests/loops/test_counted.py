"""Kernels that take their number of rows at run time."""

import pytest
import torch

from monograph.loops.counted import Rows, Uncountable, count
from monograph.loops.interpret import run
from monograph.loops.nodes import INDEX, Buffer, For, Kernel, Op, Store, const, index, load, op, var
from monograph.loops.verifier import verify

ROWS = 31
X, Y, ERROR = Buffer("x", torch.float32, ROWS * 4), Buffer("y", torch.float32, ROWS * 4), Buffer("e", INDEX, 8, "error")


def doubled(hi, kind="vector", position=None, lo=None):
    i = var("i")
    at = i if position is None else position(i)
    value = op("add", load(X, at), load(X, at), dtype=torch.float32)
    return For(i, lo or index(0), hi, kind, body=[Store(Y, at, value)])


def counted(body, arguments=(X, Y)):
    kernel = Kernel("k", list(arguments), body=body)
    rows = Rows(ROWS, Buffer("count", INDEX, 1))
    count(kernel, rows)
    verify(kernel)
    return kernel


def result(kernel, rows):
    y = torch.zeros(ROWS * 4)
    run(kernel, [torch.ones(ROWS * 4), y, torch.tensor([rows])])
    return int(y.sum()) // 2


def test_a_bound_of_so_many_rows_becomes_one_of_all_there_are():
    kernel = counted([doubled(index(ROWS * 4))])
    assert [result(kernel, n) for n in (0, 1, 7, ROWS)] == [0, 4, 28, ROWS * 4]


def test_blocks_are_as_many_as_rows_need():
    p = var("p")
    lo = op("mul", p, index(16), dtype=INDEX)
    hi = op("min", op("add", lo, index(16), dtype=INDEX), index(ROWS * 4), dtype=INDEX)
    kernel = counted([For(p, index(0), index(8), "parallel", body=[doubled(hi, lo=lo)])])
    assert [result(kernel, n) for n in (0, 1, 4, 5, ROWS)] == [0, 4, 16, 20, ROWS * 4]
    outer = kernel.body[0]
    assert isinstance(outer, For) and isinstance(outer.hi, Op) and outer.hi.name == "floordiv"


def test_the_count_comes_before_the_error_record():
    kernel = counted([doubled(index(ROWS))], (X, Y, ERROR))
    assert [buffer.name for buffer in kernel.arguments] == ["x", "y", "count", "e"]


def test_numbers_of_rows_elsewhere_are_refused():
    with pytest.raises(Uncountable):
        counted([doubled(index(4), position=lambda i: op("mul", i, index(ROWS), dtype=INDEX))])
    with pytest.raises(Uncountable):
        counted([doubled(index(ROWS), lo=index(ROWS))])
    counted([Store(Y, index(0), const(float(ROWS), torch.float32))])     # a value, no index
