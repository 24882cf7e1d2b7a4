"""Small models whose batch and sequence vary: two programs, and one more where the batch is 1."""

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import monograph

transformers = pytest.importorskip("transformers")

CALLS = ((2, 5), (3, 7), (4, 6), (2, 9), (7, 3), (5, 12), (9, 2))
SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        y, (h, c) = self.cell(x)
        return self.out(y), h, c


def tokens(b, s):
    return torch.randint(0, 99, (b, s))


def mlp():
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    return net, lambda b, s: (torch.randn(b, 8),), {}


def cnn():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(8, 8, 3),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return net, lambda b, s: (torch.randn(b, 3, 12, 10),), {}


def images():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AvgPool2d(2, 1), nn.Flatten(2))
    return net, lambda b, s: (torch.randn(b, 3, 8 + s, 10 + s),), {}


def lstm():
    return Recurrent(), lambda b, s: (torch.randn(b, s, 8),), {}


def bert():
    net = transformers.BertModel(transformers.BertConfig(**SMALL, intermediate_size=37, max_position_embeddings=64))
    return net, lambda b, s: (tokens(b, s), torch.ones(b, s, dtype=torch.long)), {}


def gpt2():
    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=0,
                                     eos_token_id=0)
    return transformers.GPT2LMHeadModel(config), lambda b, s: (tokens(b, s),), {"use_cache": False}


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, intermediate_size=37)
    return transformers.LlamaForCausalLM(config), lambda b, s: (tokens(b, s),), {"use_cache": False}


def bloom():
    config = transformers.BloomConfig(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)
    return transformers.BloomModel(config), lambda b, s: (tokens(b, s),), {"use_cache": False}


def t5():
    config = transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    return transformers.T5Model(config), lambda b, s: (tokens(b, s), None, tokens(b, s + 2)), {"use_cache": False}


def results(call, model, args, kwargs, grad):
    found = [leaf for leaf in pytree.tree_leaves(call(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
    if grad:
        model.zero_grad()
        sum(leaf.pow(2).mean() for leaf in found if leaf.requires_grad).backward()
        found += [p.grad for p in model.parameters() if p.grad is not None]
    return [leaf.detach() for leaf in found]


def run(build, calls, grad):
    torch.manual_seed(0)
    model, inputs, kwargs = build()
    model.eval()
    fast = monograph.compile(model)
    with torch.set_grad_enabled(grad):
        for b, s in calls:
            args = inputs(b, s)
            got, want = (results(call, model, args, kwargs, grad) for call in (fast, model))
            assert len(got) == len(want)
            for a, c in zip(got, want):
                assert (a.shape, a.stride()) == (c.shape, c.stride())
                torch.testing.assert_close(a, c, atol=2e-5, rtol=2e-4)
    entries = monograph.api.dispatcher_of(fast).entries
    assert not any(entry.fixed for entry in entries), [entry.fixed for entry in entries]
    return len(entries)


@pytest.mark.parametrize("build", [mlp, cnn, images, lstm, bert, gpt2, llama, bloom, t5])
def test_batch_and_sequence_vary(build):
    assert run(build, CALLS, False) == 2


@pytest.mark.parametrize("build", [bert, gpt2])
def test_a_batch_of_one_has_a_program_of_its_own(build):
    assert run(build, ((2, 5), (1, 7), (1, 9), (3, 4), (1, 4)), False) <= 3


@pytest.mark.parametrize("build", [mlp, cnn, bert])
def test_gradients_of_models(build):
    assert run(build, CALLS[:5], True) == 2
