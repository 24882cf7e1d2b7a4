"""What leaves a compiled callable: eager's exception, its causes and the user's frames; none of this package's."""

import os
import sys
import traceback
import warnings

import pytest
import torch
from torch import nn

import monograph

OURS = os.path.dirname(monograph.__file__) + os.sep
HERE = __file__
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="before, the frame that raises again stays")


def ones(*sizes, grad=False):
    return torch.ones(*sizes, requires_grad=grad)


def mismatch(x, y):
    z = x + 1
    return z @ y


def in_functional(x, y):
    return nn.functional.linear(x, y)


def gather(x, i):
    return (x * 2).gather(0, i)


def embedding(w, i):
    return nn.functional.embedding(i, w) * 2


def index(x, i):
    return (x + 1)[i]


def scatter(x, i):
    return torch.zeros(3).scatter(0, i, x)


def one_hot(i):
    return nn.functional.one_hot(i, 3)


def cross_entropy(x, i):
    return nn.functional.cross_entropy(x, i)


def in_branch(x):
    if x.sum() > 0:
        raise ValueError(f"bad {x.shape}")
    return x * 2


def in_loop(x):
    while x.sum() < 10:
        x = x + 1
        if x.max() > 2:
            raise StopIteration("in loop")
    return x


def recursive(x, n=3):
    if n == 0:
        raise KeyError("deep")
    return recursive(x, n - 1) + 1


def in_generator(x):
    def parts():
        for i in range(3):
            if i == 2:
                raise IndexError("from a generator")
            yield x * i
    return sum(parts())


def asserted(x):
    def inner(y):
        assert y.sum() < 0, "must be negative"
        return y
    return inner(x) + 1


def key_error(x):
    return x * {"a": 1}["b"]


def attribute_error(x):
    return x.nope


def name_error(x):
    return undefined + x       # noqa: F821


def list_index(x):
    return [1, 2, 3][int(x.sum())]


def integer_division(x, n):
    return x // n


def python_division(x):
    return x * (1 // 0)


def caused(x):
    with torch.no_grad():
        try:
            return x @ torch.ones(7)
        except RuntimeError as error:
            raise TypeError("wrapped") from error


def in_context(x):
    try:
        return x @ torch.ones(7)
    except RuntimeError:
        raise TypeError("while handling")       # noqa: B904


def suppressed(x):
    try:
        return x @ torch.ones(7)
    except RuntimeError:
        raise TypeError("alone") from None


def after_random(x):
    y = x + torch.rand(3)
    return y[x.long() + 7]


def after_write(x, i):
    x.add_(1)
    return x[i]


def value_decides(x, n):
    if int(n) > 3:
        raise ValueError(int(n))
    return x.reshape(int(n), -1) @ torch.ones(9)


def custom_forward(x):
    return RaisesForward.apply(x)


def custom_op(x):
    return boom(x * 2) + 1


def hook_raises(x):
    y = x * 2
    y.register_hook(raising_hook)
    return y.sum()


def custom_backward(x):
    return RaisesBackward.apply(x).sum()


def wrong_gradient(x):
    return WrongGradient.apply(x).sum()


def raising_hook(grad):
    raise ValueError("in hook")


class RaisesForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise KeyError("forward")

    @staticmethod
    def backward(ctx, g):
        return g


class RaisesBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise KeyError("backward")


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return torch.ones(7)


@torch.library.custom_op("monograph_tracebacks::boom", mutates_args=())
def boom(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 2:
        raise ValueError("boom")
    return x + 1


class Leaf(nn.Module):
    def forward(self, x):
        return self.work(x)

    def work(self, x):
        if x.sum() > 0:
            raise RuntimeError("in a leaf")
        return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Softplus(), Leaf()))

    def forward(self, x):
        return self.body(x)


def refuses(module, arguments):
    raise RuntimeError("in a hook")


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.inner.register_forward_pre_hook(refuses)

    def forward(self, x):
        return self.inner(x) + 1


CASES = {
    mismatch: (ones(2, 3), ones(2, 3)), in_functional: (ones(2, 3), ones(2, 7)),
    gather: (ones(3), torch.tensor([5])), embedding: (ones(3, 2, grad=True), torch.tensor([5])),
    index: (ones(3), torch.tensor([5])), scatter: (ones(3), torch.tensor([0, 1, 9])), one_hot: (torch.tensor([9]),),
    cross_entropy: (ones(1, 3), torch.tensor([9])), in_branch: (ones(3),), in_loop: (ones(3),), recursive: (ones(3),),
    in_generator: (ones(3),), asserted: (ones(3),), key_error: (ones(3),), attribute_error: (ones(3),),
    name_error: (ones(3),), list_index: (ones(7),), python_division: (ones(3),),
    integer_division: (torch.ones(3, dtype=torch.long), torch.zeros(3, dtype=torch.long)), caused: (ones(3),),
    in_context: (ones(3),), suppressed: (ones(3),), after_random: (ones(3),), after_write: (ones(3), torch.tensor([8])),
    custom_forward: (ones(3, grad=True),), custom_op: (ones(3),), Outer(): (ones(3),), Hooked(): (ones(3),),
    torch.matmul: (ones(3), ones(4)), nn.Linear(3, 2): (), nn.LSTM(3, 2): (ones(5),),
    hook_raises: (ones(3, grad=True),), custom_backward: (ones(3, grad=True),), wrong_gradient: (ones(3, grad=True),),
}
IDS = [getattr(target, "__name__", type(target).__name__) for target in CASES]


def raised(function, *args):
    """What a call raises, its backward included: each exception of the chain with the frames below this one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*args)
            if result.requires_grad:
                result.backward()
        except Exception as error:
            return chain(error)
    raise AssertionError("nothing was raised")


def chain(error):
    found = []
    while error is not None:
        found.append((type(error), error.args, error.__suppress_context__, getattr(error, "__notes__", None), [
            (frame.filename, frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)[1:]]))
        error = error.__cause__ if error.__suppress_context__ else error.__context__
    return found


@pytest.mark.parametrize("target", list(CASES), ids=IDS)
def test_as_in_eager(target):
    args = CASES[target]
    want = raised(target, *args)
    compiled = monograph.compile(target)
    for _ in range(2):
        assert raised(compiled, *args) == want


def test_after_calls_that_go_well():
    compiled = monograph.compile(embedding)
    w = ones(3, 2)
    torch.testing.assert_close(compiled(w, torch.tensor([2])), embedding(w, torch.tensor([2])))
    want = raised(embedding, w, torch.tensor([3]))
    assert raised(compiled, w, torch.tensor([3])) == want == raised(compiled, w, torch.tensor([3]))
    assert len(compiled._dispatcher.entries) == 1


def test_another_path_leaves_no_context():
    compiled = monograph.compile(value_decides)
    x = ones(6)
    for n in (5, 4, 5):
        n = torch.tensor(n)
        assert raised(compiled, x, n) == raised(value_decides, x, n)
    for n in (2, 3):
        assert raised(compiled, x, torch.tensor(n)) == raised(value_decides, x, torch.tensor(n))


def test_inside_a_handler_of_the_callers():
    def call(function):
        try:
            raise OSError("before")
        except OSError:
            return function(ones(3), torch.tensor([5]))

    assert raised(call, monograph.compile(gather)) == raised(call, gather)


def test_compiled_inside_compiled_plainly():
    inner = monograph.compile(gather)

    def outer(x, i):
        return inner(x, i) + 1

    want = [(*entry[:4], [frame for frame in entry[4]]) for entry in raised(outer, ones(3), torch.tensor([5]))]
    assert raised(monograph.compile(outer), ones(3), torch.tensor([5])) == want


def test_a_check_in_the_backward_shows_its_line():
    def hooked(x):
        y = x * 2

        def hook(grad):
            if grad.sum() > 0:
                raise ValueError("in hook")
            return grad

        y.register_hook(hook)
        return y.sum()

    want = raised(hooked, ones(3, grad=True))
    compiled = monograph.compile(hooked)
    for _ in range(2):
        got = raised(compiled, ones(3, grad=True))
        assert [entry[:3] for entry in got] == [entry[:3] for entry in want]
        assert got[0][4][-1] == want[0][4][-1]
        assert not any(file.startswith(OURS) for file, _, _ in got[0][4])


@pytest.mark.parametrize("target", [gather, embedding], ids=["gather", "embedding"])
def test_through_torch_compile(target, capfd):
    args = CASES[target]
    want = raised(target, *args)
    compiled = torch.compile(target, backend="monograph")
    for _ in range(2):
        got = raised(compiled, *args)
        assert [entry[:4] for entry in got] == [entry[:4] for entry in want]
        frames = got[0][4]
        assert [frame for frame in frames if frame[0] == HERE][-1] == want[0][4][0]
        assert not any(file.startswith((OURS, "<")) for file, _, _ in frames)
        assert frames[-1] == want[0][4][-1]
    assert "FX-traced" not in capfd.readouterr().err


def no_text(x):
    return x + x.data_ptr()


def refusal(call, *args):
    with pytest.raises(monograph.MonographError) as caught:
        call(*args)
    return caught.value


@pytest.mark.parametrize("call", [
    lambda x: monograph.compile(no_text)(x), lambda x: monograph.capture(no_text, x)], ids=["compile", "capture"])
def test_a_refusal_shows_the_users_frames(call):
    error = refusal(call, ones(2))
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[-1] == (error.loc.file, error.loc.line)
    assert {file for file, _ in frames} == {HERE}
    assert error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)


def test_a_refusal_in_converted_code():
    def deciding(x):
        while x.sum() < 10:
            x = x + x.data_ptr()
        return x

    error = refusal(monograph.compile(deciding), ones(2))
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames] == ["refusal", "deciding"]
    assert (frames[-1].filename, frames[-1].lineno) == (HERE, error.loc.line)


def test_an_argument_that_is_refused_shows_the_call():
    error = refusal(monograph.compile(gather), torch.ones(3, device="meta"), torch.tensor([1]))
    assert {frame.filename for frame in traceback.extract_tb(error.__traceback__)} == {HERE}


def test_what_only_tracing_raises_has_the_cause():
    def looks(x):
        if hasattr(x, "fake_mode"):
            raise LookupError("a fake")
        return x * 2

    error = refusal(monograph.compile(looks), ones(2))
    assert isinstance(error.__cause__, LookupError)
    for one in (error, error.__cause__):
        assert {frame.filename for frame in traceback.extract_tb(one.__traceback__)} <= {HERE}


def test_debug_keeps_all_frames(monkeypatch, tmp_path):
    compiled = monograph.compile(gather)
    monkeypatch.setenv("MONOGRAPH_DEBUG", str(tmp_path))
    with pytest.raises(RuntimeError) as caught:
        compiled(ones(3), torch.tensor([5]))
    assert any(frame.filename.startswith(OURS) for frame in traceback.extract_tb(caught.value.__traceback__))


def test_a_fault_of_ours_keeps_its_frames():
    compiled = monograph.compile(gather)
    code = compile("def build(*a):\n    raise TypeError('of ours')", OURS + "build.py", "exec")
    names = {}
    exec(code, names)
    compiled._dispatcher.build = names["build"]
    with pytest.raises(TypeError) as caught:
        compiled(ones(3), torch.tensor([1]))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == OURS + "build.py"
