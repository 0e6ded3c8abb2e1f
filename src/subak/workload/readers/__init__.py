"""Readers of published traces. A new one is a file with a `READER`, and a line here."""
from subak.workload.readers import google2011, swf, tr
from subak.workload.readers.conversion import Reader

READERS: dict[str, Reader] = {
    "google2011": google2011.READER,
    "tr": tr.READER,
    "swf": swf.READER,
}
