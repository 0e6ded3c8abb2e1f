"""The traces of Google's Borg."""
