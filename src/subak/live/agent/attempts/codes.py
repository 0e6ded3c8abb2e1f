"""Exit codes of attempts: an exit code, or a negative signal number as in Python's `subprocess`."""
import signal


def signal_of(code: int) -> str:
    """Return the name of the signal that a code stands for, such as SIGKILL; nothing for an exit code."""
    if code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal between the first and the last
        return f"SIG{-code}"


def code_words(code: int) -> str:
    """Return a code in words."""
    return f"exit code {code}" if code >= 0 else f"signal {signal_of(code)}"
