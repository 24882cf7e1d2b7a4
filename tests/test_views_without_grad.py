"""Views of arguments, made without grad: whether they require it is asked of the base."""

import pytest
import torch

import monograph


def views(x):
    with torch.no_grad():
        y = x.view(-1)
        first, second = x.unbind(1)
    return [y, y[1:], first, second, x.mT], y.requires_grad, (y * x.view(-1)).sum()


def plain():
    return torch.ones(3, 2, requires_grad=True)


def of_another():
    return torch.ones(2, 3).view(3, 2).requires_grad_()


@pytest.mark.parametrize("order", [(plain, of_another, plain), (of_another, plain)], ids=["plain", "of_another"])
@pytest.mark.filterwarnings("error")
def test_they_require_what_they_do_in_eager(order):
    compiled = monograph.compile(views)
    for make in order:
        mine, ours = make(), make()
        results, requires, total = compiled(mine)
        want, eager_requires, eager_total = views(ours)
        assert [(t.requires_grad, t.is_leaf) for t in results] == [(t.requires_grad, t.is_leaf) for t in want]
        assert requires is eager_requires and [t.data_ptr() == mine.data_ptr() for t in results] == [
            t.data_ptr() == ours.data_ptr() for t in want]
        total.backward()
        eager_total.backward()
        assert torch.equal(mine.grad, ours.grad)
    assert [str(why) for why in compiled.recompiles] == ["whether the base of args[0] requires grad"]


def with_history():
    return torch.ones(3, 2, requires_grad=True) * 1


def view_with_history():
    return (torch.ones(6, requires_grad=True) * 1).view(3, 2)


@pytest.mark.parametrize("first", [plain, of_another, with_history, view_with_history])
def test_one_program_does_not_stand_for_another_kind_of_argument(first):
    compiled = monograph.compile(views, backend="reference")
    for make in (first, plain, of_another, with_history, view_with_history, first):
        results, requires, _ = compiled(make())
        want, eager_requires, _ = views(make())
        assert (requires, [x.requires_grad for x in results]) == (eager_requires, [x.requires_grad for x in want])
