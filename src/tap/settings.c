// Settings before anything is made: defaults.
#include "tap/tap.h"

#include <string.h>

void tap_settings_default(struct tap_settings *out)
{
	memset(out, 0, sizeof(*out));
	out->keep = true;
	snprintf(out->own_namespace, sizeof(out->own_namespace), "dl3d");
	for (unsigned c = 0; c < N_CLASSES; c++) {
		const struct class_row *row = class_row(c);

		out->class[c] = (struct tap_class_settings){row->rate, row->burst, row->forwards};
	}
}
