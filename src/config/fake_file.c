// Configuration files in memory. Tests only.
#include "config/fake_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static struct source of_forwarder(const char *text)
{
	return (struct source){"f.yaml", text, strlen(text), FILES_NONE, &program_forwarder};
}

static struct source of_generator(const char *text)
{
	return (struct source){"g.yaml", text, strlen(text), FILES_NONE, &program_generator};
}

static struct config *take(struct source source)
{
	struct config *config = NULL;
	struct error error = {""};

	if (config_read(&config, &source, &error))
		fail_msg("refused: %s", error.text);
	return config;
}

int fake_read(struct config **out, const char *text, struct error *error)
{
	struct source source = of_forwarder(text);

	return config_read(out, &source, error);
}

struct config *fake_take(const char *text)
{
	return take(of_forwarder(text));
}

int fake_read_generator(struct config **out, const char *text, struct error *error)
{
	struct source source = of_generator(text);

	return config_read(out, &source, error);
}

struct config *fake_take_generator(const char *text)
{
	return take(of_generator(text));
}

void fake_check_mistakes(int (*read)(struct config **, const char *, struct error *),
	const struct mistake rows[], size_t n)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		struct config *config = NULL;
		struct error error = {""};

		if (!read(&config, rows[i].yaml, &error))
			snprintf(error.text, sizeof(error.text), "accepted");
		config_free(config);
		if (!strcmp(error.text, rows[i].sentence))
			continue;
		print_error("for:  %s\nsaid: %s\nnot:  %s\n\n", rows[i].yaml, error.text,
			rows[i].sentence);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

char *fake_example(void (*print)(FILE *))
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	print(out);
	fclose(out);
	return text;
}

// Whether a key is only taken for the sake of older files.
static bool is_former(const struct key_table *table, size_t row)
{
	return !strcmp(table->place, "workers") && !strcmp(table->rows[row].key, "queues");
}

void fake_check_keys(const struct program *program, const char *example)
{
	const struct key_table *table;
	char key[64];

	for (unsigned i = 0; (table = settings_table(program, i)); i++)
		for (size_t k = 0; k < table->n; k++) {
			snprintf(key, sizeof(key), "%s:", table->rows[k].key);
			if (is_former(table, k))
				continue;
			if (!strstr(example, key))
				fail_msg("%s.%s is not in the example", table->place,
					table->rows[k].key);
		}
}
