"""`subak torture`, in its three forms."""
