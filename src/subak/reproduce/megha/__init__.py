"""The claims and figures of the Megha paper beside ours."""
