"""Schedulers that sample workers: Sparrow, Hawk, Eagle, Dodoor."""
