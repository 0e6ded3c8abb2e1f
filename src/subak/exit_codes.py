"""Exit codes of all commands, in one table; docs/live.md and the reference show it."""
import signal

EXIT_DONE, OTHERWISE, MISTAKE, NOTHING_THERE, NOT_NOW, EXIT_REFUSED, WRONG_TOKEN, STORE_UNFIT = range(8)
TIMED_OUT, NOT_RUN = 124, 125  # of `subak run`, as other runners of commands have them
INTERRUPTED, UNREAD, EXIT_ENDED = 130, 141, 143  # as shells count Ctrl-C, SIGPIPE and SIGTERM
SIGNALLED = 128  # and the number of the signal
CODE_MAX = 255

MEANINGS = {
    EXIT_DONE: "done; of a job that was waited for: it finished",
    OTHERWISE: "a job that was waited for did not finish; `subak rerun --failed` ran nothing again; a live federation "
               "failed; no size that `subak size` tried is enough",
    MISTAKE: "a mistake in the command line, a file or a policy, or a run that could not be finished",
    NOTHING_THERE: "the live federation has no job, task or machine of this name",
    NOT_NOW: "no master can be reached, or the request fails for now, such as on a full disk: try again",
    EXIT_REFUSED: "refused in the present state, such as preempting a task that does not run",
    WRONG_TOKEN: "the live federation refuses the token, or the role of its holder does not allow the request",
    STORE_UNFIT: "the store of a master is damaged, or not the one in use; retrying does not help, see docs/stores.md",
    TIMED_OUT: "only `subak run`: the command ran longer than `--time-limit`",
    NOT_RUN: "only `subak run`: the command could not be run, or was lost",
    INTERRUPTED: "interrupted by Ctrl-C, and nothing half-written is left; of `subak run`: the job was cancelled; "
                 "of `subak submit --wait`, `logs` and `watch`: jobs go on",
    UNREAD: "the reader of the output is gone (a closed pipe)",
    EXIT_ENDED: "ended by SIGTERM; nothing half-written is left",
}


def of_command(code: int | None, ended_by: str) -> int:
    """Return the exit code for a command that failed with a code, or by a signal: 128 and its number, as shells do."""
    if ended_by:
        number = ended_by.removeprefix("SIG")
        return SIGNALLED + int(number if number.isdecimal() else signal.Signals[ended_by])
    return min(CODE_MAX, code or OTHERWISE)


def table() -> str:
    """Return all exit codes as a table of Markdown."""
    rows = [f"| {code} | {words} |" for code, words in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])
