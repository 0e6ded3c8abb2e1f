"""Kernels: how they are compiled, kept between processes, and told apart."""
