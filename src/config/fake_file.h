// Configuration files that exist as text only, for the tests of their readers. Test.
#pragma once

#include "config/inside.h"

#include <stdio.h>

// A file's first three lines.
#define PORTS "ports:\n  - {name: left, device: net_null0}\n  - {name: right, device: net_null1}\n"

// Reads text as dl3d's file f.yaml, as config_read would.
int fake_read(struct config **out, const char *text, struct error *error);
// The same of text that must be accepted. Owner: caller, config_free.
struct config *fake_take(const char *text);
// Reads text as dl3gen's file g.yaml.
int fake_read_generator(struct config **out, const char *text, struct error *error);
struct config *fake_take_generator(const char *text);

// Reads each text, which must be refused with its sentence.
struct mistake {
	const char *yaml, *sentence;
};
void fake_check_mistakes(int (*read)(struct config **, const char *, struct error *),
	const struct mistake rows[], size_t n);

// What is printed. Owner: caller, free. / Fails for a key of the program that is not in it.
char *fake_example(void (*print)(FILE *));
void fake_check_keys(const struct program *program, const char *example);
