"""What package indexes show of Subak: README.md, without its picture and with the names of files in place of links.

An index shows the text by itself: a picture, or a link to a file beside it, leads nowhere from there, and the project
has no public address that they could be given.
"""
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)]*)\)")


class ReadmeHook(MetadataHookInterface):
    """Hatchling asks it for the metadata that pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the long description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}


def description(text: str) -> str:
    """Return a page in Markdown that needs no file beside it."""
    return LINK.sub(r"\1 (`\2`)", PICTURE.sub("", text))
