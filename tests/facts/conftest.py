"""What tests of facts share with those of rules."""

from tests.rules.conftest import recorded

__all__ = ["recorded"]
