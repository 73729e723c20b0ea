"""What tests share: builders, rigs, real fakes."""
