"""What methods find by `super()`: replaced between calls, at any place along the bases."""

import pytest
import torch
from torch import nn

import monograph

ONE = torch.ones(2)


def forward_of_a_module(compiled):
    class A(nn.Module):
        def forward(self, x):
            return x * 2

    class B(A):
        def forward(self, x):
            return super().forward(x) + 1

    f = compiled(B())
    first = f(ONE)
    A.forward = lambda self, x: x * 10
    return [first, f(ONE)]


def through_a_class_between(compiled):
    class A:
        def f(self, x):
            return x * 2

    class Between(A):
        pass

    class B(Between):
        def f(self, x):
            return super().f(x) + 1

    b = B()
    f = compiled(lambda x: b.f(x))
    first = f(ONE)
    Between.f = lambda self, x: x * 10
    return [first, f(ONE)]


def a_property(compiled):
    class A:
        k = 3

        @property
        def p(self):
            return self.k

    class B(A):
        @property
        def p(self):
            return super().p + 1

    b = B()
    f = compiled(lambda x: x * b.p)
    results = [f(ONE)]
    A.k = 5
    results.append(f(ONE))
    A.p = property(lambda self: 9)
    return [*results, f(ONE)]


def diamond(compiled):
    class A:
        def f(self, x):
            return x

    class Left(A):
        def f(self, x):
            return super().f(x) + 1

    class Right(A):
        def f(self, x):
            return super().f(x) * 5

    class Both(Left, Right):
        def f(self, x):
            return super().f(x) + 100

    f = compiled(Both().f)
    results = [f(ONE)]
    Right.f = lambda self, x: x * 7
    results.append(f(ONE))
    A.f = lambda self, x: x - 1
    return [*results, f(ONE)]


def class_method(compiled):
    class A:
        @classmethod
        def make(cls, x):
            return x * 2

    class B(A):
        @classmethod
        def make(cls, x):
            return super().make(x) + 1

    f = compiled(lambda x: B.make(x))
    results = [f(ONE)]
    A.make = classmethod(lambda cls, x: x * 4)
    results.append(f(ONE))
    B.make = classmethod(lambda cls, x: x * 6)
    return [*results, f(ONE)]


def with_arguments(compiled):
    class A:
        def f(self, x):
            return x * 2

    class B(A):
        def f(self, x):
            return super(B, self).f(x) + 1      # noqa: UP008

    b = B()
    f = compiled(lambda x: b.f(x))
    first = f(ONE)
    A.f = lambda self, x: x * 10
    return [first, f(ONE)]


def constructor(compiled):
    class A:
        def __init__(self, x):
            self.x = x * 2

    class B(A):
        def __init__(self, x):
            super().__init__(x)
            self.x = self.x + 1

    def another(self, x):
        self.x = x * 9

    f = compiled(lambda x: B(x).x)
    first = f(ONE)
    A.__init__ = another
    return [first, f(ONE)]


PROGRAMS = [forward_of_a_module, through_a_class_between, a_property, diamond, class_method, with_arguments,
            constructor]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_replaced(program):
    assert str(program(monograph.compile)) == str(program(lambda function: function))
