import math

import pytest

from monograph.ir import sized
from monograph.ir.sized import Undecided, example, expression
from monograph.ir.symbolic import Symbol

EXAMPLES = {"b": 61, "s": 67}
B, S = (sized.sized(Symbol(name, 2), EXAMPLES) for name in "bs")


def test_arithmetic_keeps_the_expression():
    assert str(math.prod([B, S, 64])) == "<64*b*s>"
    assert str(sum([B, S, 1])) == "<b + s + 1>"
    assert example(B * S + 1) == 61 * 67 + 1
    assert str(-(-S // 8)) == "<-((-s)//8)>"
    assert divmod(10, S) == (10 // S, 10 % S)


def test_what_does_not_depend_on_a_size_is_a_plain_number():
    assert type(S - S) is int and type((S * 64) % S) is int
    assert S * 64 // S == 64 and type(S * 64 // S) is int
    assert expression(S * B // B) == Symbol("s", 2)


def test_equal_means_equal_for_all_sizes():
    assert B * S == S * B and hash(B * S) == hash(S * B)
    assert S != 67 and S != 1 and B != S and {67: 1, S: 2}[S] == 2
    assert 0 not in (B, S) and bool(S - 2)


def test_comparisons_by_ranges():
    assert S > 1 and S >= 2 and not S < 2 and S < S + 1 and max(0, S - 1) == S - 1
    with pytest.raises(Undecided, match="s < 8"):
        assert S < 8
    with sized.guessing():
        assert S > 8 and min(S, 8) == 8
    assert not sized.known_less(S, 8) and not sized.known_less(8, S)


def test_extrema_and_divisors():
    assert str(sized.minimum(S, 8)) == "<min(8, s)>" and sized.minimum(S, 1) == 1
    assert sized.maximum(S, 2) == S and sized.maximum(3, 4) == 4
    assert sized.gcd(S * 64, S * 32) == S * 32 and sized.gcd(S * 64, 32) == 32 and sized.gcd(S, 64) == 1
    assert sized.gcd(0, S) == S and sized.gcd(12, 18) == 6


LOSING = [int, float, math.sqrt, lambda n: n ** 2, lambda n: n / 2, lambda n: n & 1, lambda n: 2 / n]


@pytest.mark.parametrize("at", range(len(LOSING)))
def test_what_would_lose_the_expression_raises(at):
    with pytest.raises(Undecided):
        LOSING[at](S)
