"""PyTorch's own operator database as a test of ours: every op, its own sample inputs, compiled against eager.

`families()` sorts op names by kind; `check(op, dtype, ...)` runs one op and says how it went.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, ReductionOpInfo, UnaryUfuncInfo
from torch.utils import _pytree as pytree

import monograph
from monograph.api import dispatcher_of
from monograph.runtime.program import Library
from tests.compare import assert_same

__all__ = ["Outcome", "check", "family", "full_name", "ops"]

POINTWISE = set("""
    addcmul addcdiv clamp lerp where masked_fill logaddexp2 nn.functional.hardswish nn.functional.leaky_relu
    nn.functional.gelu nn.functional.glu nn.functional.l1_loss nn.functional.mse_loss nn.functional.smooth_l1_loss
    nn.functional.huber_loss nn.functional.kl_div nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.soft_margin_loss
    nn.functional.margin_ranking_loss nn.functional.hinge_embedding_loss nn.functional.poisson_nll_loss
    nn.functional.gaussian_nll_loss to zeros_like ones_like full_like new_zeros new_ones new_full zeros ones full
    eye arange linspace logspace scalar_tensor zero_ addr outer _softmax_backward_data native_dropout_backward
""".split())
REDUCTION = set("""
    softmax nn.functional.softmin log_softmax _softmax_backward_data logsumexp var_mean std_mean max min aminmax
    nn.functional.layer_norm native_layer_norm nn.functional.group_norm native_group_norm
    nn.functional.instance_norm nn.functional.rms_norm nn.functional.batch_norm native_batch_norm
    nn.functional.normalize nn.functional.cosine_similarity nn.functional.pairwise_distance norm dist trace
    linalg.vecdot linalg.norm linalg.matrix_norm nn.functional.nll_loss nn.functional.cross_entropy
    nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.max_pool1d
    nn.functional.max_pool2d nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d
    torch.ops.aten._safe_softmax.default masked.softmax masked.log_softmax masked.softmin masked.normalize
    nn.functional.triplet_margin_loss nn.functional.cosine_embedding_loss nn.functional.local_response_norm
    sum_to_size allclose equal
""".split())
VIEW = set("""
    alias_copy atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to cat chunk clone
    column_stack contiguous diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter dsplit dstack expand
    expand_as expand_copy fft.fftshift fft.ifftshift flatten flip fliplr flipud H hsplit hstack linalg.diagonal mH
    mT meshgrid movedim narrow narrow_copy nn.functional.channel_shuffle nn.functional.pad constant_pad_nd
    nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.unfold permute permute_copy ravel
    repeat reshape reshape_as resolve_conj resolve_neg roll rot90 select select_scatter slice slice_scatter split
    split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack swapaxes T t t_copy tensor_split tile
    transpose transpose_copy tril triu unbind unbind_copy unflatten unfold unfold_copy unsafe_chunk unsafe_split
    unsqueeze unsqueeze_copy view view_as view_copy vsplit vstack _chunk_cat as_strided as_strided_copy
    repeat_interleave
""".split())
GATHER = set("""
    __getitem__ gather index_select nn.functional.embedding take take_along_dim nn.functional.interpolate
    nn.functional.upsample_nearest nn.functional.grid_sample _unsafe_masked_index
""".split())
SCAN = set("cumsum cumprod cummax cummin logcumsumexp masked.cumsum masked.cumprod cumulative_trapezoid".split())
UNINITIALISED = set("empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split())
FAMILIES = {"reduction": REDUCTION, "pointwise": POINTWISE, "view": VIEW, "gather": GATHER, "scan": SCAN}


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def family(op: OpInfo) -> str:
    """pointwise, reduction, view, gather, scan or other."""
    for name, members in FAMILIES.items():
        if op.name in members:
            return name
    if isinstance(op, ReductionOpInfo):
        return "reduction"
    if isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)):
        return "pointwise"
    return "other"


def ops(dtype: torch.dtype) -> list[OpInfo]:
    """Every op of the database that supports `dtype` on the CPU."""
    return [op for op in op_db if dtype in op.supported_dtypes("cpu")]


@dataclass
class Outcome:
    """status: passed, failed, refused, nondeterministic (eager differs from itself), skipped (eager itself raises)."""

    name: str
    family: str
    status: str
    reason: str = ""
    library: tuple[str, ...] = ()    # ops that ran as library calls
    samples: int = 0


def check(op: OpInfo, dtype: torch.dtype, *, samples: int = 3, grad: bool = False, backend: str = "llvm") -> Outcome:
    """Compile `op` for its first `samples` sample inputs and compare with eager.

    Values (`_assert_right`), dtype, shape, strides, Python types and what became of the inputs are compared; with
    `grad`, also the gradients of a weighted sum of the floating results.
    """
    outcome = Outcome(full_name(op), family(op), "passed")
    if op.name in UNINITIALISED:         # eager may give the same twice by chance
        return Outcome(outcome.name, outcome.family, "nondeterministic", "uninitialised memory")
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    try:
        cases = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), samples))
    except Exception as error:   # the database's own generators raise anything
        return Outcome(outcome.name, outcome.family, "skipped", f"no samples: {error!r}"[:200])
    library: set[str] = set()
    for sample in cases:
        arguments = (sample.input, *sample.args)
        function = _callable(op)
        try:
            first = _run(function, arguments, sample.kwargs, grad)
            second = _run(function, arguments, sample.kwargs, grad)
        except Exception as error:
            return Outcome(outcome.name, outcome.family, "skipped", f"eager raises: {error!r}"[:200])
        if not _equal(first, second):
            return Outcome(outcome.name, outcome.family, "nondeterministic")
        compiled = monograph.compile(function, backend=backend)
        try:
            actual = _run(compiled, arguments, sample.kwargs, grad)
            _assert_right(actual, first, partial(_run_exactly, function, arguments, sample.kwargs, grad))
        except monograph.CaptureError as error:
            outcome.status, outcome.reason = "refused", f"{type(error).__name__}: {error}"[:300]
            return outcome
        except Exception as error:
            outcome.status, outcome.reason = "failed", f"{type(error).__name__}: {error}"[:300]
            return outcome
        outcome.samples += 1
        library.update(library_calls(compiled))
    outcome.library = tuple(sorted(library))
    return outcome


def _callable(op: OpInfo) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return function


def _run(function: Any, arguments: Any, kwargs: Any, grad: bool) -> Any:
    """Result, arguments afterwards and gradients, from clones of the arguments and a fixed seed."""
    args, kw = pytree.tree_map(_copy, (arguments, kwargs))
    torch.manual_seed(7)
    with torch.set_grad_enabled(grad):
        result = function(*args, **kw)
    gradients = _gradients(result, (args, kw)) if grad else None
    return (result, args, kw), gradients


def _copy(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    copied = leaf.detach().clone(memory_format=torch.preserve_format)
    if copied.stride() != leaf.stride():
        copied = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype).copy_(leaf.detach())
    return copied.requires_grad_(leaf.requires_grad)


def _gradients(result: Any, inputs: Any) -> Any:
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    leaves = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not outputs or not leaves:
        return None
    weights = [torch.ones_like(output) * 0.5 for output in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [None if gradient is None else gradient.contiguous() for gradient in gradients]   # strides are autograd's


def _assert_right(actual: Any, expected: Any, exact: Callable[[], Any]) -> None:
    """As eager; where rounding sets the two apart, no tensor further than eager's from what `exact` gives in f64."""
    try:
        assert_same(actual, expected)
        return
    except AssertionError as error:
        difference = error
    assert_same(actual, expected, rtol=float("inf"), atol=float("inf"))     # all but the values
    triples = zip(*map(pytree.tree_leaves, (actual, expected, exact())), strict=True)
    if not all(_as_near(*triple) for triple in triples if isinstance(triple[0], torch.Tensor)):
        raise difference


def _as_near(actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> bool:
    if not expected.dtype.is_floating_point or not actual.numel():
        return _equal(actual, expected)
    ours, eagers = ((x.detach().double() - exact.detach()).abs().nan_to_num(float("inf")) for x in (actual, expected))
    return _equal(actual.isfinite(), expected.isfinite()) and bool(ours.max() <= eagers.max())


def _run_exactly(function: Any, arguments: Any, kwargs: Any, grad: bool) -> Any:
    """As `_run`, in f64."""
    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point:
            return leaf.detach().double().requires_grad_(leaf.requires_grad)
        return leaf

    wide, keywords = pytree.tree_map(widened, (arguments, kwargs))
    return _run(function, wide, keywords, grad)


def _equal(first: Any, second: Any) -> bool:
    try:
        assert_same(first, second, rtol=0.0, atol=0.0)
    except AssertionError:
        return False
    return True


def library_calls(compiled: Any) -> set[str]:
    """Names of the ops that the programs of a compiled function run as library calls."""
    dispatcher = dispatcher_of(compiled)
    assert dispatcher is not None
    return {
        step.op for entry in dispatcher.entries for half in entry.report.halves.values() if half.program is not None
        for step in half.program.steps if isinstance(step, Library)
    }
