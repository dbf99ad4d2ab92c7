// Configuration files that exist as text only. Test.
#include "config/fake_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static struct source of_forwarder(const char *text)
{
	return (struct source){"f.yaml", text, strlen(text), false, &program_forwarder};
}

static struct source of_generator(const char *text)
{
	return (struct source){"g.yaml", text, strlen(text), false, &program_generator};
}

static struct config *take(struct source source)
{
	struct config *config = NULL;
	struct complaint why = {""};

	if (config_read(&config, &source, &why))
		fail_msg("refused: %s", why.text);
	return config;
}

int fake_read(struct config **out, const char *text, struct complaint *why)
{
	struct source source = of_forwarder(text);

	return config_read(out, &source, why);
}

struct config *fake_take(const char *text)
{
	return take(of_forwarder(text));
}

int fake_read_generator(struct config **out, const char *text, struct complaint *why)
{
	struct source source = of_generator(text);

	return config_read(out, &source, why);
}

struct config *fake_take_generator(const char *text)
{
	return take(of_generator(text));
}
