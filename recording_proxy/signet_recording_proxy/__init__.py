"""Records what a connector and a daemon say to each other, as a `signet-trace/1` file.

Run it as a process of its own: `python -m signet_recording_proxy --upstream URL --out FILE`.
The command, its exit statuses and its control channel are described in `__main__`.
"""
