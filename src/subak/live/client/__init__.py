"""A client of a federation: typed, synchronous, of the standard library and msgspec, quick to load."""
from subak.live.client.client import Client, Found
from subak.live.client.settings import ClientSettings, read_settings

__all__ = ["Client", "ClientSettings", "Found", "read_settings"]
