"""The suites for plug-ins: each passes a conforming one and catches broken ones by name."""
