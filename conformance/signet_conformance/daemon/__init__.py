"""An embedded Signet daemon: a stand-in that answers as a real one does, for tests without a Signet install."""
