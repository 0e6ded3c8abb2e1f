"""What mkdocstrings is told of attributes that have a comment beside them: it is their documentation."""
import re
from typing import Any

import griffe

COMMENT = re.compile(r"  # (.*)$")


class Comments(griffe.Extension):
    """Griffe asks it while it reads a file."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Take the comment on an attribute's line, unless it is documented otherwise."""
        parent = attr.parent
        if attr.docstring or attr.lineno is None or not isinstance(parent, griffe.Class):
            return
        lines = attr.filepath.read_text().splitlines()[attr.lineno - 1:attr.endlineno]
        found = COMMENT.search(lines[-1])
        if found:
            attr.docstring = griffe.Docstring(found[1], lineno=attr.lineno, parent=attr)
