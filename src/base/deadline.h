// An end that cannot hang. Control thread.
#pragma once

// From now on the program has so many seconds to leave. When it has not, `last_words` (a line,
// borrowed) go to stderr and it leaves with status 1, nothing closed.
void deadline_start(unsigned seconds, const char *last_words);
