"""A compiled module is a module: state, hooks, copies, methods."""

import copy
import io
import os
import pickle

import pytest
import torch
from torch import nn

import monograph


class Scale(nn.Module):
    """Multiplies and counts."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(factor))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        return x * self.weight

    def generate(self, x, steps):
        for _ in range(steps):
            x = self(x)
        return x


def compiled(module, **options):
    return monograph.compile(module, backend="reference", **options)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def test_is_the_module_in_every_respect():
    net = Scale()
    fast = compiled(net)
    assert isinstance(fast, Scale) and type(fast).__name__ == "Scale" and fast._orig_mod is net
    assert list(fast.state_dict()) == list(net.state_dict()) == ["weight", "calls"]
    assert [p is net.weight for p in fast.parameters()] == [True]
    assert [name for name, _ in fast.named_modules()] == [""]
    assert repr(fast) == repr(net)


def test_state_is_shared_both_ways():
    net = Scale()
    fast = compiled(net)
    fast(torch.ones(1))
    assert net.calls.item() == fast.calls.item() == 1
    fast.eval()
    assert not net.training
    net.extra = 5
    assert fast.extra == 5
    fast.weight.fill_(7.0)
    assert net(torch.ones(1)).item() == 7
    fast.to(torch.float64)
    assert net.weight.dtype is torch.float64
    assert fast(torch.ones(1)).dtype is torch.float64 or fast(torch.ones(1)).dtype is net(torch.ones(1)).dtype


def test_methods_call_the_compiled_forward():
    fast = compiled(Scale())
    assert fast.generate(torch.ones(1), 3).item() == 8
    assert len(monograph.api.dispatcher_of(fast).entries) == 1


def test_load_state_dict_is_seen():
    fast = compiled(Scale())
    fast(torch.ones(1))
    fast.load_state_dict(Scale(5.0).state_dict())
    assert fast(torch.ones(1)).item() == 5


def test_two_instances_do_not_share():
    a, b = compiled(Scale(2.0)), compiled(Scale(5.0))
    x = torch.ones(1)
    assert [a(x).item(), b(x).item(), a(x).item(), a.calls.item(), b.calls.item()] == [2, 5, 2, 2, 1]


def test_as_a_submodule():
    net = nn.Sequential(compiled(Scale(2.0)), Scale(3.0))
    assert net(torch.ones(1)).item() == 6
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "1.weight"]
    whole = compiled(net)
    assert whole(torch.ones(1)).item() == 6 and whole(torch.ones(1)).item() == 6
    assert net[0].calls.item() == 3


def test_copies_are_compiled_and_apart():
    fast = compiled(Scale())
    fast(torch.ones(1))
    for twin in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        twin.weight.fill_(3.0)
        assert twin(torch.ones(1)).item() == 3 and fast(torch.ones(1)).item() == 2
        assert isinstance(twin, Scale) and monograph.api.dispatcher_of(twin).entries
    buffer = io.BytesIO()
    torch.save(fast, buffer)
    buffer.seek(0)
    assert torch.load(buffer, weights_only=False)(torch.ones(1)).item() == 2
    assert fast.weight.item() == 2


def test_hooks_run_as_in_eager():
    net = Scale()
    fast = compiled(net)
    handles = [fast.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
               net.register_forward_hook(lambda m, args, out: out * 10)]
    assert fast(torch.ones(1)).item() == net(torch.ones(1)).item() == 40
    for handle in handles:
        handle.remove()
    assert fast(torch.ones(1)).item() == 2


def test_train_and_eval():
    net = nn.Sequential(nn.BatchNorm1d(1, affine=False))
    twin = copy.deepcopy(net)
    fast = compiled(net)
    x = torch.tensor([[1.0], [3.0]])
    for module in (fast, twin):
        module.train()
    torch.testing.assert_close(fast(x), twin(x))
    torch.testing.assert_close(net[0].running_mean, twin[0].running_mean)
    assert net[0].num_batches_tracked.item() == 1
    for module in (fast, twin):
        module.eval()
    torch.testing.assert_close(fast(x), twin(x))


def test_compiling_twice_is_compiling_once():
    net = Scale()
    assert compiled(compiled(net))._orig_mod is net


def test_works_in_a_forked_child():
    fast = compiled(nn.Linear(2, 2))
    x = torch.ones(1, 2)
    want = fast(x)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            again = torch.equal(fast(x), want) and fast(torch.ones(3, 2)).shape == (3, 2)
            os.write(writer, b"1" if again else b"0")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 1) == b"1"


def test_a_class_that_refuses_to_be_subclassed():
    class Final(nn.Module):
        def __init_subclass__(cls):
            raise TypeError("final")

    with pytest.raises(monograph.InputError, match="model.forward"):
        compiled(Final())


def test_refresh_makes_frozen_copies_again():
    net = nn.Linear(64, 64)
    fast = monograph.compile(net, weights="frozen")
    x = torch.ones(2, 64)
    before = fast(x)
    net.weight.mul_(2)
    torch.testing.assert_close(fast(x), before)
    monograph.refresh(fast)
    torch.testing.assert_close(fast(x), net(x))
    with pytest.raises(monograph.InputError, match="not compiled"):
        monograph.refresh(net)


def test_reset_forgets_every_version():
    fast = compiled(Scale())
    for factor in (1.0, 2.0):
        fast.extra = factor
        fast(torch.ones(1))
        fast(torch.ones(2))
    dispatcher = monograph.api.dispatcher_of(fast)
    assert dispatcher.entries and fast.recompiles
    monograph.reset()
    assert not dispatcher.entries and not fast.recompiles
    assert fast(torch.ones(1)).item() == 2 and len(dispatcher.entries) == 1
