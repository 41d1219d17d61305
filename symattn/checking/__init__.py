"""Other people's mathematics: which mistake it is."""
