// The verdicts' words. Any thread.
#include "stat/verdict.h"

#include <stddef.h>

struct row {
	const char *name, *step, *text;
};

#define VERDICT_ROW(UPPER, lower, step, text) {lower, step, text},
static const struct row rows[] = {SCHEMA_VERDICTS(VERDICT_ROW)};

const char *verdict_name(enum verdict verdict)
{
	return verdict < N_VERDICTS ? rows[verdict].name : NULL;
}

const char *verdict_text(enum verdict verdict)
{
	return verdict < N_VERDICTS ? rows[verdict].text : NULL;
}

const char *verdict_step(enum verdict verdict)
{
	return verdict < N_VERDICTS ? rows[verdict].step : NULL;
}
