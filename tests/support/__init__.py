"""What several tests share: hand-written and random programs, oracles, devices, paths."""
