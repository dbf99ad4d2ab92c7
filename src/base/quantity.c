// Parses and prints numbers with units. No thread, no state.
#include "base/quantity.h"

#include "base/bits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	char letter;
	double factor;
} prefixes[] = {{'T', 1e12}, {'G', 1e9}, {'M', 1e6}, {'k', 1e3}};

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

// strtod would also accept signs, "inf", "nan" and hexadecimal numbers.
bool quantity_number(const char *text, double *value, const char **rest)
{
	char *end;

	text = skip_blanks(text);
	if (!strchr("0123456789.", text[0]) || !text[0] || (text[0] == '0' && text[1] == 'x') ||
		(text[0] == '0' && text[1] == 'X'))
		return false;
	*value = strtod(text, &end);
	*rest = skip_blanks(end);
	return end > text && isfinite(*value);
}

bool quantity_unit(const char **text, const char *unit, double *value)
{
	const char *at = *text;
	double factor = 1;

	for (unsigned i = 0; i < ARRAY_LEN(prefixes); i++)
		if (at[0] == prefixes[i].letter && !strncmp(at + 1, unit, strlen(unit))) {
			factor = prefixes[i].factor;
			at++;
			break;
		}
	if (strncmp(at, unit, strlen(unit)))
		return false;
	*text = skip_blanks(at + strlen(unit));
	*value *= factor;
	return true;
}

const char *quantity_print(double value, const char *unit, char text[QUANTITY_TEXT])
{
	for (unsigned i = 0; i < ARRAY_LEN(prefixes); i++)
		if (value >= prefixes[i].factor) {
			snprintf(text, QUANTITY_TEXT, "%.6g %c%.16s", value / prefixes[i].factor,
				prefixes[i].letter, unit);
			return text;
		}
	snprintf(text, QUANTITY_TEXT, "%.6g %.16s", value, unit);
	return text;
}
