"""Every `transformers` family that a small config can be made for, compiled against eager."""
