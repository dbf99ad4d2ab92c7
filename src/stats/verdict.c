// Names of the verdicts. Any thread.
#include "stats/verdict.h"

#include <stddef.h>

struct row {
	const char *name, *step, *text;
};

#define VERDICT_ROW(UPPER, lower, step, text) {lower, step, text},
static const struct row rows[] = {SCHEMA_VERDICTS(VERDICT_ROW)};

#define PUNT_ROW(VERDICT, CLASS) [VERDICT_##VERDICT] = CLASS_##CLASS + 1,
static const uint8_t class_of_verdict[N_VERDICTS] = {SCHEMA_PUNTS(PUNT_ROW)}; // 0: none

#define CLASS_ROW(UPPER, lower, rate, burst, forwards, text) {lower, text, rate, burst, forwards},
static const struct class_row classes[] = {SCHEMA_CLASSES(CLASS_ROW)};

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

unsigned verdict_class(enum verdict verdict)
{
	if (verdict >= N_VERDICTS || !class_of_verdict[verdict])
		return CLASS_NONE;
	return class_of_verdict[verdict] - 1u;
}

const struct class_row *class_row(enum punt_class class)
{
	return class < N_CLASSES ? &classes[class] : NULL;
}
