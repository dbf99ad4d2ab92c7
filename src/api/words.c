// Converts values to JSON and to names. Control thread.
#include "api/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 64 };

static const char *const kinds[N_FIB_KINDS] = {
	[FIB_VIA] = "via",
	[FIB_CONNECTED] = "connected",
	[FIB_PEER] = "peer",
	[FIB_GROUP] = "group",
	[FIB_LOCAL] = "local",
	[FIB_BLACKHOLE] = "blackhole",
	[FIB_UNREACHABLE] = "unreachable",
	[FIB_PROHIBIT] = "prohibit",
	[FIB_MARTIAN] = "martian",
	[FIB_LINK_LOCAL] = "link_local",
	[FIB_MULTICAST] = "multicast",
	[FIB_LINUX] = "linux",
};

const char *kind_word(unsigned kind)
{
	return kind < N_FIB_KINDS ? kinds[kind] : NULL;
}

const char *port_word(const struct api_ctx *ctx, unsigned port)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	return port < ports->n_ports ? ports->ports[port].name : NULL;
}

const char *class_word(unsigned class)
{
	return class == CLASS_CONTENT ? "content"
	       : class < N_CLASSES    ? class_row(class)->name
	                              : NULL;
}

json_t *mac_json(const struct wire_mac *mac)
{
	char text[WIRE_MAC_TEXT];

	return json_string(wire_mac_print(mac, text));
}

json_t *addr_json(const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	return addr->family ? json_string(wire_addr_print(addr, text)) : json_null();
}

json_t *prefix_json(const struct wire_prefix *prefix)
{
	char text[WIRE_PREFIX_TEXT];

	return json_string(wire_prefix_print(prefix, text));
}

static const char digits[] = "0123456789abcdef";

static int hex_digit(char c)
{
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at && *at ? at - digits : -1;
}

int hex_read(const char *text, uint8_t bytes[], int most)
{
	int n = 0;

	for (; *text; text += 2) {
		text += strspn(text, " :\n");
		if (!*text)
			break;
		const int high = hex_digit(text[0]), low = hex_digit(text[1]);

		if (high < 0 || low < 0 || n == most)
			return -EINVAL;
		bytes[n++] = high << 4 | low;
	}
	return n;
}

json_t *hex_json(const uint8_t bytes[], size_t n)
{
	char *text = malloc(2 * n + 1);
	json_t *json;

	if (!text)
		return json_null();
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	json = json_stringn(text, 2 * n);
	free(text);
	return json;
}

json_t *number_json(uint64_t number)
{
	return json_integer(number);
}

// Those that are pushed, the outermost one first.
static void set_labels(json_t *json, const struct fib_hop *hop)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < hop->n_labels; i++)
		json_array_append_new(list, json_integer(hop->label[i]));
	json_object_set_new(json, "labels", list);
	if (hop->label_ttl)
		json_object_set_new(json, "label_ttl", json_integer(hop->label_ttl));
}

void set_hop(json_t *json, const struct api_ctx *ctx, const struct fib_hop *hop)
{
	json_object_set_new(json, "kind", rpc_text_json(kind_word(hop->kind)));
	json_object_set_new(json, "via", hop->kind == FIB_VIA ? addr_json(&hop->via) : json_null());
	json_object_set_new(json, "port", rpc_text_json(port_of_iface(ctx, hop->iface)));
	json_object_set_new(json, "interface", rpc_text_json(iface_word(ctx, hop->iface)));
	if (hop->n_labels)
		set_labels(json, hop);
}

unsigned set_members(json_t *json, const struct api_ctx *ctx, const struct fib_hop *hop)
{
	struct fib_member members[MAX_MEMBERS];

	if (hop->kind != FIB_GROUP)
		return 0;
	unsigned n = fib_group_members(ctx->fib, hop, members, MAX_MEMBERS);
	json_t *list = json_array();
	for (unsigned i = 0; i < n && i < MAX_MEMBERS; i++) {
		json_t *member = json_pack("{s:i}", "weight", (int)members[i].weight);

		set_hop(member, ctx, &members[i].hop);
		json_array_append_new(list, member);
	}
	json_object_set_new(json, "members", list);
	return n;
}
