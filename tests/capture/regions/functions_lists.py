"""Functions that build lists in loops whose trips only the run knows; `x` is f32[3], `n` the trips, more or less."""

from __future__ import annotations

import torch
from torch.nn import functional

# -- one program for every number of trips, or one more where the list is empty ---------------------


def stacked(x, n):
    outs = []
    for i in range(int(n)):
        x = x * 0.5 + i
        outs.append(x)
    return torch.stack(outs, dim=1) if len(outs) else x


def joined_pairs(x, n):
    outs = []
    for _ in range(int(n)):
        x = x.sin()
        outs += [x, x + 1]
    return torch.cat(outs) if outs else x


def ends_and_length(x, n):
    outs = [x]
    for _ in range(int(n)):
        outs.append(outs[-1].sin() + 1)
    return outs[-1] + outs[0] * len(outs) + outs[int(n) // 2]


def looped_over(x, n):
    outs, total = [], x
    for i in range(int(n)):
        x = x.sin()
        outs.append((x, x.sum(), i * 2))
    for i, (tensor, size, number) in enumerate(outs):
        total = total + tensor * size + number * i
    for tensor, _, _ in reversed(outs):
        total = total * 0.5 + tensor
    return total


def summed(x, n):
    outs, numbers = [], []
    for _ in range(int(n)):
        x = x * 0.5
        outs.append(x)
        numbers.append(float(x.sum()))
    return sum(outs) + sum(numbers)


def some_only(x, n):
    outs = []
    for _ in range(int(n)):
        x = x * 1.1 - 0.2
        if x.sum() > -3:
            outs.append(x)
        if x.sum() < -20:
            break
    return torch.stack(outs) if outs else x


def until(x, n):
    outs = []
    while len(outs) < n:
        x = x * 0.9 + 1
        outs.append(x)
    return torch.stack([y * 2 for y in outs]) if outs else x


def nested(x, n):
    rows = []
    for i in range(int(n)):
        row = []
        for j in range(int(n)):
            x = x * 0.9 + j
            row.append(x)
        rows.append(torch.stack(row).sum(0) + i)
    return torch.stack(rows) if rows else x


def appended_after(x, n):
    outs = []
    for _ in range(int(n)):
        x = x.sin()
        outs.append(x)
    outs.append(x + 5)
    return torch.stack(outs)


def by_helper(x, n):
    def run(x):
        outs = []
        for _ in range(int(n)):
            x = x.sin()
            outs.append(x)
        return outs

    outs = run(x)
    return torch.stack(outs) if len(outs) else x


def rows(x, n):
    outs = []
    for row in x[x > n * 0.1]:
        outs.append(row * 2)
    return torch.stack(outs) if outs else x


def columns(x, n):
    outs, square = [], x[:, None] * x
    for _ in range(int(n)):
        square = square + 1
        outs.append(square.t())
    return torch.stack(outs) if outs else square


def dropped_out(x, n):
    torch.manual_seed(0)
    outs = []
    for _ in range(int(n)):
        x = functional.dropout(x, 0.3) + 1
        outs.append(x)
    return torch.stack(outs) if outs else x


ONE_PROGRAM = [stacked, joined_pairs, ends_and_length, looped_over, summed, some_only, until, nested, appended_after,
               by_helper, rows, columns, dropped_out]


# -- exact, whatever that takes ---------------------------------------------------------------------

def returned(x, n):
    outs = []
    for i in range(int(n)):
        x = x + 1
        outs.append(x)
        outs.append(i)
    return outs


def entry_written_before(x, n):
    outs, h = [], x.clone()
    for _ in range(int(n)):
        outs.append(h)
        h += 1
    return torch.stack(outs) if outs else x


def entry_written_later(x, n):
    outs, h = [], x.clone()
    for _ in range(int(n)):
        h = h + 1
        outs.append(h)
    h.add_(10)
    return torch.stack(outs) if outs else x


def written_through_the_list(x, n):
    outs, h = [], x.clone()
    for _ in range(int(n)):
        h = h + 1
        outs.append(h)
    if outs:
        outs[-1].mul_(3)
    return h


def turned_after_appending(x, n):
    outs, h = [], x.clone()
    for i in range(int(n)):
        h = x * i
        outs.append(h)
        h.unsqueeze_(0)
    return torch.cat(outs) if outs else h


def turned_later(x, n):
    outs, h = [], x
    for _ in range(int(n)):
        h = h + 1
        outs.append(h)
    h.unsqueeze_(0)
    return outs[-1] * 1 if outs else 0


def view_of_an_argument(x, n):
    outs = []
    for _ in range(int(n)):
        outs.append(x[1:])
    x.add_(1)
    return torch.stack(outs) if outs else x + 0


def under_another_name(x, n):
    outs, h = [], x.clone()
    other = outs
    for _ in range(int(n)):
        h = h + 1
        outs.append(h)
    return x + len(other)


def same_object(x, n):
    outs, h = [], x
    for _ in range(int(n)):
        h = h.sin()
        outs.append(h)
    return (h + 1 if outs and outs[-1] is h else h), h, outs[-1] if outs else None


def argument_returned(x, n):
    outs, h = [], x
    for _ in range(int(n)):
        outs.append(h)
        h = h + 1
    return outs[0] if outs else h


def two_dtypes(x, n):
    outs = []
    for i in range(int(n)):
        outs.append(x if i % 2 == 0 else x.double())
    return x * len(outs)


def other_uses(x, n):
    outs = []
    for _ in range(int(n)):
        x = x + 1
        outs.append(x)
    both = outs.copy() + [x]
    return torch.hstack(both), torch.stack([*outs, x]), torch.stack(tuple(outs[1:]) + (x,)), outs == [], len(both)


def shortened(x, n):
    outs = []
    for _ in range(int(n)):
        x = x + 1
        outs.append(x)
        if len(outs) > 2:
            outs.pop(0)
    return torch.stack(outs) if outs else x


def caught(x, n):
    outs = []
    for _ in range(int(n)):
        x = x + 1
        outs.append(x)
    try:
        return outs[2]
    except IndexError:
        return x - 1


def out_of_range(x, n):
    outs = []
    for _ in range(int(n)):
        x = x + 1
        outs.append(x)
    return outs[-2]


def outer_turned_later(x, n):
    outs, y = [], x * 2
    for _ in range(int(n)):
        outs.append(y)
    y.unsqueeze_(0)
    return torch.stack(outs) if outs else x


EXACT = [outer_turned_later, returned, entry_written_before, entry_written_later, written_through_the_list,
         turned_after_appending,
         turned_later, view_of_an_argument, under_another_name, same_object, argument_returned, two_dtypes, other_uses,
         shortened, caught, out_of_range]
