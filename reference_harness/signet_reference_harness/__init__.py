"""The reference harness: a session loop on the Signet daemon that passes the contract by construction."""
