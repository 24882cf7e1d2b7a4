"""Matrix products, convolutions and attention, written as loop IR with a fused epilogue."""
