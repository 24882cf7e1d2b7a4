"""Calls that eager refuses are refused alike: same exception, same message. Calls that it takes are taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

import monograph
from monograph.capture import eager_checks
from tests.compare import assert_same
from tests.opinfo import full_name

WHOLE, BYTES, TRUTH = torch.arange(6).reshape(2, 3), torch.ones(2, 3, dtype=torch.uint8), torch.ones(2, 3) > 0
HALF, COMPLEX, NONE = torch.ones(2, 3).half(), torch.ones(2, 3, dtype=torch.complex64), torch.zeros(0)

REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "max of nothing": (lambda x: x.max(), (NONE,)),
    "argmin of nothing": (lambda x: x.argmin(), (NONE,)),
    "argmax of bool": (lambda x: x.argmax(), (TRUTH,)),
    "softmax of integers": (lambda x: x.softmax(0), (WHOLE,)),
    "fill that does not fit": (lambda x: x.clone().fill_(300), (BYTES,)),
    "mask that does not fit": (lambda x, m: x.masked_fill(m, 300), (BYTES, TRUTH)),
    "full that does not fit": (lambda: torch.full((2,), 300, dtype=torch.uint8), ()),
    "a float that does not fit": (lambda x: x.clamp(1e300), (torch.ones(2, 3),)),
    "a half that does not fit": (lambda x: x.clone().fill_(1e6), (HALF,)),
    "silu of integers": (F.silu, (WHOLE,)),
    "glu of integers": (lambda x: F.glu(x, 0), (WHOLE,)),
    "shift of halves": (lambda x: x >> x, (HALF,)),
    "abs of bool": (torch.abs, (TRUTH,)),
    "minus of bool": (lambda x, y: x - y, (torch.ones(2, 3), TRUTH)),
    "minus a bool number": (lambda x: x - True, (torch.ones(2, 3),)),
    "a bool number minus": (lambda x: False - x, (torch.ones(2, 3),)),
    "bool times what is added": (lambda x: torch.add(x, 1, alpha=True), (torch.ones(2, 3),)),
    "bits of floats": (lambda x: x ^ 1, (torch.ones(2, 3),)),
    "logaddexp2 of integers": (lambda x: torch.logaddexp2(x, x), (WHOLE,)),
    "logcumsumexp of integers": (lambda x: x.logcumsumexp(0), (WHOLE,)),
    "cross entropy of integers": (lambda x: F.cross_entropy(x, torch.zeros(2, dtype=torch.int64)), (WHOLE,)),
    "pooling of integers": (lambda x: F.max_pool1d(x, 2), (WHOLE,)),
    "a product of two dtypes": (lambda x, y: x @ y, (torch.ones(2, 3), torch.ones(3, dtype=torch.int64))),
    "an index of floats": (lambda x, i: x.index_select(0, i), (WHOLE, torch.ones(2))),
    "interpolation of nothing": (lambda x: F.interpolate(x, (3, 3), mode="bilinear"), (torch.ones(1, 1, 4, 0),)),
    "layer norm over nothing": (lambda x: torch.native_layer_norm(x, (), None, None, 1e-5), (torch.ones(2, 3),)),
    "normal numbers around integers": (lambda x: torch.normal(x, 1.0), (WHOLE,)),
    "a mask of integers": (lambda x: x.masked_select(x), (WHOLE,)),
    "a large tensor": (lambda x: F.silu(x).softmax(1), (torch.zeros(200, 300, dtype=torch.int64),)),
}
ACCEPTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "division of integers": (lambda x: x // (x + 1), (WHOLE,)),
    "indices": (lambda x, i: x[i] + x.index_select(0, i), (WHOLE, torch.tensor([1, 0]))),
    "repeats": (lambda x: x.repeat_interleave(torch.tensor([1, 2]), 0, output_size=3), (WHOLE,)),
    "classes": (lambda x, t: F.cross_entropy(x, t), (torch.ones(2, 3), torch.tensor([2, 1]))),
    "sums of nothing": (lambda x: (x.sum(), x.prod(), x.cumsum(0), x.any()), (NONE,)),
    "solving complex equations": (lambda x: torch.linalg.cholesky(x @ x.mH + torch.eye(2)), (COMPLEX[:, :2],)),
    "halves": (lambda x: (x @ x.T).softmax(0), (HALF,)),
    "bags": (lambda i, w: F.embedding_bag(i, w, torch.tensor([0, 2])), (torch.tensor([3, 1, 2]), torch.ones(4, 2))),
    "bytes as masks": (lambda x, m: torch.where(m.bool(), x, 0), (WHOLE, BYTES)),
    "infinite numbers": (lambda x: x.clamp(max=float("inf")), (torch.ones(2, 3),)),
    "powers of bools": (lambda x: (x ** True, x ** False, x ** 1), (TRUTH,)),
}


def outcome(fn: Callable[..., Any], args: Any, kwargs: Any) -> tuple[type, str] | None:
    args, kwargs = pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (args, kwargs))
    try:
        with torch.no_grad():
            fn(*args, **kwargs)
    except Exception as error:       # what eager raises is the question
        return type(error), str(error)
    return None


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str):
    fn, args = REFUSED[name]
    expected = outcome(fn, args, {})
    assert expected is not None
    compiled = monograph.compile(fn)
    assert outcome(compiled, args, {}) == expected
    assert outcome(compiled, args, {}) == expected, "the second time"


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str):
    fn, args = ACCEPTED[name]
    assert_same(monograph.compile(fn)(*args), fn(*args))


def test_a_refusal_can_be_caught():
    def fn(x: torch.Tensor) -> torch.Tensor:
        try:
            return x.softmax(0)
        except NotImplementedError:
            return x.float().softmax(0)

    assert_same(monograph.compile(fn)(WHOLE), fn(WHOLE))


@pytest.mark.parametrize("op", [op for op in op_db if op.error_inputs_func is not None][::8], ids=full_name)
def test_error_inputs_of_the_operator_database(op: OpInfo):
    def fn(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    for case in itertools.islice(op.error_inputs("cpu"), 8):
        sample = case.sample_input
        args = (sample.input, *sample.args)
        expected = outcome(fn, args, sample.kwargs)
        if expected is not None:
            got = outcome(monograph.compile(fn), args, sample.kwargs)
            refused = got is not None and got[0] in (monograph.DataDependentError, monograph.DeviceError)
            assert refused or got == expected


@pytest.mark.parametrize("func", [
    torch.ops.aten.embedding_dense_backward.default, torch.ops.aten._ctc_loss.default, torch.ops.aten.view.default,
], ids=str)
def test_ops_that_trust_their_indices_are_not_tried(func: Any):
    assert not eager_checks._is_checked(func)
