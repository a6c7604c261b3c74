"""Where the time of a step goes: recorded operations of a framework -> classes that all frameworks share."""
