// Builds header templates and keeps those that are published. Control thread.
#include "fib/template.h"

#include "base/bits.h"
#include "fib/hops.h"
#include "rcu/rcu.h"

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

enum {
	MAX_LINES_EACH = sizeof(struct fib_template) / CACHE_LINE_BYTES,
	MAX_LINES = MAX_LINES_EACH * (FIB_MAX_HOPS + 1 + RCU_DEFER_MAX), // in use, and to be freed
	TAG = 4,
	LABEL = 4, // label 20 bits, traffic class 3, bottom of stack 1, TTL 8 (RFC 3032, 2.1)
	BOTTOM = 1 << 8,
};
static_assert(sizeof(struct fib_template) % CACHE_LINE_BYTES == 0, "whole lines");
static_assert(offsetof(struct fib_template, bytes) + FIB_TEMPLATE_SMALL == CACHE_LINE_BYTES,
	"small ones take one line");

static void append(struct fib_template *built, const void *bytes, unsigned n)
{
	assert(built->length + n <= FIB_TEMPLATE_MAX);
	memcpy(built->bytes + built->length, bytes, n);
	built->length += n;
}

// Linux, too, does not count tags against the MTU of the interface below. Those of VLANs on a
// bridge depend on the port by which a packet leaves.
static void append_tags(struct fib_template *built, const struct iface *iface)
{
	const struct iface_tags tags = iface_wire_tags(iface);

	if (iface->is_bridge)
		return;

	append(built, tags.bytes, TAG * iface->n_tags);
}

// Linux writes traffic class 0 (mpls_xmit in net/mpls/mpls_iptunnel.c, mpls_forward in
// net/mpls/af_mpls.c).
void template_append_labels(struct fib_template *built, const struct fib_hop *hop)
{
	for (unsigned i = 0; i < hop->n_labels; i++) {
		const uint32_t bottom = i + 1u == hop->n_labels ? BOTTOM : 0;
		const uint32_t word_be = htobe32(hop->label[i] << 12 | bottom | hop->label_ttl);

		append(built, &word_be, LABEL);
	}
	built->n_labels = hop->n_labels;
	built->label_ttl = hop->label_ttl;
}

static void append_labels(struct fib_template *built, const struct fib_hop *hop)
{
	static const uint8_t type[] = {0x88, 0x47};

	if (!hop->n_labels)
		return;
	append(built, type, sizeof(type));
	template_append_labels(built, hop);
	built->replaced = TEMPLATE_MACS + sizeof(type);
	built->mtu_bytes += LABEL * hop->n_labels;
}

void template_build(struct fib_template *built, const struct hop *hop, const struct iface *iface)
{
	const struct wire_mac *to = hop->key.kind == FIB_PEER ? &iface->peer : &hop->mac;

	*built = (struct fib_template){.replaced = TEMPLATE_MACS};
	append(built, to->bytes, sizeof(to->bytes));
	append(built, iface->mac.bytes, sizeof(iface->mac.bytes));
	append_tags(built, iface);
	append_labels(built, &hop->key);
}

bool template_is_plain(const struct fib_template *built)
{
	return built->length == TEMPLATE_MACS;
}

static size_t bytes_of(const struct fib_template *template)
{
	return offsetof(struct fib_template, bytes) + template->length;
}

bool templates_equal(const struct fib_template *a, const struct fib_template *b)
{
	return a->length == b->length && !memcmp(a, b, bytes_of(a));
}

int templates_open(struct blocks *pool)
{
	return blocks_open(pool, CACHE_LINE_BYTES, MAX_LINES, 1);
}

static uint32_t lines_of(const struct fib_template *template)
{
	return (bytes_of(template) + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
}

const struct fib_template *template_publish(struct blocks *pool, const struct fib_template *built)
{
	const uint32_t first = blocks_take(pool, lines_of(built));

	if (!first)
		return NULL;
	return memcpy(blocks_at(pool, first), built, bytes_of(built));
}

struct template_lines template_lines(const struct blocks *pool,
	const struct fib_template *published)
{
	const size_t at = (const uint8_t *)published - pool->memory;

	return (struct template_lines){at / CACHE_LINE_BYTES, lines_of(published)};
}
