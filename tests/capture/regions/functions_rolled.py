"""Functions with long loops whose trips Python knows: `f(x, w)`, x: [100, 4], w: [4, 4]."""

from __future__ import annotations

import torch


def over_a_range(x, w):
    for i in range(100):
        x = torch.tanh(x @ w) + i * 0.01
    return x


def downwards_in_steps(x, w):
    for i in range(250, 3, -3):
        x = (x @ w + i).sin()
    return x


def over_rows(x, w):
    h = torch.zeros(4)
    for row in x:
        h = torch.tanh(row + h @ w)
    return h


def enumerated(x, w):
    h = torch.zeros(4)
    for i, row in enumerate(x, 1):
        h = torch.tanh(row + h @ w) / i
    return h


def zipped(x, w):
    h = torch.zeros(4)
    for i, (row, other) in enumerate(zip(x, x * 2)):
        if i % 2 == 0:
            continue
        h = torch.tanh(row * other + h @ w)
    return h


def reversed_indices(x, w):
    h = torch.zeros(4)
    for i in reversed(range(len(x))):
        h = torch.tanh(x[i] + h @ w)
    return h


def left_early(x, w):
    h = x[0]
    for i in range(100):
        h = (h @ w).sin() * (1 - i * 0.001)
        if h.abs().max() < 0.05:
            break
    return h, i


def returned_from(x, w):
    for i in range(100):
        x = (x @ w).sin()
        if x.abs().max() < 0.05:
            return x * i
    return x


def skipped_by_value(x, w):
    x = x @ w
    for i in range(100):
        if (x.sum() * (i + 1)).sin() > 0:
            continue
        x = (x @ w).sin() + 0.1
    return x


def with_a_number_beside(x, w):
    t = 0.0
    for _ in range(100):
        x = x + 0.01 * torch.sin(x @ w * t)
        t += 0.01
    return x, t


def rows_written(x, w):
    out = torch.zeros(100, 4)
    h = torch.zeros(4)
    for i in range(x.shape[0]):
        h = torch.tanh(x[i] + h @ w)
        out[i] = h
    return out


def neighbours_written(x, w):
    y = x.clone()
    for i in range(99):
        y[i + 1] += (y[i] * 0.5) @ w
    return y


def rows_of_a_copy_written(x, w):
    y = x * w[0]
    for row in y.detach():
        row.mul_(2).add_(w.detach()[0])
    return y


def nested(x, w):
    h = torch.zeros(4)
    for row in x:
        for k in range(70):
            h = torch.tanh(row + h @ w) + k * 0.01
    return h


def short_inside(x, w):
    for i in range(80):
        for j in range(3):
            x = (x @ w + (i * 3 + j)).sin()
            if x.sum() > 1:
                x = x - 0.1
    return x


def first_is_none(x, w):
    h = None
    for i in range(100):
        y = torch.tanh(x @ w) * i
        h = y if h is None else h.sin() + y
    return h


def draws(x, w):
    for _ in range(70):
        x = torch.dropout(x @ w, 0.5, True) + torch.randn(4)
    return x


def stacked(x, w):
    h, outs = torch.zeros(4), []
    for row in x:
        h = torch.tanh(row + h @ w)
        outs.append(h)
    return torch.stack(outs), len(outs)


def two_lists(x, w):
    h, c, hs, cs = torch.zeros(4), torch.ones(4), [], []
    for t in range(x.size(0)):
        gate = (x[t] @ w).sigmoid()
        c = c * gate + (h @ w).tanh()
        h = c.tanh() * gate
        hs.append(h)
        cs += [c]
    return torch.stack(hs, dim=1), torch.stack(cs)[-1], h


def one_tensor_at_first(x, w):
    h = torch.zeros(4)
    c, hs = h, []
    for row in x:
        c = c * (row @ w).sigmoid() + (h @ w).tanh()
        h = c.tanh() + 1
        hs.append(h)
    return torch.stack(hs), c


def some_appended(x, w):
    outs = [x[0]]
    for row in x:
        if row.sum() > 0:
            outs.append(row * 2)
    return torch.stack(outs).sum(0), len(outs)


def list_looped_over(x, w):
    outs, total = [], 0
    for row in x:
        outs.append((row @ w).sin())
    for entry in outs:
        total = total + entry * entry
    return total, torch.stack(outs, 1) * len(outs), outs[3] + outs[-1]


def comprehension(x, w):
    return torch.stack([(row @ w).sin() * i for i, row in enumerate(x)])


ROLLED = [over_a_range, downwards_in_steps, over_rows, enumerated, zipped, reversed_indices, left_early,
          skipped_by_value, with_a_number_beside, rows_written, neighbours_written, nested, short_inside,
          first_is_none, draws]
WITHOUT_GRADIENTS = [returned_from]
# Rolled where nothing has a gradient:
LISTS = [stacked, two_lists, one_tensor_at_first, some_appended, list_looped_over, comprehension]


# -- written out -----------------------------------------------------------------------------------

def returned_list(x, w):
    outs = []
    for row in x:
        outs.append((row @ w).sin())
    return outs


def reversed_list(x, w):
    outs = []
    for row in x:
        outs.append((row @ w).sin())
    outs.reverse()
    return torch.stack(outs), torch.stack(outs[::2])


def keys_of_a_dict(x, w):
    table = {}
    for i in range(100):
        table[i] = i * 2
        x = x + table[i]
    return x @ w, table[7], len(table)


def numbers_only(x, w):
    total = 0
    for i in range(100):
        total += i
    for _ in range(3):
        x = (x @ w).sin()
        if x.sum() > 0:
            x = x + total
    return x, torch.zeros(total % 7)


def number_as_a_size(x, w):
    for i in range(1, 80):
        x = x + torch.ones(i).sum() * 0.001
    return x @ w


def printed(x, w):
    for i in range(70):
        x = (x @ w).sin()
        if i % 30 == 0:
            print(i)
    return x


WRITTEN_OUT = [returned_list, reversed_list, keys_of_a_dict, numbers_only, number_as_a_size, printed,
               rows_of_a_copy_written]
