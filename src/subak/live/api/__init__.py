"""The people's side of a federation: what goes over HTTP, who answers, and who may ask."""
