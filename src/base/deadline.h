// A shutdown that cannot hang. Control thread.
#pragma once

// Gives the program `seconds` to exit. If it has not by then, writes `last_words` (one line,
// borrowed) to stderr and exits with status 1 without closing anything.
void deadline_start(unsigned seconds, const char *last_words);
