"""The arena: small, without overlaps, in place where that is safe."""

from monograph.schedule import report
from tests.schedule.build import Maker
from tests.schedule.simulate import overlaps


def chain(m, x, count):
    for _ in range(count):
        x = m.op("linear.default", x, m.weight(64, 64))
    return x


def test_a_chain_takes_two_buffers():
    m = Maker()
    schedule = m.plan(chain(m, m.input(32, 64), 8))
    assert schedule.arena_bytes == 2 * 32 * 64 * 4
    assert schedule.intermediate_bytes == 7 * 32 * 64 * 4
    assert overlaps(schedule) == []


def test_a_residual_that_dies_is_written_over():
    m = Maker()
    x = chain(m, m.input(32, 64), 1)
    h = m.op("linear.default", m.op("tanh.default", x), m.weight(64, 64))
    total = m.op("add.Tensor", h, x)
    schedule = m.plan(m.op("linear.default", total, m.weight(64, 64)))
    assert schedule.places[total] == schedule.places[x]


def test_a_product_never_overwrites_its_own_operand():
    m = Maker()
    x = chain(m, m.input(64, 64), 1)
    y = m.op("linear.default", x, m.weight(64, 64))
    schedule = m.plan(m.op("linear.default", y, m.weight(64, 64)))
    assert schedule.places[x] != schedule.places[y]


def test_short_rows_are_not_overwritten():
    m = Maker()
    x = chain(m, m.input(32, 64), 1)
    y = m.softmax(m.op("view.default", x, (512, 4)))
    schedule = m.plan(m.op("linear.default", m.op("view.default", y, (32, 64)), m.weight(64, 64)))
    assert schedule.places[x] != schedule.places[y]


def test_eager_keeps_a_storage_while_a_view_lives():
    m = Maker()
    x = m.input(16)
    y = m.op("neg.default", x)
    half = m.op("slice.Tensor", y, 0, 0, 8)
    m.outputs(m.op("add.Tensor", m.op("neg.default", half), half))
    assert report.eager_peak(m.graph) == 64 + 32


def test_fusion_rate_counts_bare_templates_as_unfused():
    m = Maker()
    x = m.op("linear.default", m.input(4, 8), m.weight(8, 8))
    y = m.op("relu.default", m.op("linear.default", x, m.weight(8, 8)))
    schedule = m.plan(m.op("linear.default", y, m.weight(8, 8)))
    assert report.fusion_rate(schedule) == 0.5
