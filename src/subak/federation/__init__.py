"""The roles of federations as kernels: each takes a message and answers with messages."""
