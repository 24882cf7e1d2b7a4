"""compile as users meet it: functions, methods, decorators, errors, results and writes."""

import inspect
import threading
import time
import warnings

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import CaptureError, DeviceError, InputError, UnsupportedError


def reference(target=None, **options):
    return monograph.compile(target, backend="reference", **options)


def equal(got, want):
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert got.stride() == want.stride()


def test_function_keeps_name_doc_and_signature():
    def blend(a, b, *, t=0.5):
        """Mix two tensors."""
        return a + t * (b - a)

    fast = reference(blend)
    assert (fast.__name__, fast.__doc__, str(inspect.signature(fast))) == (
        "blend", "Mix two tensors.", "(a, b, *, t=0.5)")
    equal(fast(torch.zeros(2), torch.ones(2), t=0.25), torch.full((2,), 0.25))


def test_decorator_with_and_without_arguments():
    @reference
    def one(x):
        return x + 1

    @monograph.compile(backend="reference", mode="max-autotune")
    def two(x):
        return x + 2

    assert one(torch.zeros(1)).item() == 1 and two(torch.zeros(1)).item() == 2


def test_decorated_method_binds():
    class Meter:
        def __init__(self, unit):
            self.unit = unit

        @monograph.compile(backend="reference")
        def read(self, x):
            return x * self.unit

    x = torch.ones(2)
    assert Meter(2.0).read(x).tolist() == [2, 2] and Meter(3.0).read(x).tolist() == [3, 3]


def test_bound_method_with_state():
    class Meter:
        def __init__(self):
            self.total, self.count = torch.zeros(1), 0

        def add(self, x):
            self.total = self.total + x
            self.count += 1
            return self.total * 1

    meter = Meter()
    add = reference(meter.add)
    assert [add(torch.tensor([v])).item() for v in (3.0, 1.0, 2.0)] == [3, 4, 6]
    assert meter.count == 3 and meter.total.item() == 6


def test_tensor_state_does_not_recompile():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean = self.mean * 0.5 + x
            return self.mean + 0

    net, twin = Average(), Average()
    fast = reference(net)
    for step in range(4):
        equal(fast(torch.full((2,), float(step))), twin(torch.full((2,), float(step))))
    equal(net.mean, twin.mean)
    assert not fast.recompiles


def test_disabled_by_environment(monkeypatch):
    monkeypatch.setenv("MONOGRAPH_DISABLE", "1")
    target = nn.Linear(1, 1)
    assert monograph.compile(target) is target


def test_disable_gives_the_original_back():
    net = nn.Linear(1, 1)
    assert monograph.disable(reference(net)) is net
    assert monograph.disable(reference(torch.relu)) is torch.relu


@pytest.mark.parametrize("target", [3, "relu", nn.Linear, None.__class__])
def test_what_cannot_be_compiled(target):
    with pytest.raises(InputError):
        monograph.compile(target)


@pytest.mark.parametrize("options", [
    {"mode": "fast"}, {"backend": "inductor"}, {"weights": "x"}, {"fullgraph": 1}, {"dynamic": "yes"}])
def test_bad_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        monograph.compile(torch.relu, **options)


def test_device_is_refused_by_name():
    with pytest.raises(DeviceError, match=r"x.*meta"):
        reference(lambda x: x + 1)(x=torch.ones(2, device="meta"))
    with pytest.raises(DeviceError, match=r"weight.*meta"):
        reference(nn.Linear(2, 2, device="meta"))(torch.ones(1, 2))


@pytest.mark.parametrize("args", [
    (torch.ones(2, 3), torch.ones(2, 3)), (torch.ones(3), "no tensor"), (torch.ones(3),),
    (torch.ones(2, dtype=torch.int64),) * 2])
def test_eager_errors_come_through(args):
    def f(a, b):
        return torch.linalg.inv(a @ b)

    with pytest.raises(Exception) as eager:
        f(*args)
    with pytest.raises(type(eager.value)) as compiled:
        reference(f)(*args)
    assert str(compiled.value) == str(eager.value)


def test_user_exception_leaves_state_as_eager_does():
    log = []

    def f(x):
        log.append(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        reference(f)(torch.ones(1))
    assert log == [1]


def test_fullgraph_false_runs_eagerly_with_one_warning():
    def f(x):
        return x + 1 if x.to_sparse().coalesce().values().sum() > 0 else x - 1

    with pytest.raises(CaptureError):
        reference(f)(torch.ones(2))
    fast = reference(f, fullgraph=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert len([w for w in caught if "runs eagerly" in str(w.message)]) == 1


def test_clocks_are_left_alone():
    clock = time.perf_counter
    reference(lambda x: x * time.perf_counter())(torch.ones(1))
    assert time.perf_counter is clock


def test_views_identity_and_writes():
    def f(x, y):
        y[0] = 5
        base = x * 2
        return x, x[1:], base, base.t(), base[:, 1], y.view(-1)[:2], {"n": 3, "s": "text"}

    x, y = torch.arange(6.0).reshape(2, 3), torch.zeros(2, 2)
    y2 = y.clone()
    fast = reference(f)
    for _ in range(2):
        got, want = fast(x, y), f(x, y2)
        for a, b in zip(got[:6], want[:6]):
            equal(a, b)
        assert got[0] is x and got[6] == want[6] and list(got[6]) == list(want[6])
        assert got[1].data_ptr() == x[1:].data_ptr() and got[5].data_ptr() == y.data_ptr()
        assert got[2].data_ptr() == got[3].data_ptr() == got[4].data_ptr() - 4
        equal(y, y2)
    version = y._version
    fast(x, y)
    assert y._version > version


def test_argument_containers_are_written():
    def f(x, log, table):
        log.append(x + 1)
        table["last"] = x * 2
        return log

    fast = reference(f)
    for _ in range(2):
        log, table = ["before"], {}
        result = fast(torch.ones(1), log, table)
        assert result[0] == "before" and log[1].item() == 2 and table["last"].item() == 2


def test_generator_is_a_new_one_each_time():
    fast = reference(lambda x: (x * i for i in range(3)))
    for value in (1.0, 2.0):
        result = fast(torch.tensor([value]))
        assert inspect.isgenerator(result) and [t.item() for t in result] == [0, value, 2 * value]


def test_nested_compile_is_inlined():
    inner = reference(lambda x: x + 1)
    outer = reference(lambda x: inner(x) * 2)
    assert outer(torch.ones(1)).item() == 4 and outer(torch.ones(1)).item() == 4
    assert not inner._dispatcher.entries


def test_under_vmap_and_fake_mode_the_function_runs_plainly():
    fast = reference(lambda x: x.sin().sum())
    x = torch.randn(3, 4)
    fast(x[0])
    equal(torch.func.vmap(fast)(x), torch.func.vmap(lambda r: r.sin().sum())(x))


def test_entries_are_bounded():
    fast = reference(lambda x, n: x * n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(40):
            assert fast(torch.ones(1), n + 0.5).item() == n + 0.5
    assert len(fast._dispatcher.entries) == 32          # none was used twice: no more are made
    assert fast(torch.ones(1), 3.5).item() == 3.5
    fast(torch.ones(1), 50.5)
    assert len(fast._dispatcher.entries) == 33          # one was: compiling goes on


def test_threads_compile_once_and_agree():
    fast = reference(lambda x: (x @ x).relu() + 1)
    inputs = [torch.randn(4, 4) for _ in range(8)]
    results = [None] * 8
    barrier = threading.Barrier(8)

    def work(i):
        barrier.wait()
        results[i] = fast(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, y in zip(inputs, results):
        torch.testing.assert_close(y, (x @ x).relu() + 1)
    assert len(fast._dispatcher.entries) == 1


def test_interrupt_leaves_no_entry():
    interrupt = [True]

    def f(x):
        if interrupt[0]:
            raise KeyboardInterrupt
        return x + 1

    fast = reference(f)
    with pytest.raises(KeyboardInterrupt):
        fast(torch.ones(1))
    assert not fast._dispatcher.entries
    interrupt[0] = False
    assert fast(torch.ones(1)).item() == 2


def test_capture_prints_a_graph():
    text = str(monograph.capture(lambda x: torch.relu(x) + 1, torch.ones(2)))
    assert "aten.relu.default" in text and "test_api.py" in text


def test_messages_are_said_at_every_call(capsys):
    def f(x):
        print("shape", tuple(x.shape), sep="=")
        if x.numel() > 1:
            warnings.warn("long input", stacklevel=1)
        return x + 1

    fast = reference(f)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fast(torch.ones(2))
        assert [(str(w.message), w.filename) for w in caught] == [("long input", __file__)]
    assert capsys.readouterr().out == "shape=(2,)\n" * 2
    show = reference(lambda x: print(x, "sum", x.sum().item(), end=";"))
    for value in (1.0, 2.0):
        show(torch.tensor([value]))
    assert capsys.readouterr().out == "tensor([1.]) sum 1.0;tensor([2.]) sum 2.0;"
    with pytest.raises(UnsupportedError, match="printed"):
        show(torch.ones(1, requires_grad=True))


class Bag(dict):
    """A mapping that pytree does not know, with an attribute of its own."""

    def __init__(self, **entries):
        super().__init__(**entries)
        self.size = len(entries)


def test_subclass_of_dict_comes_back():
    fast = reference(lambda x: Bag(a=x + 1, b=2))
    for _ in range(2):
        bag = fast(torch.ones(1))
        assert type(bag) is Bag and bag.size == 2 and list(bag) == ["a", "b"] and bag["a"].item() == 2


RECORD = None


def test_global_that_is_always_stored_first():
    def f(x):
        global RECORD
        RECORD = Bag(n=1)
        RECORD = Bag(n=RECORD["n"] + 1)
        return x + RECORD["n"]

    fast = reference(f)
    for _ in range(3):
        assert fast(torch.ones(1)).item() == 3 and RECORD["n"] == 2
    assert not fast.recompiles


def test_arguments_may_have_any_name():
    def product(*, self, args, kwargs, function):
        return self * args * kwargs * function

    given = {name: torch.full((2,), 2.0) for name in ("self", "args", "kwargs", "function")}
    equal(reference(product)(**given), torch.full((2,), 16.0))


@pytest.mark.parametrize("lazily", (
    lambda z: z.conj(), lambda z: z.conj().imag, lambda z: z.conj().imag[1:, ::2].T,
    lambda z: z[:1].conj().expand(3, 4),
    lambda z: z.conj().imag.as_strided((3, 3), (2, 2), 1),
))
def test_lazy_conjugates_and_negatives_keep_their_strides(lazily):
    fast = monograph.compile(lambda x: (x + 1, x.T * 2))
    for _ in range(2):
        given = lazily(torch.randn(4, 4, dtype=torch.complex64))
        for got, want in zip(fast(given), (given + 1, given.T * 2), strict=True):
            torch.testing.assert_close(got, want)
