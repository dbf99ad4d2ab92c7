// Arbitrary bytes as configuration of either program: either a configuration or one error message,
// and an accepted configuration requires no restart to replace itself.
#include "config/inside.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_as(const struct program *program, const uint8_t *data, size_t n)
{
	struct source source = {"f", (const char *)data, n, FILES_NONE, program};
	struct config *config;
	struct error error = {""};

	if (config_read(&config, &source, &error)) {
		if (strncmp(error.text, "f:", 2))
			abort();
		return;
	}
	if (config_needs_restart(config, config))
		abort();
	for (size_t i = 0; i < json_array_size(config_streams(config)); i++) {
		error_set(&error, 0, "streams[%zu]: size: wrong", i);
		config_place_stream(config, &error);
		if (strncmp(error.text, "f:", 2) || error.text[2] < '0' || error.text[2] > '9')
			abort();
	}
	config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	read_as(&program_forwarder, data, n);
	read_as(&program_generator, data, n);
	return 0;
}
