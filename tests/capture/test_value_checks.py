"""Values that eager refuses: the call raises eager's exception in eager's words, though kernels know neither."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import monograph

LOGITS = torch.linspace(-1, 1, 12).reshape(3, 4)
HALVES = torch.full((3,), 0.5)

# function, a call that goes well, one that does not
CLASSES, BEYOND, BELOW = torch.tensor([0, 3, 1]), torch.tensor([0, 5, 1]), torch.tensor([0, -2, 1])
CALLS = {
    "class beyond": (lambda x, y: F.cross_entropy(x, y), (LOGITS, CLASSES), (LOGITS, BEYOND)),
    "class below": (lambda x, y: F.cross_entropy(x, y), (LOGITS, CLASSES), (LOGITS, BELOW)),
    "class, weighted": (lambda x, y: F.nll_loss(x, y, torch.ones(4), reduction="none"), (LOGITS, CLASSES),
                        (LOGITS, BEYOND)),
    "class of a margin": (lambda x, y: F.multi_margin_loss(x, y), (LOGITS, CLASSES), (LOGITS, BEYOND)),
    "take": (lambda x, i: x.take(i), (LOGITS, torch.tensor([11])), (LOGITS, torch.tensor([99]))),
    "probability": (lambda x: F.binary_cross_entropy(x, torch.ones(3)), (HALVES,), (3 * HALVES,)),
    "no probability": (lambda x: F.binary_cross_entropy(x, torch.ones(3)), (HALVES,), (HALVES * torch.nan,)),
    "probability of a target": (lambda x, y: F.binary_cross_entropy(x, y), (HALVES, HALVES), (HALVES, -HALVES)),
    "probability in a module": (nn.BCELoss(), (HALVES, HALVES), (HALVES, -HALVES)),
    "one_hot beyond": (lambda y: F.one_hot(y, 4), (CLASSES,), (BEYOND,)),
    "one_hot below": (lambda y: F.one_hot(y, num_classes=4), (CLASSES,), (BELOW,)),
    "quantile": (lambda x, q: x.quantile(q), (LOGITS, torch.tensor(0.5)), (LOGITS, torch.tensor(1.5))),
    "nanquantile": (lambda x, q: torch.nanquantile(x, q=q), (LOGITS, torch.tensor(0.5)), (LOGITS, torch.tensor(-0.5))),
    "assertion": (lambda x: torch._assert_async(x.sum()), (HALVES,), (0 * HALVES,)),
    "assertion with words": (lambda x: torch._assert_async(x.sum() > 0, "too small"), (HALVES,), (0 * HALVES,)),
    "beside a draw": (lambda x, y: torch.rand(3, 4) + F.one_hot(y, 4), (LOGITS, CLASSES), (LOGITS, BEYOND)),
}


def outcome(function, args, grad):
    args = [arg.clone().requires_grad_(grad and arg.is_floating_point()) for arg in args]
    torch.manual_seed(0)
    try:
        with torch.set_grad_enabled(grad):
            return str(function(*args)), torch.get_rng_state().tolist()
    except Exception as error:
        return type(error), str(error), torch.get_rng_state().tolist()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_as_eager(name, grad):
    function, good, bad = CALLS[name]
    compiled = monograph.compile(function)
    assert isinstance(outcome(function, bad, grad)[0], type)
    for args in (good, bad, good, bad):
        assert outcome(compiled, args, grad)[1:] == outcome(function, args, grad)[1:]
    assert outcome(monograph.compile(function), bad, grad) == outcome(function, bad, grad)
    assert len(compiled.recompiles if not isinstance(function, nn.Module) else ()) <= 1


def test_what_comes_before_is_done_once():
    done = []

    def function(x, y):
        done.append(len(done))
        return F.nll_loss(x, y)

    compiled = monograph.compile(function)
    compiled(LOGITS, torch.tensor([0, 3, 1]))
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        compiled(LOGITS, torch.tensor([0, 5, 1]))
    assert done == [0, 1]


def test_nothing_is_written_twice():
    def function(x, y):
        x.add_(1)
        return F.nll_loss(x, y)

    x = torch.zeros(3, 4)
    compiled = monograph.compile(function)
    compiled(x, torch.tensor([0, 3, 1]))
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        compiled(x, torch.tensor([0, 5, 1]))
    assert (x == 2).all()


LAYOUTS = {
    "rows": lambda: torch.randn(2, 6, 4, 5), "channels last": lambda: torch.randn(2, 4, 5, 6).permute(0, 3, 1, 2),
    "turned": lambda: torch.randn(5, 4, 6, 2).permute(3, 2, 1, 0), "columns": lambda: torch.randn(2, 6, 5, 4).mT,
    "every other channel": lambda: torch.randn(2, 4, 5, 12).permute(0, 3, 1, 2)[:, ::2],
    "every other row": lambda: torch.randn(2, 8, 5, 6).permute(0, 3, 1, 2)[:, :, ::2],
    "expanded": lambda: torch.randn(1, 6, 4, 5).expand(2, 6, 4, 5),
    "one image": lambda: torch.randn(1, 4, 5, 6).permute(0, 3, 1, 2),
    "lines": lambda: torch.randn(2, 4, 6).mT, "table": lambda: torch.randn(6, 4).t(),
    "volumes": lambda: torch.randn(2, 2, 4, 5, 6).permute(0, 4, 1, 2, 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_the_format_that_suits_the_argument(layout):
    x = LAYOUTS[layout]()
    mean, var = torch.zeros(6), torch.ones(6)
    functions = [
        lambda x: F.batch_norm(x, mean, var, training=True), lambda x: F.batch_norm(x, mean, var),
        lambda x: F.batch_norm(x, None, None, torch.ones(6), torch.ones(6), training=True),
    ]
    if x.dim() > 2:
        functions.append(lambda x: F.channel_shuffle(x, 3))
    for function in functions:
        for grad in (False, True):
            mean.zero_(), var.fill_(1)
            want = function(x)
            mean.zero_(), var.fill_(1)
            got = monograph.compile(function)(x.detach().requires_grad_(grad))
            assert got.stride() == want.stride()
            torch.testing.assert_close(got.detach(), want)
