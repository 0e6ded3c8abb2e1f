"""Schedulers that look at a sample of the workers: Sparrow, Hawk, Eagle, Dodoor."""
