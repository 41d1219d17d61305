"""What everything stands on: nodes, records of operations, sizes, names."""
