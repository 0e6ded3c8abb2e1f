"""Readers of published traces. A new one is a file with a `READER`, and a line here."""
from subak.workload.readers import alibaba2018, google2011, openb, rumen, swf, swim, tr
from subak.workload.readers.conversion import Reader

READERS: dict[str, Reader] = {
    "google2011": google2011.READER,
    "alibaba2018": alibaba2018.READER,
    "openb": openb.READER,
    "rumen": rumen.READER,
    "swim": swim.READER,
    "tr": tr.READER,
    "swf": swf.READER,
}
