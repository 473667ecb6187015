"""What a private fit will cost, before its data are touched."""
