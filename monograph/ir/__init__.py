"""What a program is. Imports nothing of the compiler but `monograph.source` and `monograph.errors`."""
