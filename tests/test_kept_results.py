"""Results that Python keeps from one differentiable call and the next call meets, and results that are used in part."""

import pytest
import torch
from torch import nn

import monograph
from monograph.errors import UnsupportedError

SEEN = []


def both(scenario):
    """What `scenario(compile)` gives eagerly and compiled; errors count as their text."""
    found = []
    for wrap in (lambda target: target, lambda target: monograph.compile(target, backend="reference")):
        torch.manual_seed(0)
        try:
            found.append(scenario(wrap))
        except RuntimeError as error:
            found.append(str(error))
    return found


def same(scenario):
    eager, ours = both(scenario)
    if isinstance(eager, str):
        assert ours == eager
    else:
        torch.testing.assert_close(ours, eager)


def rounds(run, *, kept=None):
    """Gradients of an argument over three rounds of training."""
    found = []
    for number in range(3):
        x = torch.full((2, 3), 1.0 + number, requires_grad=True)
        loss = run(x).sum()
        if kept is not None:
            loss = loss + kept().pow(2).sum()
        loss.backward()
        found.append(x.grad)
    return found


def hook_keeps_outputs(wrap):
    kept = []
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    model[0].register_forward_hook(lambda module, given, out: kept.append(out))
    return rounds(wrap(model)), [out.detach() for out in kept], model[0].weight.grad, [o.requires_grad for o in kept]


class Remembers(nn.Module):
    def __init__(self, *, chain=False, detach=False):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.state = torch.zeros(2, 3)
        self.history = ()
        self.chain, self.detach = chain, detach

    def forward(self, x):
        new = self.linear(x).tanh()
        if self.chain:
            new = new + self.state
        self.state = new.detach() if self.detach else new
        self.history += (self.state,)
        return new * 2


def attribute_keeps_the_last(wrap):
    model = Remembers()
    return rounds(wrap(model), kept=lambda: model.state), model.linear.weight.grad


def detached_state_is_carried(wrap):
    model = Remembers(chain=True, detach=True)
    return rounds(wrap(model)), model.linear.weight.grad


def carried_state_was_freed(wrap):
    return rounds(wrap(Remembers(chain=True)))


def one_backward_through_all_calls(wrap):
    model = Remembers(chain=True)
    run = wrap(model)
    inputs = [torch.full((2, 3), 1.0 + number, requires_grad=True) for number in range(3)]
    results = [run(x) for x in inputs]
    results[-1].sum().backward()
    return [x.grad for x in inputs], model.linear.weight.grad


def global_list_keeps(wrap):
    SEEN.clear()

    def step(x):
        SEEN.append(x.sin())
        return SEEN[-1] * 2

    return rounds(wrap(step)), len(SEEN)


def losses_are_added_up_in_the_program(wrap):
    losses = []

    def step(x):
        losses.append(x.exp().sum())
        return sum(losses)

    run, x = wrap(step), torch.ones(3, requires_grad=True)
    for _ in range(3):
        total = run(x)
    total.backward()
    return x.grad


def stored_view_beside_its_parameter(wrap):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.turned = self.linear.weight.t()

        def forward(self, x):
            return (self.linear(x) @ self.turned).tanh()

    model = Tied()
    x = torch.ones(2, 3, requires_grad=True)
    wrap(model)(x).sum().backward()
    return x.grad, model.linear.weight.grad


def closure_with_a_history(wrap):
    weight = torch.ones(3, requires_grad=True)
    made = weight.exp()
    made.register_hook(lambda gradient: gradient * 3)

    def use(x):
        with torch.no_grad():
            twice = made * 2
        return torch.cat([x, made]).sum() + torch.stack([made, made]).pow(2).sum() + (made.detach() * twice).sum()

    x = torch.ones(3, requires_grad=True)
    wrap(use)(x).backward()
    return x.grad, weight.grad


def it_is_returned_with_its_views(wrap):
    weight = torch.ones(3, requires_grad=True)
    made = weight.exp()
    itself, part, column = wrap(lambda x: (made, made[1:], made.view(3, 1)))(torch.ones(3))
    (part.sum() + column.sum()).backward()
    return itself is made, weight.grad


@pytest.mark.parametrize("scenario", [
    hook_keeps_outputs, attribute_keeps_the_last, detached_state_is_carried, carried_state_was_freed,
    one_backward_through_all_calls, global_list_keeps, losses_are_added_up_in_the_program,
    stored_view_beside_its_parameter, closure_with_a_history, it_is_returned_with_its_views,
], ids=lambda scenario: scenario.__name__)
def test_what_is_kept_has_eagers_history(scenario):
    same(scenario)


@pytest.mark.parametrize("function", [
    lambda x, w: (x * 2, w * 3, x * w), lambda x, w: (torch.floor(x), w * 3, torch.sign(x)),
])
@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_what_the_used_results_do_not_depend_on_gets_no_gradient(function, used):
    def scenario(wrap):
        x, w = (torch.full((2,), 1.0 + number, requires_grad=True) for number in range(2))
        results = wrap(function)(x, w)
        sum(results[number].sum() for number in used).backward()
        return [[] if tensor.grad is None else [tensor.grad] for tensor in (x, w)]

    same(scenario)


def test_an_unused_argument_has_no_gradient():
    def scenario(wrap):
        x, w = (torch.ones(2, requires_grad=True) for _ in range(2))
        results = wrap(lambda x, w: (x * 2, w * 3))(x, w)
        none = torch.autograd.grad(results[0].sum(), [x, w], allow_unused=True)[1] is None
        return none, torch.autograd.grad(wrap(lambda x, w: x * 2)(x, w).sum(), [x, w])

    eager, ours = both(scenario)
    assert eager == ours and "allow_unused" in eager


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, tangent):
        return tangent * 2 * ctx.saved_tensors[0]


def test_a_history_that_goes_into_a_custom_function_is_refused():
    made = torch.ones(3, requires_grad=True).exp()
    with pytest.raises(UnsupportedError, match="has a history"):
        monograph.compile(lambda x: x * Square.apply(made), backend="reference")(torch.ones(3))


class Last(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.ones(2, 3)

    def forward(self, x, k):
        if k == 1:
            pass
        else:
            self.last = x.clone()


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_what_one_path_replaces_the_other_path_leaves(backend):
    model, compiled = Last(), monograph.compile(Last(), backend=backend)
    for number, k in enumerate((1, 4, 0, 1, 0, 1)):
        for run in (model, compiled):
            run(torch.full((2, 3), 10.0 + number), torch.tensor(k))
        assert torch.equal(compiled.last, model.last)
