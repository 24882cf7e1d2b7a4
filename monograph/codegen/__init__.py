"""From the loop IR to machine code."""
