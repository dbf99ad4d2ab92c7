// Any bytes as configuration: a configuration or one sentence, and what was taken needs no restart
// beside itself.
#include "config/inside.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct source source = {"f", (const char *)data, n, false};
	struct config *config;
	struct complaint why = {""};

	if (config_read(&config, &source, &why)) {
		if (strncmp(why.text, "f:", 2))
			abort();
		return 0;
	}
	if (config_needs_restart(config, config))
		abort();
	config_free(config);
	return 0;
}
