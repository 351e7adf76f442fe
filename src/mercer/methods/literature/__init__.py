"""Methods of the literature that are correct and tested, and rarely the best choice."""
