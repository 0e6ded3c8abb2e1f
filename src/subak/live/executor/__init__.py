"""The executor of a machine as its worker sees it: what there is to run, how it ended, and which rules hold."""
