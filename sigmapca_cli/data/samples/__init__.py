"""Data of many fields whose truth is known: to try the program on, and to test what it says of such data."""
