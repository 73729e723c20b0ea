"""What every test relies on, however the run was started."""

from __future__ import annotations

import signal

# A run in the background of a shell inherits an ignored SIGINT and would hand it down: no child that a test
# interrupts would notice. Children of a process that handles it get the default back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
