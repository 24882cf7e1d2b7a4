"""What the tests of templates share: running a kernel on the interpreter and as machine code."""

import torch

from monograph.codegen import jit
from monograph.loops import interpret, verifier


def run(kernel, inputs, outputs, *, interpreted=True):
    """Run `kernel` on inputs then outputs; machine code and interpreter agree. The outputs hold the results."""
    verifier.verify(kernel)
    assert jit.load([kernel])[kernel.name]([*inputs, *outputs]) is None
    if interpreted:
        again = [x.clone().fill_(torch.nan) for x in outputs]
        assert interpret.run(kernel, [*inputs, *again]) is None
        for native, reference in zip(outputs, again, strict=True):
            torch.testing.assert_close(native, reference, rtol=1e-5, atol=1e-5, equal_nan=True)
