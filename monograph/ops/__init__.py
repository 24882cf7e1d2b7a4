"""The vocabulary: every op the IR can hold, what it means, and what it decomposes to."""
