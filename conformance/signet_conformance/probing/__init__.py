"""Requests that real daemons were asked, put to any daemon; what its answers say of the contract that it serves."""
