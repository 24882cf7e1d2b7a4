"""Special methods of the user's classes that Python calls by itself, giving what a traced value decides."""

import operator

import pytest
import torch

import monograph

torch.manual_seed(0)
INPUTS = [torch.tensor(values) for values in ([3.0, 3, 3], [1.0, 2, 0], [2.0, -1, 0], [0.0, 1, 3], [0.0, -1, -3])]


class Box:
    def __init__(self, values):
        self.values = values

    def __bool__(self):
        return bool(self.values.sum() > 0)

    def __len__(self):
        return int(self.values.sum())

    def __contains__(self, item):
        return bool((self.values == item).any())

    def __index__(self):
        return int(self.values[0])

    def __int__(self):
        return int(self.values[1])

    def __float__(self):
        return float(self.values[2])

    def __eq__(self, other):
        return bool((self.values == other).all())

    __hash__ = None


class Sized:
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return int((self.values > 0).sum())


class Flagged:
    """Its method asks for nothing."""

    def __init__(self, values):
        self.flag = bool(values.sum() > 0)

    def __bool__(self):
        return self.flag


def plain(x):
    if Box(x):
        return x + 1
    return x - 1


def sized(x):
    return x * 2 if not Sized(x) else x


def flagged(x):
    if Flagged(x):
        return x + 1
    return x - 1


def looped(x):
    box = Box(x)
    while box:
        box.values = box.values - 1
    return box.values


def operands(x):
    if x[0] > 1 and Box(x) or not Box(-x):
        return x + 1
    return x - 1


def asserted(x):
    assert Box(x), "nothing in it"
    return x + 1


def inside(x):
    if 3 in Box(x) and 7 not in Box(x):
        return x + 1
    return x - 1


def among(x):
    return x * (Box(x) in [1, 3]) + any([Box(x), Box(-x)]) + all([Box(x), Box(x)])


def compared(x):
    if Box(x) != 3:
        x = x * 2
    if 6 == Box(x):  # noqa: SIM300
        x = x + 1
    return x


def numbers(x):
    return x * int(Box(x)) + float(Box(x)) - len(Sized(x)) * bool(Box(x))


def counted(x):
    y = x
    for i in range(Box(x)):
        y = y * 2 + i
    return y


def named(x):
    return x * Box(x).__bool__() + Box(x).__index__()


def kept(x):
    """What a flag was, not what its tensor becomes."""
    mask = (x > 0).any()
    flag = bool(mask)
    mask.fill_(False)
    return x + 1 if flag else x - 1


def outcome(function, x):
    try:
        return function(x.clone()).tolist()
    except (AssertionError, ValueError) as error:
        return type(error), str(error).split("\n")[0]           # pytest adds lines to what an assertion says


@pytest.mark.parametrize("function", [plain, sized, flagged, looped, operands, asserted, inside, among, compared,
                                      numbers, counted, named, kept], ids=lambda f: f.__name__)
def test_one_program_for_all_that_they_give(function):
    compiled = monograph.compile(function)
    for x in INPUTS:
        assert outcome(compiled, x) == outcome(function, x), x
    assert not compiled.recompiles


def indexed(x):
    return [x + 1, x - 1, x * 2, x][Box(x)]


def by_c(x):
    return x * operator.truth(Box(x)) + x[Box(x) if x[0] < 3 else 0]


@pytest.mark.parametrize("function", [indexed, by_c], ids=lambda f: f.__name__)
def test_what_c_calls_is_read(function):
    compiled = monograph.compile(function)
    for x in INPUTS:
        assert outcome(compiled, x) == outcome(function, x), x


def test_a_negative_length_raises():
    compiled = monograph.compile(lambda x: x * len(Box(x)))
    assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="__len__\\(\\) should return >= 0"):
        compiled(-torch.ones(3))


class Wrong(Box):
    def __bool__(self):
        return int(self.values[0])

    def __int__(self):
        return float(self.values[0])


@pytest.mark.parametrize("function", [lambda x: x if Wrong(x) else -x, lambda x: x * int(Wrong(x))],
                         ids=["bool", "int"])
def test_results_of_another_kind_are_refused_in_python_s_words(function):
    with pytest.raises(TypeError) as eager:
        function(torch.ones(3))
    with pytest.raises(TypeError) as ours:
        monograph.compile(function)(torch.ones(3))
    assert str(ours.value) == str(eager.value)


def test_gradients_go_through_what_they_decide():
    compiled = monograph.compile(lambda x: (x * 3 if Box(x) else x * 5).sum())
    for x in INPUTS[:3]:
        x = x.clone().requires_grad_()
        compiled(x).backward()
        assert x.grad.tolist() == [3.0 if x.sum() > 0 else 5.0] * 3
