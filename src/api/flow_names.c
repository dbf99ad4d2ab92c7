// Names of interfaces, for lookups of many. Control thread.
#include "api/flows.h"

#include "base/hash_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct name {
	struct hash_node node;
	uint16_t iface;
	char text[IF_NAMESIZE];
};

struct flow_names {
	struct hash_table table;
};

static uint32_t hash_of(const char text[IF_NAMESIZE])
{
	return hash_table_hash((const uint8_t *)text, 0);
}

static int add(struct flow_names *names, uint16_t iface, const char *text)
{
	struct name *name = calloc(1, sizeof(*name));

	if (!name)
		return -ENOMEM;
	name->iface = iface;
	strncpy(name->text, text, sizeof(name->text) - 1);
	hash_table_insert(&names->table, &name->node, hash_of(name->text));
	return 0;
}

struct flow_names *flow_names_make(const struct api_ctx *ctx, struct error *error)
{
	enum { FIRST_BUCKETS = 64 };
	struct flow_names *names = calloc(1, sizeof(*names));
	int err = names ? hash_table_init(&names->table, FIRST_BUCKETS) : -ENOMEM;

	for (unsigned iface = 0; !err && iface < IFACE_MAX; iface++) {
		const char *text = fib_iface(ctx->fib, iface) ? iface_word(ctx, iface) : NULL;

		if (text && strlen(text) < IF_NAMESIZE)
			err = add(names, iface, text);
	}
	if (!err)
		return names;
	error_set(error, err, "not enough memory for the names of interfaces");
	flow_names_free(names);
	return NULL;
}

int flow_names_find(const struct flow_names *names, const char *text)
{
	char padded[IF_NAMESIZE] = "";

	if (strlen(text) >= sizeof(padded))
		return -1;
	strcpy(padded, text);
	const struct name *name = hash_table_find(&names->table, hash_of(padded));
	while (name && memcmp(name->text, padded, sizeof(padded)))
		name = hash_table_find_next(&name->node);
	return name ? name->iface : -1;
}

void flow_names_free(struct flow_names *names)
{
	if (!names)
		return;
	hash_table_free(&names->table, free);
	free(names);
}
