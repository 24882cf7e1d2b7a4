"""Functions by which a program asks the world, or changes it: what becomes of a call of one while it is captured.

    CLOCKS         asked at every run
    REFUSED        gives what is no number, and another at every call
    SETTERS        refused: what they set would be set once
    OF_NOW         refused where they are not given the moment they speak of
    CLOCKED        classes with such methods
    FACTS          asked again by the guard

Random generators are in `readset_random`.
"""

from __future__ import annotations

import datetime
import decimal
import gc
import os
import random
import secrets
import socket
import sys
import threading
import time
import types
import uuid

import numpy as np
import torch

__all__ = ["CLOCKED", "CLOCKS", "FACTS", "OF_NOW", "REFUSED", "SETTERS"]

CLOCKS: dict[types.ModuleType, tuple[str, ...]] = {
    time: ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
           "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns"),
    secrets: ("randbelow", "randbits"),
}
REFUSED: dict[types.ModuleType, tuple[str, ...]] = {
    torch: ("seed",),
    torch.random: ("seed",),
    secrets: ("token_bytes", "token_hex", "token_urlsafe", "choice", "SystemRandom"),
    uuid: ("uuid1", "uuid4"),
    os: ("urandom", "times", "getloadavg"),
    sys: ("getrefcount",),
}
SETTERS: dict[types.ModuleType, tuple[str, ...]] = {
    torch: ("set_default_dtype", "set_default_device", "set_printoptions", "set_num_threads", "set_num_interop_threads",
            "use_deterministic_algorithms", "set_deterministic_debug_mode", "set_float32_matmul_precision",
            "set_warn_always", "set_flush_denormal"),
    np: ("set_printoptions", "seterr"),
    sys: ("setrecursionlimit", "setswitchinterval"),
    gc: ("enable", "disable", "set_threshold", "freeze", "unfreeze"),
    os: ("chdir", "putenv", "unsetenv", "umask", "mkdir", "makedirs", "remove", "unlink", "rename", "replace", "rmdir",
         "system", "kill"),
    decimal: ("setcontext",),
}
# By the number of arguments that takes.
OF_NOW: dict[types.ModuleType, dict[str, int]] = {
    time: {"localtime": 1, "gmtime": 1, "ctime": 1, "asctime": 1, "strftime": 2},
    np.random: {"default_rng": 1, "PCG64": 1, "MT19937": 1, "Philox": 1, "SFC64": 1, "RandomState": 1,
                "SeedSequence": 1},
    random: {"Random": 1, "SystemRandom": sys.maxsize},
}
CLOCKED: dict[type, tuple[str, ...]] = {datetime.datetime: ("now", "utcnow", "today"), datetime.date: ("today",)}
FACTS: dict[types.ModuleType, tuple[str, ...]] = {
    os: ("getpid", "getppid", "getcwd", "cpu_count", "getuid", "listdir"),
    os.path: ("exists", "isfile", "isdir", "getsize", "getmtime"),
    threading: ("get_ident", "get_native_id", "active_count"),
    socket: ("gethostname",),
    sys: ("getrecursionlimit", "getswitchinterval"),
    gc: ("isenabled", "get_threshold"),
    torch: ("get_num_threads", "get_num_interop_threads", "get_float32_matmul_precision",
            "get_deterministic_debug_mode", "is_warn_always_enabled"),
    np: ("geterr", "get_printoptions"),
}
