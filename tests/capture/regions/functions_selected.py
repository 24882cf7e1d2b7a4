"""Work on what values select (`functions` has the grammar of CASES): every input selects another number."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["CASES", "INPUTS"]

INPUTS = [(x,) for x in (
    torch.linspace(-2, 2, 30).reshape(5, 6).sin() * 3, torch.ones(5, 6), -torch.ones(5, 6),
    torch.cat([torch.ones(1, 6), -torch.ones(4, 6)]), torch.cat([-torch.ones(3, 6), torch.ones(2, 6)]),
    torch.linspace(-1, 5, 30).reshape(6, 5).t().reshape(5, 6) - 1)]


def places(x):
    return (x > 0).nonzero()


def places_in_a_row(x):
    return x.flatten().nonzero(), torch.where(x[:, 0] > 0)[0]


def places_by_dim(x):
    row, column = torch.where(x > 0)
    return row * 10 + column


def elements(x):
    return x[x > 0]


def elements_used(x):
    return (x[x > 0] * 2 + 1).relu().exp()


def elements_added(x):
    chosen = x[x > 0]
    return chosen.sum() * 2, chosen.shape[0], chosen.numel() > 3


def rows(x):
    return x[x[:, 0] > 0]


def columns(x):
    return x[:, x[0] > 0] * 2


def selected(x):
    return torch.masked_select(x, x > 0.5).exp()


def projected(x):
    return torch.relu(x[x[:, 0] > 0] @ torch.ones(6, 4)) @ torch.ones(4, 3)


def attended(x):
    y = x[x[:, 0] > 0]
    return torch.softmax(y @ torch.ones(6, 5), -1)


def normalised(x):
    y = x[x.abs() > 0.2]
    return (y - y.mean()) / (y.var() + 1)


def halves(x):
    return torch.cat([x[x > 0], x[x <= 0]])


def nested(x):
    y = x[x > 0]
    return y[y < 0.9] * 2


def filled(x):
    x = x.clone()
    x[x < 0] = 0.5
    return x


def rewritten(x):
    y = x.clone()
    y[x > 0] = x[x > 0] * 3
    return y


def rows_by_place(x):
    y = x.clone()
    chosen = torch.where(x[:, 0] > 0)[0]
    y[chosen] = y[chosen] * 2 + 1
    return y


def added_back(x):
    chosen = (x[:, 0] > 0).nonzero().squeeze(1)
    return torch.zeros_like(x).index_add(0, chosen, x[chosen] * 2)


def experts(x):
    out = torch.zeros_like(x)
    for expert in range(3):
        chosen = torch.where((x[:, 0] > 0).long() + (x[:, 1] > 0) == expert)[0]
        out.index_add_(0, chosen, x[chosen] @ (torch.ones(6, 6) * (expert + 1)))
    return out


def distinct(x):
    values, inverse, counts = torch.unique((x * 3).long(), return_inverse=True, return_counts=True)
    return values * counts, inverse


def distinct_bytes(x):
    return torch.unique((x * 3).to(torch.int8)), torch.unique((x.abs() * 90).to(torch.uint8), return_counts=True)


def runs(x):
    return torch.unique_consecutive(x.detach().flatten().round(), return_inverse=True, return_counts=True)


def repeated(x):
    return torch.repeat_interleave(x, (x[:, 0] > 0).long() * 2, dim=0)


def repeated_places(x):
    return torch.repeat_interleave((x[:, 0] > 0).int())


def counted(x):
    n = int((x[:, 0] > 0).sum())
    return torch.arange(n) * 2, torch.zeros(n, 3) + x[:1, :3], x[:n] * 2


def lengths(x):
    n = (x[:, 0] > 0).sum().item()
    return torch.arange(n + 2)[None, :] < x[:, :1]


def folded(x):
    y = x[x[:, 0] > 0]
    return y.sum(0), y.prod(0), (y > 0).any(0), y.mean(1), y.cumsum(0)


CASES: list[tuple[Any, list[tuple[torch.Tensor, ...]]]] = [(function, INPUTS) for function in (
    places, places_in_a_row, places_by_dim, elements, elements_used, elements_added, rows, columns, selected, projected,
    attended, normalised, halves, nested, filled, rewritten, rows_by_place, added_back, experts, distinct,
    distinct_bytes, runs, repeated, repeated_places, counted, lengths, folded)]
