// Formats errors. Control thread.
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *c, int err, const char *format, ...)
{
	va_list args;

	if (!c)
		return err;
	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
	for (char *p = c->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return err;
}
