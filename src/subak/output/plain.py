r"""Makes text from files harmless: one line, with control characters escaped.

Control characters, among them line feeds, and the marks that turn the direction of writing are shown as escapes such as
``\x1b``.
"""
import re

# C0 and C1 controls, bidirectional marks, separators of lines and paragraphs (one of which Vega cannot quote twice),
# halves of characters, and what XML does not hold.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
LINE_CHARACTERS_MAX = 300  # characters of a line that says what is wrong


def plain(text: str) -> str:
    """Return *text* with escapes for what is not to be printed or drawn."""
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_text(text: str) -> bool:
    """Whether *text* can be written as UTF-8; a name of a file that holds other bytes cannot."""
    return not re.search("[\ud800-\udfff]", text)


def shortened(text: str, most: int = LINE_CHARACTERS_MAX) -> str:
    """Return *text* with so much left out of its middle that *most* characters remain."""
    if len(text) <= most:
        return text
    end = (most - 1) // 3
    return f"{text[:most - 1 - end]}…{text[-end:]}"
