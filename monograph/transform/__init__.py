"""Graph to graph: each pass is one file and one function, `pipeline` is their order, `runner` runs them."""
