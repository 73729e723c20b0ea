"""A contract-conformance kit for Signet connectors: what a connector must do, and the proof that it does."""

__version__ = "0.1.0"
