// Configuration files in memory, for the tests of their parsers. Tests only.
#pragma once

#include "config/inside.h"

#include <stdio.h>

// The first three lines of a file.
#define PORTS "ports:\n  - {name: left, device: net_null0}\n  - {name: right, device: net_null1}\n"

// Reads text as dl3d's file f.yaml, as config_read would.
int fake_read(struct config **out, const char *text, struct error *error);
// Same for text that must be accepted. Owner: caller, config_free.
struct config *fake_take(const char *text);
// Reads text as dl3gen's file g.yaml.
int fake_read_generator(struct config **out, const char *text, struct error *error);
struct config *fake_take_generator(const char *text);

// Reads each text, which must be rejected with its error message.
struct mistake {
	const char *yaml, *sentence;
};
void fake_check_mistakes(int (*read)(struct config **, const char *, struct error *),
	const struct mistake rows[], size_t n);

// The printed text. Owner: caller, free.
char *fake_example(void (*print)(FILE *));
// Fails if it lacks a key of the program.
void fake_check_keys(const struct program *program, const char *example);
