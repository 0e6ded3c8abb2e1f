"""The claims and figures of the LoTES paper beside ours."""
