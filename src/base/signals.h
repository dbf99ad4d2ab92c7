// Signals as readable events of a descriptor. Control thread.
#pragma once

#include "base/error.h"

// Blocks one more signal, before any thread starts, so that it is delivered through the descriptor
// only.
void signals_block(int number);

// Blocks SIGINT and SIGTERM, ignores SIGPIPE, and returns a descriptor that becomes readable when a
// blocked signal arrives; -errno with `error` set. Owner: caller, close.
int signals_open(struct error *error);

// The next pending signal; 0: none.
int signals_next(int signals);
