"""Reductions and scans as kernels, against torch."""

from __future__ import annotations

import pytest
import torch

from monograph.loops import printer
from tests.loops.kernels import Case, agree, check_native, close

NAN, INF = float("nan"), float("inf")


def special() -> torch.Tensor:
    x = torch.randn(6, 9, generator=torch.Generator().manual_seed(0))
    x[0, 3], x[2, :], x[3, 2], x[4, 5] = NAN, NAN, INF, -INF
    x[5, :] = x[5, 0]
    return x


def randint(lo: int, hi: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(lo, hi, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 1], [0, 2], [1, 2], None])
def test_sums_and_extrema_over_any_dims(dims):
    x = torch.randn(5, 11, 13)
    for keepdim in (False, True):
        agree(lambda call, x, k=keepdim: call("sum.dim_IntList", x, dims, k), x, ulps=32, native=False)
        agree(lambda call, x, k=keepdim: call("amax.default", x, dims or [], k), x, native=False)


@pytest.mark.parametrize("name", ["max.dim", "min.dim", "argmax.default", "argmin.default"])
def test_positions_are_of_the_first_extremum_or_nan(name):
    for x in (special(), randint(0, 3, 12, 30), randint(0, 2, 12, 30).bool(), special().bfloat16()):
        if x.dtype is torch.bool and name.startswith("arg"):
            continue
        for dim in (0, 1):
            agree(lambda call, x, d=dim: call(name, x, d), x, native=False)


def test_integers_wrap_and_widen_as_in_torch():
    x = randint(-128, 128, 20, 30, dtype=torch.int8)
    agree(lambda call, x: call("sum.dim_IntList", x, [0]), x)
    agree(lambda call, x: call("sum.dim_IntList", x, [0], dtype=torch.int8), x)
    agree(lambda call, x: call("prod.default", x), x)
    agree(lambda call, x: call("any.dim", x, 1), randint(0, 2, 4, 20, dtype=torch.uint8))


def test_halves_are_summed_in_single_precision():
    for dtype in (torch.bfloat16, torch.float16):
        agree(lambda call, x: call("sum.dim_IntList", x, [1]), torch.randn(10, 300).to(dtype), ulps=1)
        agree(lambda call, x: call("mean.dim", x, [0]), torch.randn(40, 12).to(dtype), ulps=1)


def test_nothing_folds_to_the_neutral_element():
    empty = torch.randn(5, 0)
    agree(lambda call, x: call("sum.dim_IntList", x, [1]), empty, native=False)
    agree(lambda call, x: call("prod.default", x), empty, native=False)
    agree(lambda call, x: call("all.dim", x, 1), empty > 0, native=False)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_of_a_cube_keeps_its_dims_apart(dim):
    agree(lambda call, x: call("_softmax.default", x, dim, False), torch.randn(11, 11, 11), ulps=16)


def test_softmax_keeps_its_exponentials_in_a_scratch_row():
    made = Case(lambda call, x: call("_softmax.default", x, -1, False), torch.randn(20, 30))
    assert printer.text(made.kernel).count("exp(") == 2     # stored and summed in one pass, then read back
    assert [buffer.size for buffer in made.kernel.scratch] == [30]


def test_columns_are_reduced_side_by_side():
    made = Case(lambda call, x: call("sum.dim_IntList", x, [0]), torch.randn(40, 50))
    assert printer.text(made.kernel).splitlines()[1].strip() == "vector x4 i50 in 0..50"


def test_outputs_per_element_and_per_row_share_one_loop():
    def rows(call, x):
        return call("sub.Tensor", x, call("amax.default", x, [1], True)), call("sum.dim_IntList", x, [1])

    made = agree(rows, torch.randn(20, 30), ulps=32)
    assert len(made.kernel.body) == 1


def test_norms_through_views():
    def group_norm(call, x, weight):
        grouped = call("view.default", x, [2, 3, 50])
        centred = call("sub.Tensor", grouped, call("mean.dim", grouped, [2], True))
        scale = call("rsqrt.default", call("var.correction", grouped, [2], correction=0, keepdim=True))
        normed = call("view.default", call("mul.Tensor", centred, scale), [2, 6, 5, 5])
        return call("mul.Tensor", normed, call("view.default", weight, [1, 6, 1, 1]))

    agree(group_norm, torch.randn(2, 6, 5, 5), torch.randn(6), ulps=64)
    agree(lambda call, x: call("var_mean.correction", x, [0, 2, 3], correction=0), torch.randn(4, 8, 5, 5), ulps=64)


SCANS = ["cumsum.default", "cumprod.default", "cummax.default", "cummin.default", "logcumsumexp.default"]


@pytest.mark.parametrize("name", SCANS)
def test_scans(name):
    cases = []
    for x in (torch.randn(5, 6, 7), special(), torch.randn(4, 5).bfloat16(), randint(-5, 5, 5, 6), torch.randn(())):
        if name.startswith("log") and not x.is_floating_point():
            continue
        for dim in range(max(x.dim(), 1)):
            made = Case(lambda call, x, d=dim: call(name, x, d), x)
            close(made.interpreted(), made.reference(), 16)
            cases.append((f"{name} {dim}", made, 16))
    check_native(cases)


def test_a_scan_seen_through_flips_is_still_right():
    def from_the_end(call, x):
        flipped = call("cumsum.default", call("flip.default", x, [1]), 1)
        return call("flip.default", flipped, [1])

    agree(from_the_end, torch.randn(4, 12), ulps=16, native=False)


def test_scans_fuse_with_what_is_before_and_after():
    def chain(call, x):
        return call("mul.Tensor", call("cumsum.default", call("_softmax.default", x, -1, False), -1), 2.0)

    agree(chain, torch.randn(10, 17), ulps=16)


def test_a_long_sum_is_accurate():
    x = torch.rand(70000, generator=torch.Generator().manual_seed(0))
    made = Case(lambda call, x: call("sum.default", x), x)
    exact = x.double().sum()
    assert abs(made.native()[0].double() - exact) <= 2e-7 * exact


def test_long_sums_of_columns_are_accurate():
    x = torch.rand(20001, 12, generator=torch.Generator().manual_seed(0))
    made = Case(lambda call, x: call("sum.dim_IntList", x, [0]), x)
    exact = x.double().sum(0)
    assert ((made.native()[0].double() - exact).abs() / exact).max() <= 1e-6


def test_scans_of_different_pieces_stay_apart():
    def padded(call, x):
        return call("cumsum.default", call("constant_pad_nd.default", x, [1, 2], 0.5), 1)

    agree(padded, torch.randn(4, 3, 6), ulps=4)


def test_threads_share_no_scratch_row():
    """All elements are one row: its passes are not inside one parallel loop, so nothing is kept between them."""
    def normalise(call, x):
        exps = call("exp.default", x)
        return call("div.Tensor", exps, call("sum.default", exps))

    made = agree(normalise, torch.randn(40000), ulps=64)
    assert made.kernel.scratch == []


def test_scans_along_several_dims_are_still_right():
    def table(call, x):
        return call("cumsum.default", call("cumsum.default", x, 0), 1)

    def folded(call, x):
        return call("amax.default", call("cumsum.default", x, 0), [1])

    for make in (table, folded):
        agree(make, torch.randn(5, 11), ulps=16, native=False)
