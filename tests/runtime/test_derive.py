import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from monograph.errors import CompileError
from monograph.ir.types import TensorType
from monograph.ops import panels
from monograph.runtime import optimisers, probe
from monograph.runtime.derive import Weights
from monograph.runtime.execute import Executable
from monograph.runtime.program import Derived
from monograph.runtime.recipe import Pointwise, computation
from tests.runtime.programs import tensor_type, weight_program

SIZES = [1, 3, 17, 256, 300, 5000]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def counted(program):
    """The program, and a list that grows with every derivation."""
    calls = []
    item = program.derived[0]
    compute = item.compute
    item.compute = lambda *sources: calls.append(1) or compute(*sources)
    return program, calls


def agrees(executable, x, w):
    return torch.equal(executable.run([x, w])[0], x + w.detach() * 2)


def changed_by(change, size, **options):
    """Is a change to the weight, made between two calls, seen by the second?"""
    program, calls = counted(weight_program(size))
    executable = Executable(program, **options)
    x, w = torch.randn(size), torch.nn.Parameter(torch.randn(size))
    assert agrees(executable, x, w) and agrees(executable, x, w)
    assert len(calls) == 1 or options
    change(w)
    assert agrees(executable, x, w)
    seen = len(calls)
    assert agrees(executable, x, w)
    assert len(calls) == seen or options


def in_place(w):
    with torch.no_grad():
        w.copy_(torch.randn_like(w))


def data_assignment(w):
    w.data = torch.randn_like(w)


def through_data(w):
    w.data.mul_(-1)


def through_numpy(w):
    array = w.detach().numpy()
    array *= 1.5


def tiny_through_numpy(w):
    array = w.detach().numpy()
    array += 0.001


def set_storage(w):
    with torch.no_grad():
        w.set_(torch.randn_like(w))


def loaded(w):
    module = torch.nn.ParameterDict({"w": w})
    module.load_state_dict({"w": torch.randn_like(w)})


def loaded_by_assignment(w):
    with torch.inference_mode():
        w.data.copy_(torch.randn_like(w))


def step(kind, **options):
    def change(w):
        optimizer = kind([w], lr=0.1, **options)
        w.grad = torch.randn_like(w)
        optimizer.step()

    change.__name__ = f"{kind.__name__}_{'_'.join(options)}"
    return change


CHANGES = [
    in_place, data_assignment, through_data, through_numpy, tiny_through_numpy, set_storage, loaded,
    loaded_by_assignment, step(torch.optim.SGD), step(torch.optim.SGD, foreach=True), step(torch.optim.SGD, fused=True),
    step(torch.optim.AdamW, foreach=True), step(torch.optim.AdamW, fused=True),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_weights_are_seen(change, size):
    changed_by(change, size)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_weights_are_seen_without_a_layout(change, monkeypatch):
    monkeypatch.setattr(probe, "layout", lambda: None)
    changed_by(change, 300)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_live_weights_follow_everything(change):
    changed_by(change, 300, weights="live")


def test_a_fused_step_that_sampling_cannot_see():
    program, calls = counted(weight_program(5000))
    executable = Executable(program)
    x, w = torch.randn(5000), torch.nn.Parameter(torch.randn(5000))
    assert agrees(executable, x, w)
    w.grad = torch.zeros(5000)
    w.grad[777] = 1
    torch.optim.SGD([w], lr=0.1, fused=True).step()
    assert agrees(executable, x, w) and len(calls) == 2


def test_optimisers_of_other_weights_do_not_matter():
    program, calls = counted(weight_program(300))
    executable = Executable(program)
    x, w, other = torch.randn(300), torch.nn.Parameter(torch.randn(300)), torch.nn.Parameter(torch.randn(3))
    assert agrees(executable, x, w)
    for _ in range(3):
        other.grad = torch.ones(3)
        torch.optim.SGD([other], lr=0.1).step()
        assert agrees(executable, x, w)
    assert len(calls) == 1
    assert executable.weights.current.epoch == optimisers.epoch()


def test_refresh_sees_what_sampling_cannot():
    executable = Executable(weight_program(5000))
    x, w = torch.randn(5000), torch.randn(5000)
    assert agrees(executable, x, w)
    w.numpy()[778] = 100
    executable.refresh()
    assert agrees(executable, x, w)


def test_frozen_weights_are_derived_once():
    program, calls = counted(weight_program(300))
    executable = Executable(program, weights="frozen")
    x, w = torch.randn(300), torch.randn(300)
    before = executable.run([x, w])[0]
    w.zero_()
    assert torch.equal(executable.run([x, w])[0], before) and len(calls) == 1


def test_copies_of_copies_and_several_weights():
    program, calls = counted(weight_program(300))
    kind = tensor_type(300)
    program.derived.append(Derived((("derived", 0), 0), {"steps": []}, lambda d, x: d + x, kind))
    program.slots[1].position = 1
    executable = Executable(program)
    x, w = torch.randn(300), torch.randn(300)
    assert torch.equal(executable.run([x, w])[0], x + (w * 2 + x))
    x.add_(1)
    assert torch.equal(executable.run([x, w])[0], x + (w * 2 + x)) and len(calls) == 1
    w.add_(1)
    assert torch.equal(executable.run([x, w])[0], x + (w * 2 + x)) and len(calls) == 2


def test_a_failing_derivation_leaves_the_old_copy_usable():
    program = weight_program(4)
    executable = Executable(program)
    x, w = torch.randn(4), torch.randn(4)
    assert agrees(executable, x, w)
    compute = program.derived[0].compute
    w.add_(1)
    program.derived[0].compute = lambda w: w[:2]
    with pytest.raises(CompileError, match="derived weight"):
        executable.run([x, w])
    program.derived[0].compute = compute
    assert agrees(executable, x, w)


def test_calls_in_flight_keep_their_copy():
    """Two threads with weights of their own on one executable: each result belongs to its own weight."""
    executable = Executable(weight_program(2000))
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        x, w = torch.randn(2000, generator=generator), torch.randn(2000, generator=generator)
        wrong.extend(seed for _ in range(100) if not agrees(executable, x, w))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_locks_are_fresh_after_fork():
    weights = Weights(weight_program(4), "watched")
    weights._lock.acquire()
    weights._reset_lock()
    assert weights._lock.acquire(blocking=False)


def test_recipes():
    w = torch.arange(15.0).reshape(3, 5)
    pack = computation({"steps": [["pad", [0, 1]], ["reshape", [3, 3, 2]], ["permute", [1, 0, 2]], ["contiguous", []]]})
    padded = torch.nn.functional.pad(w, (0, 1))
    assert torch.equal(pack(w), padded.reshape(3, 3, 2).permute(1, 0, 2))
    joined = computation({"steps": [["slice", [1, 1, 3]], ["concat", [0]], ["cast", ["bf16"]]]})
    assert torch.equal(joined(w, w + 1), torch.cat([w[:, 1:3], w[:, 1:3] + 1]).bfloat16())
    assert torch.equal(computation({"graph": "w * 2"}, lambda text: lambda w: w * 2)(w), w * 2)
    with pytest.raises(CompileError, match="shuffle"):
        computation({"steps": [["shuffle", []]]})
    with pytest.raises(CompileError, match="2 tensors"):
        computation({"steps": []})(w, w)
    with pytest.raises(CompileError, match="evaluate"):
        computation({"graph": "..."})


PACKINGS = [
    panels.gemm(7, 10, 4), panels.gemm(7, 12, 4), panels.gemm(7, 3, 8), (("permute", (1, 0)), *panels.gemm(10, 7, 4)),
    panels.conv(10, 6, 3, 3, 2, 4), panels.conv(8, 4, 1, 1, 1, 4), panels.depthwise(5, 3, 3),
    (("pad", (0, 6)), ("reshape", (2, 2, 8)), ("permute", (1, 0, 2))),                 # a panel of zeros alone
    (("pad", (1, 1)), ("reshape", (7, 3, 4)), ("permute", (1, 0, 2))),                 # not at the end
    (("pad", (0, 2, 0, 1)), ("reshape", (8, 3, 4)), ("permute", (1, 0, 2))),           # more than one dim
    (("pad", (0, 2)), ("reshape", (3, 28)), ("permute", (1, 0))),                      # not into panels
    (("pad", (0, 2)), ("reshape", (7, 3, 4)), ("reshape", (21, 4)), ("slice", (0, 1, 20))),
    (("pad", (0, 2)),),
]
SHAPES = [(7, 10), (7, 12), (7, 3), (7, 10), (10, 3, 3, 3), (8, 4, 1, 1), (5, 1, 3, 3), (2, 10), (7, 10), (7, 10),
          (7, 10), (7, 10), (7, 10)]


@pytest.mark.parametrize(("steps", "shape"), list(zip(PACKINGS, SHAPES, strict=True)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_packed_in_place_and_aside_are_the_same(steps, shape, dtype):
    w = torch.randn(shape).to(dtype)
    compute = computation({"steps": [[name, list(numbers)] for name, numbers in steps]})
    expected = panels.apply(w, steps)
    home = torch.full(expected.shape, torch.nan, dtype=dtype)
    compute.into(home, w)
    assert torch.equal(compute(w), expected) and torch.equal(home, expected)
    other = home.new_empty(*home.shape, 2).select(-1, 0)
    compute.into(other, w)
    assert torch.equal(other, expected)
    for wrong in (home.double(), home.new_empty(*home.shape, 1), home.new_empty(home.shape[0] + 1, *home.shape[1:])):
        with pytest.raises(CompileError, match="came out as"):
            compute.into(wrong, w)


def test_a_folded_weight_is_packed_by_the_same_steps():
    steps = [["pad", [0, 1]], ["reshape", [3, 3, 2]], ["permute", [1, 0, 2]]]
    w = torch.arange(15.0).reshape(3, 5)
    compute = computation({"graph": "twice", "steps": steps}, lambda text: lambda w: w * 2)
    home = torch.empty(3, 3, 2)
    compute.into(home, w)
    assert torch.equal(home, computation({"steps": steps})(w * 2)) and torch.equal(compute(w), home)


@pytest.mark.parametrize(("steps", "shape"), list(zip(PACKINGS, SHAPES, strict=True)))
@pytest.mark.parametrize("more", [(), (("cast", ("bf16",)),), (("contiguous", ()),)])
def test_a_pointwise_op_left_undone_is_done_on_the_way(steps, shape, more):
    """An op that makes 1 of 0 and 0: zeros behind the end of a weight are not its operands."""
    w, scale = torch.randn(shape), torch.randn(shape[0], *(1 for _ in shape[1:]))

    def write(a, b, *, out):
        torch.mul(a, b, out=out).add_(1)

    compute = computation(
        {"graph": "", "steps": [*steps, *more]}, lambda text: lambda w, s: Pointwise(write, (w, s.expand(w.shape))))
    expected = computation({"steps": [*steps, *more]})(w * scale + 1)
    home = torch.full_like(expected, torch.nan)
    compute.into(home, w, scale)
    assert torch.equal(home, expected) and torch.equal(compute(w, scale), expected)


class Largest(TorchDispatchMode):
    """Most bytes of memory that is not that of `tensors` in what an op made."""

    def __init__(self, *tensors):
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in self.known:
            self.bytes = max(self.bytes, result.nbytes)
        return result


@pytest.mark.parametrize(("steps", "shape"), list(zip(PACKINGS, SHAPES, strict=True))[:8])
def test_packing_makes_no_copy_in_between(steps, shape):
    w = torch.randn(shape)
    home = panels.apply(w, steps)
    with Largest(w, home) as largest:
        computation({"steps": [[name, list(numbers)] for name, numbers in steps]}).into(home, w)
    assert largest.bytes == 0


def test_copies_are_laid_out_as_declared():
    program = weight_program(6)
    kind = TensorType(torch.float32, (2, 3), strides=(3, 1))
    program.slots[1].type = program.derived[0].type = kind
    program.derived[0].compute = lambda w: w.reshape(3, 2).t()
    executable = Executable(program)
    x, w = torch.zeros(6), torch.randn(6)
    assert torch.equal(executable.run([x, w])[0], w.reshape(3, 2).t().reshape(-1))
    assert executable.weights.current.tensors[0].stride() == (3, 1)
