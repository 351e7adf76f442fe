"""Methods from the literature: correct and tested, but rarely the best choice."""
