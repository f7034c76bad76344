"""Programs run as they are and under `ptxrace exec`, and compared. See ../README.md."""
