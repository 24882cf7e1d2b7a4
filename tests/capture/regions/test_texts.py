"""Texts with numbers of a run in them: in messages, results, prints; and `torch._check`."""

from __future__ import annotations

import pytest
import torch

import monograph

P = torch.tensor([1.0, 2.0, 3.0])


def checked(x):
    n = (x > 0).sum()
    if n == 0:
        raise ValueError(f"only {n} of {len(x)} are positive, the sum is {x.sum():.1f}")
    return x / n


def asserted(x):
    n = (x > 0).sum()
    assert n > 0, f"{n:>3} positive"
    return x / n


def public_check(x):
    n = (x > 0).sum()
    message = f"only {n}"
    torch._check_tensor_all(n > 0, lambda: message)
    torch._check(bool(n > 0), lambda: message)
    torch._check_value(n.item() > 0, lambda: f"{n.item()} are positive")
    return x / n


def own_class(x):
    if x.sum() < 0:
        raise Refused(f"sum {x.sum().item():.2f}")
    return x + 1


class Refused(Exception):
    pass


@pytest.mark.parametrize("function", [checked, asserted, public_check, own_class])
@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_message_of_the_call(function, backend):
    compiled = monograph.compile(function, backend=backend)
    for x in (P, P + 1, -P, -P * 2, P):
        expected, actual = outcome(function, x), outcome(compiled, x)
        assert repr(expected) == repr(actual)
    assert not compiled.recompiles                 # no value was read from a call


def outcome(function, x):
    try:
        return function(x)
    except Exception as error:
        return type(error), error.args


def returned(x):
    n = (x > 0).sum()
    return f"<{n:04}|{n.item()!r}|{int(n) + 1:x}>", x * 2


def joined(x):
    n = (x > 0).sum()
    text = f"{n}" + " of " + f"{x.numel()}"
    return {"text": "a" + text}


def of_a_tensor(x):
    y = x * 2
    text = f"{y} is {x > 0!r}, {y[0]!r} and {y.sum()!s:>12}"
    y.add_(1)
    return text, y


@pytest.mark.parametrize("function", [returned, joined, of_a_tensor])
def test_text_of_the_call(function):
    compiled = monograph.compile(function)
    for x in (P, P - 1.5, -P):
        assert repr(compiled(x)) == repr(function(x))
    assert not compiled.recompiles


def printed(x):
    n = (x > 0).sum()
    print(f"{n} positive", n)
    return x * n


def test_print_of_the_call(capsys):
    compiled = monograph.compile(printed)
    for x in (P, -P):
        compiled(x)
        actual = capsys.readouterr().out
        printed(x)
        assert actual == capsys.readouterr().out
    assert not compiled.recompiles


def all_positive(x):
    torch._check_tensor_all_with(ValueError, x > 0, lambda text=f"all of {x} have to be positive": text)
    return x.sqrt()


def test_tensor_in_the_message_of_a_check():
    compiled = monograph.compile(all_positive)
    assert torch.equal(compiled(P.abs()), all_positive(P.abs()))
    with pytest.raises(ValueError) as expected:
        all_positive(-P)
    with pytest.raises(ValueError) as raised:
        compiled(-P)
    assert str(raised.value) == str(expected.value) and not compiled.recompiles


def looked_at(x):
    n = (x > 0).sum()
    return x + 1 if f"{n}" == "3" else x + {"0": 5}.get(f"{n}", 7)


def test_text_that_decides_is_read_from_the_call():
    compiled = monograph.compile(looked_at)
    for x in (P, -P, P - 1.5, P):
        assert torch.equal(compiled(x), looked_at(x))


def written(x, seen):
    n = (x > 0).sum()
    seen.add_(1)
    if n == 0:
        raise ValueError(f"{n} after {seen.item():.0f}")
    return torch.rand(3)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_state_is_as_eager_leaves_it(backend):
    compiled = monograph.compile(written, backend=backend)
    ours, theirs = torch.zeros(()), torch.zeros(())
    for x in (P, -P, P):
        torch.manual_seed(0)
        expected = outcome(lambda x: written(x, theirs), x)
        state = torch.get_rng_state()
        torch.manual_seed(0)
        assert repr(outcome(lambda x: compiled(x, ours), x)) == repr(expected)
        assert torch.equal(ours, theirs) and torch.equal(torch.get_rng_state(), state)
