"""Benchmarks: one file per question, each prints a ratio, its seeds and the commit."""
