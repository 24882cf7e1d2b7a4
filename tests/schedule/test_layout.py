"""Strides and operands: what is free, and what costs a copy."""

import torch

from monograph.schedule.kernel import Fused, Template
from tests.schedule.build import Maker, ops


def test_convolutions_hand_on_channels_last():
    m = Maker()
    x, first, second = m.input(1, 8, 6, 6), m.weight(8, 8, 1, 1), m.weight(4, 8, 1, 1)

    def conv(value, weight):
        return m.op("convolution.default", value, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)

    middle = m.op("relu.default", conv(x, first))
    schedule = m.plan(conv(middle, second))
    assert ops(schedule) == [["clone"], ["convolution", "relu"], ["convolution"]]
    assert schedule.layouts[middle].strides == (288, 1, 48, 8)
    assert schedule.items[2].operands["x"].value is middle


def test_a_border_of_zeros_is_left_to_the_convolution():
    m = Maker()
    x, w = m.input(1, 3, 6, 6), m.weight(4, 3, 3, 3)
    padded = m.op("constant_pad_nd.default", x, (0, 1, 0, 1))
    schedule = m.plan(m.op("convolution.default", padded, w, None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1))
    item, = schedule.items
    assert item.operands["x"].value is x and item.parameters["padding"] == (0, 0) and item.parameters["oh"] == 3


def test_heads_of_attention_are_views():
    m = Maker()
    x = m.input(2, 5, 12)
    heads = [
        m.op("transpose.int", m.op("view.default", m.op("linear.default", x, m.weight(12, 12)), (2, 5, 3, 4)), 1, 2)
        for _ in range(3)
    ]
    mixed = m.op("scaled_dot_product_attention.default", *heads, None, 0.0, False)
    joined = m.op("view.default", m.op("transpose.int", mixed, 1, 2), (2, 5, 12))
    schedule = m.plan(m.op("linear.default", joined, m.weight(12, 12)))
    assert [type(item) for item in schedule.items] == [Template] * 5
    assert schedule.items[3].operands["q"].strides == (60, 4, 12, 1)


def test_a_product_of_heads_is_stored_for_the_next_product():
    m = Maker()
    p, v = m.input(6, 5, 5), m.input(6, 5, 4)
    mixed = m.op("view.default", m.op("bmm.default", p, v), (2, 3, 5, 4))
    joined = m.op("view.default", m.op("transpose.int", mixed, 1, 2), (10, 12))
    schedule = m.plan(m.op("mm.default", joined, m.weight(12, 12)))
    assert ops(schedule) == [["bmm", "view"], ["view", "transpose", "view", "mm"]] or len(schedule.items) == 2
    assert schedule.layouts[mixed].strides == (60, 4, 12, 1)


def test_heads_repeated_by_expand_are_shared():
    m = Maker()
    q, k, v = m.input(2, 4, 5, 8), m.input(2, 2, 5, 8), m.input(2, 2, 5, 8)

    def repeated(x):
        wide = m.op("expand.default", m.op("unsqueeze.default", x, 2), (2, 2, 2, 5, 8))
        return m.op("view.default", wide, (2, 4, 5, 8))

    schedule = m.plan(m.op("scaled_dot_product_attention.default", q, repeated(k), repeated(v), None, 0.0, False))
    item, = schedule.items
    assert item.parameters["group"] == 2 and item.operands["k"].value is k


def test_an_output_that_is_a_permuted_product_needs_no_copy():
    m = Maker()
    h = m.op("linear.default", m.input(2, 5, 12), m.weight(12, 12))
    out = m.op("permute.default", m.op("view.default", h, (2, 5, 3, 4)), (0, 2, 1, 3))
    schedule = m.plan(out)
    assert [type(item) for item in schedule.items] == [Template]
    assert schedule.items[0].outputs[0].tensor.shape == (2, 5, 3, 4)
    assert schedule.places[schedule.items[0].outputs[0]].kind == "output"


def test_inputs_and_repeated_outputs_are_copied():
    m = Maker()
    x = m.input(4, 8)
    y = m.op("neg.default", x)
    schedule = m.plan(x, y, y)
    assert ops(schedule) == [["neg", "clone", "clone"]]
    assert sorted(p.position for p in schedule.places.values() if p.kind == "output") == [0, 1, 2]


def test_weights_are_packed_once_for_all_who_read_them():
    m = Maker()
    x, w = m.input(4, 8), m.weight(8, 8)
    schedule = m.plan(m.op("linear.default", m.op("linear.default", x, w), w))
    assert len(schedule.packs) == 1


def test_a_weight_that_is_computed_is_not_packed():
    m = Maker()
    x, w = m.input(4, 8), m.op("tanh.default", m.input(8, 8))
    schedule = m.plan(m.op("linear.default", x, w))
    assert not schedule.packs and not schedule.items[-1].parameters["packed"]


def test_a_constant_as_operand_of_a_product_is_stored():
    m = Maker()
    ones = m.op("full.default", (4, 4), 1.0, dtype=torch.float32)
    schedule = m.plan(m.op("tanh.default", m.op("mm.default", ones, ones)))
    assert [type(item) for item in schedule.items] == [Fused, Template]
