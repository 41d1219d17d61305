"""What is known of values: ranges, linear forms and order."""
