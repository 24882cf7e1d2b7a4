"""Views as strides agree with torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from monograph.ir.graph import Graph
from monograph.ir.types import TensorType
from monograph.ops.build import Builder
from monograph.schedule import views
from monograph.schedule.views import Affine

CASES = [
    ("aten.view.default", (4, 6), ((2, 2, 6),)),
    ("aten.view.default", (4, 1, 6), ((24,),)),
    ("aten.permute.default", (2, 3, 4), ((2, 0, 1),)),
    ("aten.transpose.int", (2, 3, 4), (0, -1)),
    ("aten.t.default", (2, 3), ()),
    ("aten.expand.default", (2, 1, 4), ((5, 2, 3, 4),)),
    ("aten.slice.Tensor", (5, 6), (1, 1, -1, 2)),
    ("aten.slice.Tensor", (5, 6), (0, -3, 9223372036854775807)),
    ("aten.select.int", (5, 6), (0, -2)),
    ("aten.squeeze.default", (1, 5, 1), ()),
    ("aten.squeeze.dims", (1, 5, 1), ((0, 2),)),
    ("aten.unsqueeze.default", (2, 3), (1,)),
    ("aten.unbind.int", (2, 3), (1,)),
    ("aten.split.Tensor", (5, 4), (2, 0)),
    ("aten.split_with_sizes.default", (6, 4), ((1, 2, 3), 0)),
    ("aten.diagonal.default", (4, 5, 3), (1, 0, 1)),
    ("aten.diagonal.default", (4, 5, 3), (-1, 0, 2)),
    ("aten.unfold.default", (7, 3), (0, 3, 2)),
]


@pytest.mark.parametrize("name, shape, arguments", CASES)
def test_each_view_lies_where_torch_has_it(name, shape, arguments):
    graph = Graph()
    x = graph.add_input(TensorType(torch.float32, shape))
    made = Builder(graph).call(name, x, *arguments)
    node = (made if isinstance(made, tuple) else (made,))[0].node
    namespace, packet, overload = name.split(".")
    tensor = torch.arange(torch.Size(shape).numel())
    expected = getattr(getattr(torch.ops.aten, packet), overload)(tensor.view(shape), *arguments)
    for k, wanted in enumerate(expected if isinstance(expected, (tuple, list)) else [expected]):
        affine = views.through(node, k, views.contiguous(shape))
        assert affine.shape == wanted.shape
        assert torch.equal(tensor.as_strided(affine.shape, affine.strides, affine.offset), wanted)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms())
def test_reshape_is_as_torch_views(sizes, random):
    base = torch.arange(torch.Size(sizes).numel()).view(sizes)
    order = list(range(len(sizes)))
    random.shuffle(order)
    tensor = base.permute(order)
    target, left = [], tensor.numel()
    while left > 1:
        divisor = random.choice([d for d in range(2, left + 1) if left % d == 0])
        target.append(divisor)
        left //= divisor
    found = views.reshape(Affine(tuple(tensor.shape), tensor.stride()), tuple(target))
    try:
        expected = tensor.view(target)
    except RuntimeError:
        assert found is None
    else:
        assert found is not None
        assert torch.equal(base.as_strided(found.shape, found.strides, found.offset), expected)
