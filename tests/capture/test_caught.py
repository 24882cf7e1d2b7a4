"""Errors that values decide, where the user's code catches them: the call goes on as in eager."""

import contextlib
import math

import pytest
import torch
from torch.nn import functional

import monograph
from monograph.api import dispatcher_of


def divided(x, i):
    try:
        return 1 // int(i[0])
    except ZeroDivisionError:
        return -1


def indexed(x, i):
    try:
        return x[i]
    except IndexError:
        return x * 0


def picked(x, i):
    try:
        return x[int(i[0])]
    except IndexError:
        return x * 0


def gathered(x, i):
    try:
        return x.gather(0, i)
    except RuntimeError:
        return x * 0


def embedded(x, i):
    try:
        return functional.embedding(i, x[:, None])
    except Exception as error:
        return type(error).__name__


def suppressed(x, i):
    with contextlib.suppress(Exception):
        x = x / (1 // int(i[0]))
    return x


def written_before(x, i):
    y = x
    try:
        try:
            y = x[i] * 2
        finally:
            x.add_(1)
    except IndexError:
        pass
    return y


def in_context_manager(x, i):
    @contextlib.contextmanager
    def zeroing():
        try:
            yield
        except IndexError:
            x.zero_()

    with zeroing():
        x = x + x[i]
    return x


def in_callee(x, i):
    def pick():
        return x[i]

    try:
        return pick()
    except IndexError:
        return "no"


def singular(x, i):
    try:
        return torch.linalg.inv(torch.diag(x) * i[0])
    except torch.linalg.LinAlgError:
        return x


def unbound(x, i):
    try:
        if i[0] > 0:
            z = x
        return z
    except UnboundLocalError:
        return "unbound"


def root(x, i):
    try:
        return math.sqrt(float(i[0])) * x
    except ValueError:
        return "negative"


def sized(x, i):
    try:
        return torch.arange(int(i[0])), torch.zeros(int(i[0]))
    except RuntimeError:
        return "negative"


def reshaped(x, i):
    for k in range(1, 4):
        try:
            return x.view(k * int(i[0]), -1), k
        except RuntimeError:
            pass
    return "none"


def halved(x, i):
    y = x * i[0]
    try:
        return y[y > 1].view(2, -1)
    except RuntimeError:
        return "odd"


def multiplied(x, i):
    try:
        return torch.zeros(int(i[0]), 2) @ torch.zeros(int(i[0]) + 1, 3)
    except RuntimeError as error:
        return str(error)


def dropped_by_finally(x, i):
    """A `finally` that ends the error, around one that does not."""
    done = []
    for k in range(2):
        try:
            try:
                if i[0] > 1:
                    raise ValueError("large")
                x = x * 2
            finally:
                done.append(k)
        finally:
            if k:
                break  # noqa: B012
            if len(done) == 1:
                continue  # noqa: B012
    return x + len(done)


FUNCTIONS = [dropped_by_finally, divided, indexed, picked, gathered, embedded, suppressed, written_before,
             in_context_manager, in_callee, singular, unbound, root, sized, reshaped, halved, multiplied]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [1, 9, -1])
def test_goes_on_from_the_handler(function, first):
    compiled = monograph.compile(function)
    for value in (first, 1, 9, 0, 2, -7, 1):
        mine, eager = torch.tensor([1.0, 2.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 1.0, 2.0])
        got, want = compiled(mine, torch.tensor([value])), function(eager, torch.tensor([value]))
        assert type(got) is type(want)
        if isinstance(want, (str, int)):
            assert got == want
        else:
            torch.testing.assert_close(got, want, rtol=0, atol=0)
        assert torch.equal(mine, eager)


def test_a_finally_catches_nothing():
    """An error that only passes through one is a check of the program."""
    def function(x, i):
        try:
            if i[0] > 1:
                raise ValueError("large")
            return x * 2
        finally:
            del i

    compiled = monograph.compile(function)
    x = torch.ones(3)
    for value in (1, 0, -1):
        assert torch.equal(compiled(x, torch.tensor([value])), x * 2)
    with pytest.raises(ValueError, match="large"):
        compiled(x, torch.tensor([5]))
    entry, = dispatcher_of(compiled).entries
    assert "mono.expect" not in entry.report.text
