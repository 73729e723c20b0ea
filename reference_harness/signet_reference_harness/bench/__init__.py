"""The benchmark of memory quality: suites, subjects, figures."""
