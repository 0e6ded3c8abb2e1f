"""The claims and figures of the MCH paper beside ours."""
