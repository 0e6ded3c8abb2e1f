"""Compiles kernels and keeps them between processes."""
