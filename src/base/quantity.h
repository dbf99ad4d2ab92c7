// Numbers with units as people write them: "1.5 Mpps", "100 Gbit/s", "50 %". No thread, no state.
#pragma once

#include <stdbool.h>

enum { QUANTITY_TEXT = 48 };

// Parses a finite number that is not negative; *rest is what follows it and any blanks.
bool quantity_number(const char *text, double *value, const char **rest);
// Removes `unit`, with an optional prefix k, M, G or T, and blanks after it from the start of
// *text, and multiplies the value accordingly. False: *text starts with something else.
bool quantity_unit(const char **text, const char *unit, double *value);
// Prints "100 Gbit/s": six digits, with the largest prefix that leaves 1 or more. Returns `text`.
const char *quantity_print(double value, const char *unit, char text[QUANTITY_TEXT]);
