"""Run something in a forked child, and notice when it hangs."""

import os
import signal


def in_child(work, seconds=60):
    """The exit status of a forked child that calls `work`: 0 when it returned something true, -14 when it hung."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)      # the system's: Python's would wait for a hanging C call
        signal.alarm(seconds)
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
