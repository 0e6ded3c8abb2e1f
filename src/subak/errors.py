"""Defines every exception; the type says whose fault it is, the text names the rule and the value."""
from subak import exit_codes


class SubakError(Exception):
    """Base of all errors that the command line shows as one line, with the exit code of their type."""

    exit_code = exit_codes.MISTAKE


class InputError(SubakError):
    """A file, table, option or scenario breaks a rule; the text names the rule, the place and the value."""


class PolicyError(SubakError):
    """A user's policy does not compile, or answered what the engine cannot accept."""


class RunError(SubakError):
    """A run could not be finished or written: the disk is full, a worker process died."""


class StoreUnfitError(SubakError):
    """The store of a master may not be used as it is: somebody has to look at it, and no supervisor can help."""

    exit_code = exit_codes.STORE_UNFIT


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, for use inside a one-line message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
