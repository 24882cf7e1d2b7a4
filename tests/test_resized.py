"""`out=` and `resize_` on tensors of the program and of the caller: size, strides, memory and warnings as in eager."""

import warnings

import pytest
import torch
from torch import nn

import monograph

A, B = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
INDEX = torch.tensor([[0], [1]])

OPS = {
    "add": lambda o: torch.add(A, B, out=o),
    "turned": lambda o: torch.add(A.t(), B.t(), out=o),
    "mm": lambda o: torch.mm(A, B.t(), out=o),
    "matmul": lambda o: torch.matmul(A, B.t(), out=o),
    "baddbmm": lambda o: torch.baddbmm(torch.ones(1, 2, 2), A[None], B.t()[None], out=o),
    "cat": lambda o: torch.cat([A, B], out=o),
    "stack": lambda o: torch.stack([A, B], out=o),
    "exp": lambda o: torch.exp(A, out=o),
    "sum": lambda o: torch.sum(A, 1, out=o),
    "norm": lambda o: torch.norm(A, 2, 1, out=o),
    "cumsum": lambda o: torch.cumsum(A, 1, out=o),
    "where": lambda o: torch.where(A > 2, A, B, out=o),
    "gather": lambda o: torch.gather(A, 1, INDEX, out=o),
    "tril": lambda o: torch.tril(A, out=o),
    "zeros": lambda o: torch.zeros(2, 2, out=o),
    "eye": lambda o: torch.eye(3, out=o),
    "randn": lambda o: torch.randn(3, out=o),
}
OUTS = {
    "empty": lambda: torch.empty(0),
    "part of more": lambda: torch.arange(20.0)[:0],
    "in the middle of more": lambda: torch.arange(20.0)[3:5],
    "another size": lambda: torch.zeros(7),
    "larger, turned": lambda: torch.zeros(9, 8).t(),
}


def look(tensor):
    return tensor.tolist(), tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def observe(run, make):
    """What a caller sees of `run(out)`: results, warnings, the memory of a view taken before."""
    torch.manual_seed(0)
    out = make()
    base = out if out._base is None else out._base
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run(out)
    seen = look(base.flatten()) if base is not out else None
    return look(result), look(out), result is out, seen, {str(warning.message)[:60] for warning in said}


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("op", OPS)
def test_an_argument_as_out(op, out):
    eager = observe(OPS[op], OUTS[out])
    fast = monograph.compile(OPS[op], backend="reference")
    first, again = observe(fast, OUTS[out]), observe(fast, OUTS[out])
    assert first == eager
    assert again[:-1] == eager[:-1] and not fast.recompiles


@pytest.mark.parametrize("op", OPS)
def test_a_tensor_of_the_program_as_out(op):
    def local(x):
        out = torch.empty(0)
        return OPS[op](out) * x, out

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(0)
        eager = local(torch.ones(()))
        torch.manual_seed(0)
        ours = monograph.compile(local, backend="reference")(torch.ones(()))
    assert [*map(look, ours)] == [*map(look, eager)]


def test_several_outs():
    def largest(values, places):
        torch.max(A, 1, out=(values, places))

    found = []
    for run in (largest, monograph.compile(largest, backend="reference")):
        found.append((torch.empty(0), torch.empty(0, dtype=torch.int64)))
        run(*found[-1])
    assert [*map(look, found[0])] == [*map(look, found[1])]


def test_a_buffer_that_grows_at_the_first_call():
    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("out", torch.empty(0))

        def forward(self, x):
            return torch.add(x, 1, out=self.out) * 2

    module = Kept()
    fast, storage = monograph.compile(module, backend="reference"), module.out
    for _ in range(2):
        assert fast(A).tolist() == ((A + 1) * 2).tolist() and module.out is storage
    assert look(module.out) == look(A + 1) and len(fast.recompiles) == 1


def test_resize_sees_the_memory_behind_a_view():
    def stretched(x):
        x.resize_(8)
        return x * 2

    fast = monograph.compile(stretched, backend="reference")
    for size in (10, 8, 20):
        eager, ours = (torch.arange(float(size))[:5] for _ in range(2))
        assert look(fast(ours)) == look(stretched(eager)) and look(ours) == look(eager)
    ours = torch.arange(5.0)
    assert fast(ours)[:5].tolist() == [0, 2, 4, 6, 8] and ours.shape == (8,)


def test_overlapping_arguments_with_more_or_less_memory_behind():
    def shift(a, b):
        a.add_(1)
        return b * 2

    fast = monograph.compile(shift, backend="reference")
    for size in (6, 10, 6):
        eager, ours = (torch.arange(float(size)) for _ in range(2))
        assert fast(ours[:4], ours[2:6]).tolist() == shift(eager[:4], eager[2:6]).tolist()
        assert ours.tolist() == eager.tolist()
    assert [str(recompile) for recompile in fast.recompiles] == ["how much memory lies behind the arguments"]
