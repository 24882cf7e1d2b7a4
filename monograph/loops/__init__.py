"""One kernel as loops: the grammar, lowering of fused items, interpreter, printer, verifier."""
