"""What a person asks: explain, verify, dump, the command line."""
