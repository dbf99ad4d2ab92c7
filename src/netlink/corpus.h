// Tests only: a message as Linux sent it, from test/corpus/netlink.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MESSAGE_MAX = 4096 };

struct message {
	uint8_t bytes[MESSAGE_MAX] __attribute__((aligned(4)));
	size_t n;
};

// The test fails if there is no such file, or it is longer.
static inline void load(struct message *message, const char *name)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", NETLINK_CORPUS, name);
	file = fopen(path, "r");
	assert_non_null(file);
	message->n = fread(message->bytes, 1, MESSAGE_MAX, file);
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
}
