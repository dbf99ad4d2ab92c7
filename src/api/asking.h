// A client of the methods, for their tests: a house on a file, questions, answers. Test.
#pragma once

#include "api/api.h"

#include <jansson.h>

extern struct api_ctx ctx;
extern char file[]; // its configuration

void write_file(const char *text);
// A house on a file of that text, with a table and its door; fakes are reset. 0, as cmocka wants
// it.
int asking_open(const char *text);
int asking_close(void **state);

// The reply to a method: the result, or {"error": sentence}. Owner: caller.
json_t *call(const char *method, const char *params);
// Compares a value deep in a reply: `path` "verdicts.2.packets".
void expect(const json_t *reply, const char *path, const char *json);
// Calls a method and compares one value of its reply. / Some values; the last row has no path.
void check(const char *method, const char *params, const char *path, const char *json);
struct wanted {
	const char *path, *json;
};
void check_all(const char *method, const char *params, const struct wanted rows[]);
