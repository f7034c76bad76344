"""Instruction forms, generated as kernels, run on two backends and compared. See ../README.md."""
