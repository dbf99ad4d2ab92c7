"""Pure: the next load, or the answer. Knows neither clock nor socket nor how a trial is made."""
