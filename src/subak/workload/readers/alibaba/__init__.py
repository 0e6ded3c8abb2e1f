"""The traces of Alibaba."""
