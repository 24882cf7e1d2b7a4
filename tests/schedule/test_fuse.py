"""What runs together and what does not."""

import torch

from monograph.schedule.kernel import Domain, Fused, LibraryCall, Template
from tests.schedule.build import Maker, ops


def test_a_pointwise_chain_is_one_kernel():
    m = Maker()
    x = m.input(4, 8)
    schedule = m.plan(m.op("tanh.default", m.op("mul.Tensor", m.op("relu.default", x), x)))
    assert ops(schedule) == [["relu", "mul", "tanh"]]


def test_softmax_is_one_kernel_over_rows():
    m = Maker()
    schedule = m.plan(m.softmax(m.input(4, 8)))
    item, = schedule.items
    assert item.domain == Domain((4, 8), (1,))


def test_softmax_over_an_outer_dim_is_one_kernel():
    m = Maker()
    schedule = m.plan(m.softmax(m.input(4, 8, 3), dim=1))
    item, = schedule.items
    assert item.domain == Domain((4, 8, 3), (1,))


def test_reductions_over_different_dims_are_two_kernels():
    m = Maker()
    x = m.input(4, 8)
    schedule = m.plan(m.op("sum.dim_IntList", x, (0,)), m.op("sum.dim_IntList", x, (1,)))
    assert ops(schedule) == [["sum"], ["sum"]]


def test_a_row_value_read_at_another_row_is_stored_first():
    m = Maker()
    x = m.input(8, 8)
    total = m.op("sum.dim_IntList", x, (1,), True)
    schedule = m.plan(m.op("sub.Tensor", x, m.op("transpose.int", total, 0, 1)))
    assert ops(schedule) == [["sum"], ["transpose", "sub"]]


def test_group_norm_is_one_kernel_though_it_sees_channels_two_ways():
    m = Maker()
    x, scale = m.input(2, 6, 4, 4), m.weight(6)
    rows = m.op("view.default", x, (2, 3, 32))
    centred = m.op("sub.Tensor", rows, m.op("sum.dim_IntList", rows, (2,), True))
    back = m.op("view.default", centred, (2, 6, 4, 4))
    schedule = m.plan(m.op("mul.Tensor", back, m.op("view.default", scale, (6, 1, 1))))
    assert len(schedule.items) == 1 and schedule.items[0].domain == Domain((2, 3, 32), (2,))


def test_a_dear_value_is_not_computed_again_for_every_row():
    m = Maker()
    x, scale = m.input(512, 64), m.input(64)
    schedule = m.plan(m.op("mul.Tensor", x, m.op("exp.default", scale)))
    assert ops(schedule) == [["exp"], ["mul"]]


def test_a_cheap_value_is():
    m = Maker()
    x, scale = m.input(512, 64), m.input(64)
    schedule = m.plan(m.op("mul.Tensor", x, m.op("add.Scalar", scale, 1.0)))
    assert ops(schedule) == [["add", "mul"]]


def test_what_may_raise_is_never_read_in_part():
    m = Maker()
    table, index = m.input(9, 4), m.input(6, dtype=torch.int64)
    rows = m.op("index_select.default", table, 0, index)
    schedule = m.plan(m.op("neg.default", m.op("slice.Tensor", rows, 0, 0, 3)))
    assert ops(schedule) == [["index_select"], ["slice", "neg"]]


def test_pooling_reads_memory():
    m = Maker()
    x = m.op("relu.default", m.input(1, 3, 8, 8))
    schedule = m.plan(m.op("avg_pool2d.default", x, (2, 2)))
    assert ops(schedule) == [["relu"], ["avg_pool2d"]]


def test_gelu_and_a_residual_join_the_product():
    m = Maker()
    x, w, b, r = m.input(4, 8), m.weight(16, 8), m.weight(16), m.input(4, 16)
    h = m.op("linear.default", x, w, b)
    gelu = m.op("mul.Tensor", h, m.op("add.Scalar", m.op("erf.default", m.op("mul.Scalar", h, 0.7)), 1.0))
    schedule = m.plan(m.op("add.Tensor", gelu, r))
    item, = schedule.items
    assert isinstance(item, Template) and item.name == "gemm" and len(item.nodes) == 6
    assert item.parameters["packed"] and schedule.packs[0].source is w


def test_an_epilogue_takes_no_value_that_depends_on_its_own_template():
    m = Maker()
    x, w = m.input(4, 8), m.weight(8, 8)
    h = m.op("linear.default", x, w)
    schedule = m.plan(m.op("sub.Tensor", h, m.op("sum.dim_IntList", h, (1,), True)))
    assert ops(schedule) == [["linear"], ["sum", "sub"]]


def test_a_square_is_left_to_the_norm_that_sums_it():
    m = Maker()
    x, w, r = m.input(4, 8), m.weight(8, 8), m.input(4, 8)
    h = m.op("add.Tensor", m.op("linear.default", x, w), r)
    total = m.op("sum.dim_IntList", m.op("mul.Tensor", h, h), (1,), True)
    schedule = m.plan(m.op("mul.Tensor", h, m.op("rsqrt.default", total)), m.op("neg.default", h))
    assert ops(schedule)[0] == ["linear", "add", "neg"]
    assert ops(schedule)[1] == ["mul", "sum", "rsqrt", "mul"]


def test_two_products_that_need_each_other_make_no_cycle():
    m = Maker()
    x, w = m.input(4, 8), m.weight(8, 8)
    a, b = m.op("linear.default", x, w), m.op("linear.default", m.op("tanh.default", x), w)
    schedule = m.plan(m.op("add.Tensor", a, b), m.op("mul.Tensor", b, a))
    made = [value for item in schedule.items for value in item.outputs]
    assert len(made) == len(set(made))


def test_kernels_that_read_the_same_are_one_where_their_results_are_small():
    m = Maker()
    x, y = m.input(64, 64), m.input(64, 64)
    first = m.op("sum.dim_IntList", x, (0,))
    second = m.op("sum.dim_IntList", m.op("mul.Tensor", x, y), (0,))
    schedule = m.plan(m.op("mul.Tensor", m.op("linear.default", second, m.weight(64, 64)), first))
    assert ops(schedule)[0] == ["sum", "mul", "sum"]


def test_what_has_no_kernel_is_a_library_call():
    m = Maker()
    values, _ = m.op("sort.default", m.op("neg.default", m.input(4, 8)), 1)
    schedule = m.plan(m.op("relu.default", values))
    assert [type(item) for item in schedule.items] == [Fused, LibraryCall, Fused]


def test_complex_numbers_have_no_kernel():
    m = Maker()
    x = m.input(4, dtype=torch.complex64)
    schedule = m.plan(m.op("mul.Tensor", x, x))
    assert isinstance(schedule.items[0], LibraryCall)


def test_draws_keep_their_order():
    m = Maker()
    x = m.op("linear.default", m.input(64, 64), m.weight(64, 64))
    first = m.op("bernoulli.p", x, 0.5)
    second = m.op("bernoulli.p", m.input(2, 2), 0.5)
    third = m.op("bernoulli.p", m.op("tanh.default", x), 0.5)
    schedule = m.plan(m.op("mul.Tensor", first, third), second)
    drawn = [item.node.result for item in schedule.items if isinstance(item, LibraryCall)]
    assert drawn == [first, second, third]
