// Numbers with units as people write and read them: "1.5 Mpps", "100 Gbit/s", "50 %". No thread, no
// state.
#pragma once

#include <stdbool.h>

enum { QUANTITY_TEXT = 48 };

// Reads a number that is finite and not below zero; *rest is what follows it and blanks.
bool quantity_number(const char *text, double *value, const char **rest);
// Takes `unit`, with k, M, G, T or nothing before it, off the beginning of *text, blanks after it
// included, and multiplies the value. False: *text begins with something else.
bool quantity_unit(const char **text, const char *unit, double *value);
// "100 Gbit/s": six digits, the largest prefix that leaves 1 or more. Returned for printf.
const char *quantity_print(double value, const char *unit, char text[QUANTITY_TEXT]);
