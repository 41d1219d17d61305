"""The tests: a package, so that what another distribution installs as ``tests`` is never taken for it."""
