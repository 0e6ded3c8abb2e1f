"""Reads Kubernetes' pods and nodes, as kubectl prints them."""
from subak.workload.readers.kubernetes.pods import READER

__all__ = ["READER"]
