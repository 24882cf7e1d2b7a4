"""Strides of results where dims of size 1 leave the memory format open."""

import pytest
import torch
from torch.nn import functional as F

import monograph
from monograph.capture.layout import Layout, channels_last_strides

OPEN = [((2, 16, 1, 1), (16, 1, 16, 16)), ((2, 1, 4, 5), (20, 1, 5, 1)), ((1, 4, 3, 5), (7, 1, 20, 4))]
OPS = {
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    "relu": torch.relu, "pow": lambda x: x**2, "add": lambda x: x + x, "softmax": lambda x: x.softmax(1),
    "upsample": lambda x: F.interpolate(x, scale_factor=2), "flip": lambda x: x.flip(1),
    "chain": lambda x: F.interpolate(F.gelu(x).clamp(0, 1), size=(3, 3), mode="bilinear"),
    "maximum": lambda x: torch.maximum(x, -x), "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(("sizes", "strides"), OPEN)
def test_results_lie_as_in_eager(name, sizes, strides):
    extent = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
    x = torch.randn(extent).as_strided(sizes, strides)
    want, got = OPS[name](x), monograph.compile(OPS[name], backend="reference")(x)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want)


def test_ambiguous_layouts():
    def ambiguous(sizes, strides):
        return Layout(sizes, strides, 0, torch.float32).is_ambiguous

    assert all(ambiguous(sizes, strides) for sizes, strides in OPEN)
    assert not ambiguous((2, 16, 1, 1), (16, 1, 1, 1)) and not ambiguous((2, 3, 1, 5), (15, 1, 15, 3))
    assert not ambiguous((1, 4, 7, 8), (224, 8, 32, 1)) and not ambiguous((2, 3), (1, 2))


@pytest.mark.parametrize("format, sizes", [
    (torch.channels_last, (2, 3, 4, 5)), (torch.channels_last, (2, 1, 4, 1)), (torch.channels_last_3d, (2, 3, 4, 5, 6)),
])
def test_channels_last_strides(format, sizes):
    assert channels_last_strides(sizes) == torch.empty(sizes, memory_format=format).stride()


FILLS = {
    "rand_like": torch.rand_like, "randn_like": torch.randn_like, "randint_like": lambda x: torch.randint_like(x, 3, 9),
    "normal_": lambda x: x.normal_(1.0, 2.0), "part": lambda x: x[:, 1:].normal_(), "rows": lambda x: x[1:].normal_(),
}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("lay", (
    lambda x: x.to(memory_format=torch.channels_last), lambda x: x.transpose(0, 3), lambda x: x,
), ids=("channels_last", "transposed", "plain"))
def test_draws_follow_memory(name, lay):
    def draw(x):
        return FILLS[name](lay(x * 2)), torch.rand(3)

    x = torch.zeros(2, 3, 4, 5)
    torch.manual_seed(1)
    want = draw(x)
    torch.manual_seed(1)
    torch.testing.assert_close(monograph.compile(draw)(x), want)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", ["like", "multinomial", "dropout"])
def test_draws_where_eager_copies_and_a_pass_does_not(name, backend):
    """`cat` of one tensor lays it out anew; without it the draw must still follow the new order."""
    def draw(x):
        y = torch.cat([torch.nn.functional.conv1d(x, weight).transpose(1, 2)], 1)
        return {"like": torch.randn_like, "multinomial": lambda y: y[0].sigmoid().multinomial(1),
                "dropout": lambda y: torch.nn.functional.dropout(y, 0.5, True)}[name](y)

    x, weight = torch.randn(1, 3, 8), torch.randn(4, 3, 3)
    torch.manual_seed(1)
    want = draw(x)
    torch.manual_seed(1)
    torch.testing.assert_close(monograph.compile(draw, backend=backend)(x), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("sizes", "of_weight", "last"), [
    ((10, 8), (3, 8, 6), 10), ((10, 8), (3, 8, 8), 10), ((3, 4, 8), (8, 16), 16), ((3, 4, 8), (8, 10), 10),
])
def test_rows_of_grouped_products(sizes, of_weight, last, dtype):
    """Refused where eager refuses: rows of the weight that do not start at multiples of 16 bytes."""
    def grouped(x, weight, ends):
        return F.grouped_mm(x, weight, offs=ends)

    compiled = monograph.compile(grouped, backend="reference", dynamic=True)
    x, dense = torch.randn(sizes).to(dtype), torch.randn(of_weight).to(dtype)
    for weight in (dense, dense.mT.contiguous().mT):
        inputs = x, weight, torch.tensor([2, 3, last], dtype=torch.int32)
        try:
            want = grouped(*inputs)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error)):
                compiled(*inputs)
        else:
            got = compiled(*inputs)
            assert got.stride() == want.stride() and got.dtype == want.dtype
            torch.testing.assert_close(got, want)


def test_square_tensors_that_repeat():
    def pairs(x):
        return torch.combinations(x, 2), x.expand(4, 4).mul(x.view(-1, 1).expand(4, 4)), x.expand(4, 4) @ x.expand(4, 4)

    x = torch.arange(4.0)
    for got, want in zip(monograph.compile(pairs)(x), pairs(x), strict=True):
        torch.testing.assert_close(got, want)
