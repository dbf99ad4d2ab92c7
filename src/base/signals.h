// Signals as bytes of a descriptor. Control thread.
#pragma once

#include "base/error.h"

// Blocks one more signal, before any thread starts, so that it arrives at our descriptor and
// nowhere else.
void signals_block(int number);

// Blocks SIGINT and SIGTERM, ignores SIGPIPE, and returns a descriptor that becomes readable when a
// blocked signal has come; -errno with `error` set. Owner: caller, close.
int signals_open(struct error *error);

// The next signal that has come; 0: none.
int signals_next(int signals);
