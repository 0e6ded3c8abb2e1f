"""A synchronous, typed client of a federation; standard library and msgspec only, quick to import."""
from subak.live.client.client import Client, Found
from subak.live.client.settings import ClientSettings, read_settings

__all__ = ["Client", "ClientSettings", "Found", "read_settings"]
