"""How often a trace starts again, and what it takes for one answer about sizes."""

import importlib

import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import monograph
from monograph import compat


@pytest.fixture
def attempts(monkeypatch):
    """Attempts so far."""
    driver, made = importlib.import_module("monograph.capture.driver"), []
    run = driver._Attempt.run
    monkeypatch.setattr(driver._Attempt, "run", lambda self: [made.append(self), run(self)][1])
    return made


def first(x):
    return x + 1 if x.sum() > 0 else x - 1


def second(x):
    return x * 2 if x.max() > 3 else x * 3


def third(x):
    while x.sum() > 100:
        x = x / 2
    return x


def fourth(x):
    return x.sin() if x.min() > 0 else x.cos()


def test_functions_that_ask_are_found_together(attempts):
    def fn(x):
        return fourth(third(second(first(x))))

    compiled = monograph.compile(fn)
    for x in (torch.ones(3), -torch.ones(3), torch.full((3,), 99.0), torch.tensor([-1.0, 5.0, 200.0])):
        torch.testing.assert_close(compiled(x), fn(x))
    assert len(compiled.recompiles) == 0
    assert len(attempts) == 3         # `first` asks; all that ask are found; they are converted


def test_the_next_trace_begins_with_what_was_converted(attempts):
    def fn(x):
        return second(first(x))

    for size in (3, 4):
        compiled = monograph.compile(fn, backend="reference", dynamic=False)
        x = torch.ones(size)
        torch.testing.assert_close(compiled(x), fn(x))
    assert len(attempts) == 3 + 1


def test_an_attempt_does_not_go_on_for_ever(attempts):
    def fn(x):
        return counted(first(x))

    def counted(x):
        n = 0
        while x.sum() < 1000:
            x, n = x + 1, n + 1
        return x, n

    compiled = monograph.compile(fn)
    x = torch.ones(3)
    assert compiled(x)[1] == fn(x)[1] and compiled(x * 4)[1] == fn(x * 4)[1]
    assert len(attempts) == 3 and len(compiled.recompiles) == 0


def test_what_fails_while_others_are_found_is_traced_again(attempts):
    def fn(x):
        return guarded(second(first(x)))

    def guarded(x):
        if x.sum() > 1000:
            raise ValueError("too large")
        return [1, 2, 3][int(x.argmax())] * x

    compiled = monograph.compile(fn)
    for x in (torch.ones(3), torch.arange(3.0)):
        torch.testing.assert_close(compiled(x), fn(x))


def test_an_answer_about_sizes_is_worked_out_once(monkeypatch):
    asked, calls, evaluate = [], [], ShapeEnv.evaluate_expr
    monkeypatch.setattr(ShapeEnv, "evaluate_expr", lambda self, *args, **kwargs: [
        calls.append(args[0]), evaluate(self, *args, **kwargs)][1])
    mode = compat.symbolic_fake_mode(asked.append, cached=False, general=False)
    a = compat.symbolic_size(mode, "a", 8, 2, None, None)
    b = compat.symbolic_size(mode, "b", 6, 2, None, None)
    for _ in range(3):
        assert a // 2 > 3 and b % 4 == 2 and not a > b + 5
    assert len(asked) == len(calls) == 3


@torch.no_grad()
def test_the_shape_of_sampled_points_takes_no_arithmetic(monkeypatch):
    def fn(x, grid):
        return F.grid_sample(x, grid, mode="bicubic", align_corners=False)

    ops, dispatch = [], compat.FakeTensorMode.dispatch
    monkeypatch.setattr(compat.FakeTensorMode, "dispatch", lambda self, *args, **kwargs: [
        ops.append(args[0]), dispatch(self, *args, **kwargs)][1])
    compiled = monograph.compile(fn, dynamic=True, backend="reference")
    for n, height, width in ((2, 3, 5), (3, 4, 7), (5, 2, 3)):
        x, grid = torch.randn(n, 3, height, width), torch.rand(n, width, height + 1, 2) * 2 - 1
        got, want = compiled(x, grid), fn(x, grid)
        torch.testing.assert_close(got, want)
        assert got.stride() == want.stride()
    assert len(compiled.recompiles) == 0 and len(ops) < 40


def varied(fn, inputs):
    """Programs made for calls on `inputs`, which are compared with eager's."""
    compiled = monograph.compile(fn, backend="reference")
    with torch.no_grad():
        for given in inputs:
            got, want = compiled(*given), fn(*given)
            torch.testing.assert_close(got, want)
            assert got.stride() == want.stride()
    return 1 + len(compiled.recompiles)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("channels", "groups"), [(4, 2), (1, 1)])
def test_convolution_does_not_ask_which_kernel_runs(axes, channels, groups):
    make = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d, 3: torch.nn.Conv3d}[axes]
    conv = make(channels, 6, 3, stride=2, padding=1, groups=groups)
    sizes = [(2, 9), (3, 12), (17, 9), (20, 31), (5, 7 if axes == 3 else 90), (40, 8)]
    assert varied(lambda x: conv(x), [(torch.randn(n, channels, *[size] * axes),) for n, size in sizes]) == 2


def test_a_convolution_that_has_no_room_is_eagers_error():
    conv = torch.nn.Conv1d(4, 6, 5)
    compiled = monograph.compile(lambda x: conv(x), backend="reference")
    with torch.no_grad():
        for size in (9, 12, 7):
            x = torch.randn(2, 4, size)
            torch.testing.assert_close(compiled(x), conv(x))
        with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
            compiled(torch.randn(2, 4, 3))


@pytest.mark.parametrize("added", ["all", "row", "one", "batch"])
def test_products_added_to_what_is_spread(added):
    shapes = {"all": lambda b, n: (b, n, n), "row": lambda b, n: (n,), "one": lambda b, n: (1, 1, n),
              "batch": lambda b, n: (b, 1, n)}[added]
    calls = [(torch.randn(shapes(b, n)), torch.randn(b, n, 4), torch.randn(b, 4, n))
             for b, n in ((2, 5), (3, 7), (6, 4), (9, 12))]
    assert varied(lambda x, y, z: torch.baddbmm(x, y, z, beta=0.5, alpha=2.0), calls) == 2
