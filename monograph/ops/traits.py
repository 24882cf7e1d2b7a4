"""Traits and effects of torch's ops: the schema's alias annotations and tags, and where they fall short.

Every set below names ops by packet (`aten.gather`), so that it holds for all overloads.
"""

from __future__ import annotations

import torch

from monograph.ir.op import Effect, Trait

__all__ = ["effects", "of_schema"]

COMMUTATIVE = frozenset({     # with alpha 1, where there is one
    "aten.add.Tensor", "aten.mul.Tensor", "aten.eq.Tensor", "aten.ne.Tensor", "aten.logical_and.default",
    "aten.logical_or.default", "aten.logical_xor.default", "aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor",
    "aten.bitwise_xor.Tensor",
})

# Elementwise, though torch does not tag them.
POINTWISE = frozenset({
    "aten._to_copy", "aten.rsub", "aten.masked_fill",
    "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar",
    "aten.isclose", "aten.log_sigmoid_backward", "aten.hardswish", "aten.hardswish_backward",
    "aten.hardsigmoid_backward", "aten.hardtanh_backward", "aten.elu_backward", "aten.leaky_relu_backward",
    "aten.mish_backward", "aten.softplus_backward", "aten.softshrink_backward", "aten.hardshrink_backward",
    "aten._prelu_kernel", "aten.floor_divide", "aten.clamp_min", "aten.clamp_max", "aten.special_log_ndtr",
    "prims.convert_element_type",
})

# Tagged pointwise, but a result depends on more than the elements at its own place.
NOT_POINTWISE = frozenset({"aten.native_dropout_backward"})

# Annotated as aliases of their operand, yet they compute, convert or reinterpret.
NOT_VIEWS = frozenset({
    "aten.to", "aten.contiguous", "aten.view.dtype", "aten.view_as_real", "aten.view_as_complex", "aten._conj",
    "aten._neg_view", "aten.conj", "aten.real", "aten.imag", "aten.resolve_conj", "aten.resolve_neg",
    "aten._nested_view_from_buffer",
})

# Composites that templates take whole, and those that `ops.decompose` opens.
COMPOSITE = frozenset({
    "aten.linear", "aten.addmm", "aten.baddbmm", "aten.convolution", "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten.scaled_dot_product_attention", "aten._scaled_dot_product_attention_math",
    "aten.native_layer_norm", "aten.native_group_norm", "aten.native_batch_norm", "aten._fused_rms_norm",
    "aten._native_batch_norm_legit", "aten._native_batch_norm_legit_no_training",
    "aten._native_batch_norm_legit_functional",
    "aten.lstm", "aten.gru", "aten._embedding_bag", "aten._softmax", "aten._log_softmax",
})

# Draw from a generator, though torch does not tag them in every overload.
RANDOM = frozenset({
    "aten.rand", "aten.randn", "aten.randint", "aten.randperm",
    "aten.rand_like", "aten.randn_like", "aten.randint_like",
    "aten.bernoulli", "aten.multinomial", "aten.normal", "aten.poisson", "aten.binomial", "aten.native_dropout",
    "aten.rrelu_with_noise_functional", "aten._sample_dirichlet", "aten._standard_gamma", "aten.normal_functional",
})

# Raise on an index out of range, on an integer division by zero, or because checking is all they do.
RAISES = frozenset({
    "aten.index", "aten.index_select", "aten.gather", "aten.take", "aten.embedding", "aten._embedding_bag",
    "aten._embedding_bag_forward_only", "aten.embedding_bag",
    "aten.index_put", "aten._unsafe_index_put", "aten.index_add", "aten.index_copy", "aten.index_fill",
    "aten.index_reduce", "aten.scatter", "aten.scatter_add", "aten.scatter_reduce", "aten.put",
    "aten.nll_loss_forward", "aten.nll_loss2d_forward", "aten.multi_margin_loss", "aten.multilabel_margin_loss_forward",
    "aten.embedding_dense_backward", "aten.max_unpool2d", "aten.max_unpool3d", "aten.one_hot", "aten.repeat_interleave",
    "aten.floor_divide", "aten.remainder", "aten.fmod", "aten.div.Tensor_mode", "aten.div.Scalar_mode",
    "aten.linalg_cholesky", "aten.linalg_inv", "aten.linalg_solve",
    "aten._assert_async", "aten._functional_assert_async", "aten._assert_scalar", "aten.sym_constrain_range",
    "aten._linalg_check_errors",
})


def _packet(name: str) -> str:
    return name.rsplit(".", 1)[0]


def _in(names: frozenset[str], name: str) -> bool:
    return name in names or _packet(name) in names


def of_schema(name: str, target: torch._ops.OpOverload) -> frozenset[Trait]:
    """The traits of overload `target`, called `name`."""
    traits = set()
    schema, tags = target._schema, target.tags
    if torch.Tag.nondeterministic_seeded in tags or _in(RANDOM, name):
        traits.add(Trait.RANDOM)
    is_view = any(result.alias_info is not None for result in schema.returns) or torch.Tag.view_copy in tags
    if is_view and not _in(NOT_VIEWS, name):
        traits.add(Trait.VIEW)
    if (torch.Tag.pointwise in tags and not _in(NOT_POINTWISE, name)) or _in(POINTWISE, name):
        traits.add(Trait.POINTWISE)
    if torch.Tag.reduction in tags:
        traits.add(Trait.REDUCTION)
    if torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags:
        traits.add(Trait.SYNC)
    if not any("Tensor" in str(argument.type) for argument in schema.arguments):
        traits.add(Trait.FACTORY)
    if name in COMMUTATIVE:
        traits.add(Trait.COMMUTATIVE)
    if _in(COMPOSITE, name):
        traits.add(Trait.COMPOSITE)
    if name in ("aten.index.Tensor", "aten.index_put.default", "aten._unsafe_index.Tensor"):
        traits.discard(Trait.SYNC)      # only with a bool mask, and then the result's type says so
    return frozenset(traits)


def effects(name: str) -> frozenset[Effect]:
    """What op `name` does besides computing."""
    return frozenset({Effect.RAISES}) if _in(RAISES, name) else frozenset()
