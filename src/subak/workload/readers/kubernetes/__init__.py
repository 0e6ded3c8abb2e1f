"""Kubernetes: pods.py, the whole; objects.py, what kubectl prints; requests.py, what a pod asks for; affinity.py, where
it may run; nodes.py, the fleet.
"""
from subak.workload.readers.kubernetes.pods import READER

__all__ = ["READER"]
