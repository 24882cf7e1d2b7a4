"""Control flow on demand: source of a function that asked for a traced value -> the same function calling `operators`."""
