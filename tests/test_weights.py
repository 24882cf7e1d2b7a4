"""A compiled module after its weights changed: never stale, whatever changed them."""

import threading

import pytest
import torch

import monograph as mg


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 40), torch.nn.Tanh(), torch.nn.Linear(40, 10),
    ).eval()


def step(**options):
    def change(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05, **options)
        for parameter in module.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()

    return change


def in_place(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.1)


def data(module):
    for parameter in module.parameters():
        parameter.data = parameter.data * 1.1


def through_data(module):
    for parameter in module.parameters():
        parameter.data.mul_(0.9)


def through_numpy(module):
    for parameter in module.parameters():
        array = parameter.detach().numpy()
        array *= 1.01


def loaded(module):
    module.load_state_dict({name: value * 1.2 for name, value in module.state_dict().items()})


def assigned(module):
    module.load_state_dict({name: value * 1.2 for name, value in module.state_dict().items()}, assign=True)


def replaced(module):
    module[4].weight = torch.nn.Parameter(torch.randn(40, 288) * 0.1)


def statistics(module):
    module.train()(torch.randn(4, 3, 8, 8))
    module.eval()


CHANGES = [
    step(), step(foreach=True), step(fused=True), in_place, data, through_data, through_numpy, loaded, assigned,
    replaced, statistics,
]


@pytest.mark.parametrize("weights", ["watched", "live"])
def test_no_change_goes_unseen(weights):
    module = model()
    fast = mg.compile(module, weights=weights)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x))
        for change in CHANGES:
            change(module)
            torch.testing.assert_close(fast(x), module(x), msg=lambda text, change=change: f"{change.__name__}: {text}")


def test_two_threads_while_weights_change_between_calls():
    module = model()
    fast = mg.compile(module)
    x = torch.randn(2, 3, 8, 8)
    wrong = []

    def work():
        with torch.no_grad():
            wrong.extend(1 for _ in range(20) if not torch.allclose(fast(x), expected, rtol=1e-4, atol=1e-5))

    with torch.no_grad():
        for _ in range(3):
            expected = module(x)
            workers = [threading.Thread(target=work) for _ in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            in_place(module)
    assert not wrong
