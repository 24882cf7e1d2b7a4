"""Which ops kernels cover, by family. Lowering has a rule for every op of `KERNELS`; a test checks it.

    pointwise   one element of the result from the elements at its place
    reduction   folds dims of the first operand
    scan        running folds along one dim
    view        index maps that strides can tell, or nearly (`schedule.views` knows which)
    map         moves elements by a fixed rule: cat, pad, flip
    gather      reads the first operand at computed positions
    window      pooling
    constant    no tensor operand

    fill        writes its results in an order of its own

What is not listed is opened by `ops.decompose` into these, taken by a template, or called in torch.
The norms, losses and other composites stand there, written in terms of these.
"""

from __future__ import annotations

import torch

from monograph.ir.graph import Node, Value
from monograph.ir.types import TensorType
from monograph.ops import templates

__all__ = [
    "DTYPES", "FAMILIES", "KERNELS", "MASKS", "SCATTER", "TEMPLATE", "family", "family_of", "is_ordered_scatter",
]

# Element types that kernels compute with.
DTYPES = frozenset({
    torch.float64, torch.float32, torch.bfloat16, torch.float16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
})


# Index types that choose elements by being true rather than by place.
MASKS = frozenset({torch.bool, torch.uint8})


def _aten(names: str) -> frozenset[str]:
    """`neg add.Tensor` -> aten.neg.default, aten.add.Tensor"""
    return frozenset(f"aten.{name}" if "." in name else f"aten.{name}.default" for name in names.split())


POINTWISE = _aten("""
    add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar mul.Tensor mul.Scalar
    div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode floor_divide floor_divide.Scalar
    fmod.Tensor fmod.Scalar remainder.Tensor remainder.Scalar remainder.Scalar_Tensor
    pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar
    neg abs sign relu square reciprocal sqrt rsqrt floor ceil round trunc
    sigmoid tanh exp exp2 expm1 log log2 log10 log1p erf erfc erfinv lgamma digamma
    sin cos tan asin acos atan sinh cosh asinh acosh atanh atan2 hypot
    copysign.Tensor copysign.Scalar nextafter
    maximum minimum fmax fmin clamp clamp.Tensor clamp_min clamp_min.Tensor clamp_max clamp_max.Tensor
    eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar
    gt.Tensor gt.Scalar ge.Tensor ge.Scalar
    logical_and logical_or logical_xor logical_not isnan isinf signbit
    bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor bitwise_or.Scalar bitwise_xor.Tensor bitwise_xor.Scalar
    bitwise_not bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar
    bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar
    where.self where.ScalarSelf where.ScalarOther where.Scalar masked_fill.Scalar masked_fill.Tensor
    _to_copy clone positive
    max.other min.other isfinite isposinf isneginf heaviside nan_to_num round.decimals frac sgn angle deg2rad rad2deg
    addcmul addcdiv lerp.Scalar lerp.Tensor ldexp.Tensor logaddexp logaddexp2 sinc
    xlogy.Tensor xlogy.Scalar_Self xlogy.Scalar_Other special_entr
    special_xlog1py special_xlog1py.self_scalar special_xlog1py.other_scalar
    gelu gelu_backward silu mish elu elu_backward celu selu relu6
    softplus softplus_backward softshrink softshrink_backward hardshrink hardshrink_backward
    hardtanh hardtanh_backward hardsigmoid hardswish hardswish_backward
    leaky_relu leaky_relu_backward threshold threshold_backward tanh_backward _prelu_kernel
""")

REDUCTION = _aten("""
    sum sum.dim_IntList prod prod.dim_int amax amin any any.dim any.dims all all.dim all.dims
    argmax argmin max min max.dim min.dim
""")

SCAN = _aten("cumsum cumprod cummax cummin logcumsumexp")

VIEW = _aten("""
    view _unsafe_view reshape _reshape_alias flatten.using_ints unflatten.int squeeze squeeze.dim squeeze.dims unsqueeze
    alias detach lift_fresh permute transpose.int t expand slice.Tensor select.int unbind.int
    split.Tensor split_with_sizes diagonal unfold
""")

MAP = _aten("""
    cat constant_pad_nd flip roll
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
""")

GATHER = _aten("index.Tensor _unsafe_index.Tensor index_select gather embedding")

WINDOW = _aten("max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d")

CONSTANT = _aten("full arange.start_step scalar_tensor eye eye.m")

FILL = frozenset({"mono.compact", "mono.place", "mono.sort", "mono.spread"})

FAMILIES: dict[str, frozenset[str]] = {
    "pointwise": POINTWISE,
    "reduction": REDUCTION,
    "scan": SCAN,
    "view": VIEW,
    "map": MAP,
    "gather": GATHER,
    "window": WINDOW,
    "constant": CONSTANT,
    "fill": FILL,
}
KERNELS: dict[str, str] = {name: family for family, names in FAMILIES.items() for name in names}

# Anchors of templates; matmul-like composites that reach one by decomposition are not listed.
TEMPLATE = frozenset(templates.ANCHORS)

# Writes at computed positions. Library calls, but for those that kernels do where sizes are known at run time only.
SCATTER = _aten("""
    scatter.src scatter.value scatter_add scatter_reduce.two index_put _unsafe_index_put index_add
    index_copy index_fill.int_Scalar index_fill.int_Tensor masked_scatter put
""")


ORDERED_SCATTER = _aten("index_add index_put")


def is_ordered_scatter(node: Node) -> bool:
    """Is it a write at computed positions that a kernel makes in eager's order: of numbers with exact sums or none,
    at places side by side?"""
    if node.op.name not in ORDERED_SCATTER or not node.inputs[0].tensor.shape:
        return False
    if node.inputs[0].tensor.dtype in (torch.bool, torch.bfloat16, torch.float16):
        return False
    if node.op.name == "aten.index_add.default":
        return node.attributes["alpha"] == 1
    indices = node.operands[1]
    assert isinstance(indices, tuple)
    given = [dim for dim, entry in enumerate(indices) if isinstance(entry, Value)]
    return bool(given) and given == list(range(given[0], given[-1] + 1)) and all(
        entry.tensor.dtype in (torch.int64, torch.int32) for entry in indices if isinstance(entry, Value))


def family_of(name: str) -> str:
    """The family of the op called `name`; empty when kernels do not cover it."""
    return KERNELS.get(name, "")


def family(node: Node) -> str:
    """The family of a node; empty when its types keep it from a kernel: no dtype of ours, or a mask as an index."""
    types = [value.type for value in (*node.inputs, *node.results)]
    if node.op.name in GATHER and any(isinstance(type, TensorType) and type.dtype in MASKS for type in types[1:-1]):
        return ""
    if all(not isinstance(type, TensorType) or type.dtype in DTYPES for type in types):
        return family_of(node.op.name)
    return ""
