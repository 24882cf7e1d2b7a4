"""Types of results: torch's promotion, shapes, symbolic sizes."""

import pytest
import torch

from monograph.errors import UnsupportedError
from monograph.ir.graph import Graph
from monograph.ir.symbolic import Symbol, minimum
from monograph.ir.types import ScalarType, TensorType
from monograph.ops.build import Builder

s, t = Symbol("s", 2), Symbol("t", 1, 64)


def infer(name, *types, **attributes):
    graph = Graph()
    def operand(x):
        if isinstance(x, tuple):
            return tuple(operand(entry) for entry in x)
        return graph.add_input(x) if isinstance(x, (TensorType, ScalarType)) else x

    operands = [operand(x) for x in types]
    result = Builder(graph).call(name, *operands, **attributes)
    return [str(v.type) for v in result] if isinstance(result, tuple) else str(result.type)


def tensor(dtype, *shape):
    return TensorType(dtype, shape)


def test_promotion_tells_numbers_scalars_and_tensors_apart():
    f16, i64 = torch.float16, torch.int64
    assert infer("aten.add.Tensor", tensor(f16, 2), 1.5) == "f16[2]"
    assert infer("aten.add.Tensor", tensor(i64, 2), 1.5) == "f32[2]"
    assert infer("aten.add.Tensor", tensor(f16, 2), tensor(torch.float32)) == "f16[2]"
    assert infer("aten.add.Tensor", tensor(f16, 2), tensor(torch.float32, 1)) == "f32[2]"
    assert infer("aten.add.Tensor", tensor(torch.uint8, 2), ScalarType("float")) == "f32[2]"
    assert infer("aten.gt.Scalar", tensor(f16, 2), 1) == "bool[2]"
    assert infer("aten.div.Tensor", tensor(i64, 2), 2) == "f32[2]"


def test_results_of_several_kinds():
    f32 = torch.float32
    assert infer("aten.max.dim", tensor(f32, 2, 3), 1) == ["f32[2]", "i64[2]"]
    assert infer("aten.split.Tensor", tensor(f32, 5, 2), 2) == ["f32[2, 2]", "f32[2, 2]", "f32[1, 2]"]
    assert infer("aten.zeros.default", (2,), dtype=f32) == "f32[2]"


def test_symbolic_shapes():
    f32 = torch.float32
    x = tensor(f32, s, 4, t)
    assert infer("aten.add.Tensor", x, tensor(f32, t)) == "f32[s, 4, t]"
    assert infer("aten.permute.default", x, (2, 0, 1)) == "f32[t, s, 4]"
    assert infer("aten.view.default", x, (4 * s, t)) == "f32[4*s, t]"
    assert infer("aten.sum.dim_IntList", x, (0, 1), True) == "f32[1, 1, t]"
    assert infer("aten.cat.default", (x, x, x), 2) == "f32[s, 4, 3*t]"
    assert infer("aten.bmm.default", x, tensor(f32, s, t, 7)) == "f32[s, 4, 7]"
    assert infer("aten.slice.Tensor", x, 0, 1, 2**63 - 1) == "f32[s - 1, 4, t]"
    assert infer("aten.constant_pad_nd.default", x, (1, 2)) == "f32[s, 4, t + 3]"


def test_sizes_that_are_quotients_are_no_accident_of_the_examples():
    f32, n = torch.float32, Symbol("n", 1)
    assert infer("aten.view.default", tensor(f32, (n // t) * t, 2), (1, (n // t) * t, 1, 2)) == "f32[1, (n//t)*t, 1, 2]"
    halves = n // 2 * (n // (n // 2))
    assert infer("aten.unsqueeze.default", tensor(f32, halves, 4), 0) == "f32[1, (n//(n//2))*(n//2), 4]"
    assert infer("aten.unsqueeze.default", tensor(f32, 5, minimum(n, 5)), 0) == "f32[1, 5, min(5, n)]"
    assert infer("aten.neg.default", tensor(f32, n // t // 4)) == "f32[(n//t)//4]"
    assert infer("aten.view.default", tensor(f32, (-n) % 8, 3), ((-n) % 8, 3, 1)) == "f32[(7*n)%8, 3, 1]"


def test_a_size_that_is_one_number_for_all_examples_is_refused():
    n = Symbol("n", 1)
    with pytest.raises(UnsupportedError, match="cannot be told"):
        infer("aten.unsqueeze.default", tensor(torch.float32, 2, minimum(n, 2)), 0)


def test_a_size_that_depends_on_values_is_refused():
    with pytest.raises(UnsupportedError, match="nonzero"):
        infer("aten.nonzero.default", tensor(torch.float32, s))


def test_the_default_dtype_and_autocast_are_minded():
    assert infer("aten.div.Tensor", tensor(torch.int64, 2), 2) == "f32[2]"
    torch.set_default_dtype(torch.float64)
    try:
        assert infer("aten.div.Tensor", tensor(torch.int64, 2), 2) == "f64[2]"
        assert infer("aten.mean.default", tensor(torch.float32, 2)) == "f32[]"
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu"):
        assert infer("aten.mm.default", tensor(torch.float32, 2, 3), tensor(torch.float32, 3, 4)) == "f32[2, 4]"


def test_an_op_whose_result_depends_on_the_device():
    f16 = torch.float16
    assert infer("aten.native_layer_norm.default", tensor(f16, 2, 3), (3,), None, None, 1e-5)[1] == "f16[2, 1]"
