// Calls methods, for their tests: context, requests, results. Tests only.
#pragma once

#include "api/api.h"

#include <jansson.h>

extern struct api_ctx ctx;
extern char file[]; // its configuration

void write_file(const char *text);
// Creates a context from a configuration text, with a table and its rcu; resets the fakes. Returns
// 0, as required by cmocka.
int asking_open(const char *text);
int asking_close(void **state);

// The result of a method, or {"error": message}. Owner: caller.
json_t *call(const char *method, const char *params);
// Compares a nested value in a result: `path` "verdicts.2.packets".
void expect(const json_t *reply, const char *path, const char *json);
// Calls a method and compares one value of its result.
void check(const char *method, const char *params, const char *path, const char *json);
// Same for several values; the last row has no path.
struct wanted {
	const char *path, *json;
};
void check_all(const char *method, const char *params, const struct wanted rows[]);
