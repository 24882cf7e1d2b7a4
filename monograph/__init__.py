"""Monograph: one whole graph of a PyTorch model, compiled to native code."""
