// The verdicts: how a packet can leave the walk. Rows come from schema/verdicts.toml. Any thread.
#pragma once

// Generated: SCHEMA_VERDICTS(ROW), SCHEMA_PORT_COUNTERS(ROW) and its kin, SCHEMA_VERBS(ROW).
#include "stat/words.h"

#define VERDICT_ENUM(UPPER, lower, step, text) VERDICT_##UPPER,
enum verdict { SCHEMA_VERDICTS(VERDICT_ENUM) N_VERDICTS };
#undef VERDICT_ENUM

// The word in counters and reports ("ttl_expired"); its meaning; the step that gives it. NULL
// beyond N_VERDICTS.
const char *verdict_name(enum verdict verdict);
const char *verdict_text(enum verdict verdict);
const char *verdict_step(enum verdict verdict);
