"""The parts of the extension, and the waiting and publishing that it does in Python."""
