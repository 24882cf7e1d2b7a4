"""Views, cat, pads, gathers, windows and constants as kernels, against torch."""

from __future__ import annotations

import pytest
import torch

from monograph.loops import printer
from tests.loops.kernels import Case, agree, check_native, close


def randint(lo: int, hi: int, *shape: int) -> torch.Tensor:
    return torch.randint(lo, hi, shape, generator=torch.Generator().manual_seed(1))


CUBE = (5, 6, 7)
VIEWS = {
    "unfold": ((4, 11), lambda call, x: call("unfold.default", x, 1, 3, 2)),
    "diagonal": ((5, 4, 6), lambda call, x: call("diagonal.default", x, 1, 0, 2)),
    "diagonal below": ((5, 6), lambda call, x: call("diagonal.default", x, -2)),
    "flip": (CUBE, lambda call, x: call("flip.default", x, [0, 2])),
    "expand": ((6, 1, 7), lambda call, x: call("expand.default", x, [3, 6, -1, 7])),
    "roll": (CUBE, lambda call, x: call("roll.default", x, [2, -1], [0, 2])),
    "roll flat": (CUBE, lambda call, x: call("roll.default", x, [9])),
    "repeat": ((4, 5), lambda call, x: call("repeat.default", x, [2, 1, 3])),
    "split": ((4, 8), lambda call, x: call("split.Tensor", x, 3, 1)),
    "unbind": ((4, 3), lambda call, x: call("unbind.int", x, 1)),
    "slice": (CUBE, lambda call, x: call("slice.Tensor", x, 1, -4, -1, 2)),
    "select": (CUBE, lambda call, x: call("select.int", x, -1, -2)),
    "transpose": ((9, 17), lambda call, x: call("add.Tensor", call("t.default", x), 1)),
    "squeeze": ((1, 3, 1, 4), lambda call, x: call("squeeze.dims", x, [0, 2])),
    "tril": ((6, 8), lambda call, x: call("tril.default", x, 1)),
    "pad": ((4, 6, 8), lambda call, x: call("constant_pad_nd.default", x, [1, 2, -1, 3], 1.5)),
    "pad of pad": ((4, 6), lambda call, x: call(
        "constant_pad_nd.default", call("neg.default", call("constant_pad_nd.default", x, [1, 1])), [2, 2])),
    "cat": ((4, 3), lambda call, x: call("cat.default", [x, call("neg.default", x), x], 1)),
    "cat of many": ((4, 3), lambda call, x: call("cat.default", [x] * 12, 1)),
    "sum of a cat": ((4, 13), lambda call, x: call("amax.default", call("cat.default", [x, x], 1), [1])),
    "chain": ((6, 20), lambda call, x: call(
        "view.default", call("permute.default", call("view.default", x, [2, 3, 4, 5]), [0, 2, 1, 3]), [8, 15])),
}


def test_views_and_moves():
    cases = []
    for name, (shape, make) in VIEWS.items():
        made = Case(make, torch.randn(shape))
        close(made.interpreted(), made.reference())
        cases.append((name, made, 0))
    check_native(cases)


def test_inputs_keep_their_strides():
    agree(lambda call, x: call("add.Tensor", x, 1), torch.randn(9, 17).t(), native=False)
    agree(lambda call, x: call("add.Tensor", x, 1), torch.randn(2, 8, 3, 4).to(memory_format=torch.channels_last))


def test_a_chain_of_views_ends_in_plain_strides():
    def heads(call, x):
        split = call("view.default", x, [2, 16, 4, 32])
        return call("add.Tensor", call("permute.default", split, [0, 2, 1, 3]), 1.0)

    made = agree(heads, torch.randn(2, 16, 128))
    assert "//" not in printer.text(made.kernel) and "%" not in printer.text(made.kernel).replace("%in", "").replace(
        "%out", "")


def test_each_piece_of_a_cat_is_a_loop_without_a_choice():
    made = Case(lambda call, x, y: call("cat.default", [x, y], 1), torch.randn(4, 10), torch.randn(4, 20))
    assert "select" not in printer.text(made.kernel) and "where" not in printer.text(made.kernel)


GATHERS = {
    "embedding": (lambda call, w, i: call("embedding.default", w, i), randint(0, 10, 3, 4)),
    "index_select": (lambda call, w, i: call("index_select.default", w, 1, i), randint(0, 9, 7)),
    "gather": (lambda call, w, i: call("gather.default", w, 1, i), randint(0, 9, 8, 5)),
    "index": (lambda call, w, i: call("index.Tensor", w, [i]), randint(-10, 10, 3, 4)),
    "index second": (lambda call, w, i: call("index.Tensor", w, [None, i]), randint(-9, 9, 3, 4).int()),
}


def test_gathers():
    weight = torch.randn(10, 9)
    cases = []
    for name, (make, indices) in GATHERS.items():
        made = Case(make, weight, indices)
        close(made.interpreted(), made.reference())
        cases.append((name, made, 0))
    check_native(cases)


def test_indices_apart_come_first():
    x, i, j = torch.randn(CUBE), randint(-5, 5, 3, 1), randint(-7, 7, 4)
    agree(lambda call, x, i, j: call("index.Tensor", x, [i, None, j]), x, i, j, native=False)
    agree(lambda call, x, i, j: call("index.Tensor", x, [None, i, j]), x, i, j, native=False)


@pytest.mark.parametrize("name, exception, message", [
    ("embedding", "IndexError", "index out of range in self"),
    ("gather", "RuntimeError", "index 77 is out of bounds for dimension 1 with size 9"),
    ("index", "IndexError", "index 77 is out of bounds for dimension 0 with size 10"),
])
def test_an_index_out_of_range_is_reported_as_eager_does(name, exception, message):
    make, indices = GATHERS[name]
    indices = indices.clone()
    indices.view(-1)[3] = 77
    fault = Case(make, torch.randn(10, 9), indices).fault()
    assert fault is not None and fault.check.exception == exception
    assert fault.check.message.format(*fault.values) == message


WINDOWS = [
    ("max_pool2d_with_indices", [[3, 3], [2, 2], [1, 1]]),
    ("max_pool2d_with_indices", [[3, 2], [1, 2], [1, 0], [2, 1]]),
    ("max_pool2d_with_indices", [[5, 3], [4, 3], [2, 1], [1, 1], True]),
    ("avg_pool2d", [[2, 2]]),
    ("avg_pool2d", [[3, 3], [2, 2], [1, 1], True]),
    ("avg_pool2d", [[3, 3], [2, 2], [1, 1], True, False]),
    ("avg_pool2d", [[5, 3], [4, 3], [2, 1], False, True, 7]),
]


@pytest.mark.parametrize("name, arguments", WINDOWS)
def test_pooling(name, arguments):
    x = torch.randn(1, 2, 7, 8)
    x[0, 0, 3, 3] = float("nan")
    for given in (x, torch.randn(1, 8, 7, 6).to(memory_format=torch.channels_last)):
        agree(lambda call, x: call(f"{name}.default", x, *arguments), given, ulps=8, native=False)


def test_constants():
    agree(lambda call: call("full.default", [3, 4], 2.5), native=False)
    agree(lambda call: call("arange.start_step", 3, 20, 2, dtype=torch.int64), native=False)
    agree(lambda call: call("arange.start_step", 0.5, 9.1, 0.7, dtype=torch.float32), ulps=2, native=False)
    agree(lambda call: call("scalar_tensor.default", 3.5, dtype=torch.float64), native=False)


def test_a_roll_along_outer_dims_is_one_load():
    """Shifted windows: the choice is the same for a whole vector, and the index keeps its stride."""
    def windows(call, x):
        rolled = call("roll.default", x, [-3, -3], [1, 2])
        split = call("view.default", rolled, [1, 2, 7, 2, 7, 16])
        return call("view.default", call("permute.default", split, [0, 1, 3, 2, 4, 5]), [4, 49, 16])

    made = agree(windows, torch.randn(1, 14, 14, 16), native=False)
    assert printer.text(made.kernel).count("%in0[") == 1 and "where" not in printer.text(made.kernel)


@pytest.mark.parametrize("name", ["reflection_pad", "replication_pad"])
def test_pads_that_repeat_elements(name):
    for rank, padding in ((1, [2, 3]), (2, [2, 3, 1, 2]), (3, [2, 1, 1, 2, 1, 1])):
        shape = (2, *((4, 5, 6)[-rank:]))
        agree(lambda call, x, n=f"{name}{rank}d.default", p=padding: call(n, x, p), torch.randn(shape), native=False)
