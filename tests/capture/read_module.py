"""A module whose globals `test_unspelled_reads` changes."""

value = 1.0


def function():
    return value
