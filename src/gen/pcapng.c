// The blocks of pcapng files.
#include "gen/pcapng.h"

#include "base/bits.h"
#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 8, TAIL_BYTES = 4, LEAST_BLOCK = HEAD_BYTES + TAIL_BYTES };
enum { MOST_BLOCK = 16 << 20, MOST_IFACES = 1 << 16, NS = 1000000000 };
enum { BYTE_ORDER_MAGIC = 0x1a2b3c4d };
enum { BLOCK_IFACE = 1, BLOCK_PACKET = 2, BLOCK_SIMPLE = 3, BLOCK_ENHANCED = 6 };
enum {
	OPTION_END,
	OPTION_FLAGS = 2,
	OPTION_NAME = 2,
	OPTION_RESOLUTION = 9,
	OPTION_FCS = 13,
	OPTION_OFFSET = 14
};
enum { FLAGS_FCS = 0xf << 5 }; // octets of FCS, 0: see the interface

// A block: what is left of its body.
struct body {
	uint32_t type;
	const uint8_t *at;
	uint32_t n;
	bool is_swapped;
};

struct option {
	uint16_t code, n;
	const uint8_t *value;
};

static uint16_t get16(const struct body *body, const uint8_t *at)
{
	return body->is_swapped ? __builtin_bswap16(load16(at)) : load16(at);
}

static uint32_t get32(const struct body *body, const uint8_t *at)
{
	return body->is_swapped ? __builtin_bswap32(load32(at)) : load32(at);
}

static uint64_t get64(const struct body *body, const uint8_t *at)
{
	return body->is_swapped ? __builtin_bswap64(load64(at)) : load64(at);
}

static void skip(struct body *body, uint32_t n)
{
	body->at += n;
	body->n -= n;
}

// The next option: 1; 0 after the last one; -EINVAL if it is longer than its block.
static int next_option(struct body *body, struct option *out)
{
	if (body->n < 4)
		return 0;
	*out = (struct option){get16(body, body->at), get16(body, body->at + 2), body->at + 4};
	if (out->code == OPTION_END)
		return 0;
	if (round_up(out->n, 4) > body->n - 4)
		return -EINVAL;
	skip(body, 4 + round_up(out->n, 4));
	return 1;
}

// if_tsresol: a power of 10, or, with the highest bit, of 2.
static bool set_resolution(struct pcapng_iface *iface, uint8_t value)
{
	unsigned power = value & 0x7f;

	if (power > (value & 0x80 ? 63 : 19))
		return false;
	iface->ticks_per_s = 1;
	while (power--)
		iface->ticks_per_s *= value & 0x80 ? 2 : 10;
	return true;
}

static bool set_option(struct pcapng_iface *iface, const struct body *body,
	const struct option *option)
{
	switch (option->code) {
	case OPTION_NAME:
		snprintf(iface->name, sizeof(iface->name), "%.*s", (int)option->n,
			(const char *)option->value);
		return true;
	case OPTION_RESOLUTION:
		return option->n == 1 && set_resolution(iface, option->value[0]);
	case OPTION_OFFSET:
		iface->offset_s = option->n == 8 ? get64(body, option->value) : 0;
		return option->n == 8;
	case OPTION_FCS: // in bits or octets: writers differ
		iface->has_fcs = option->n == 1 && option->value[0];
		return option->n == 1;
	default:
		return true;
	}
}

static int read_iface(struct pcapng *r, struct body *body, struct error *error)
{
	struct option option;
	int got;

	if (body->n < 8)
		return error_set(error, -EINVAL, "an interface block is too short");
	if (r->n_ifaces == MOST_IFACES)
		return error_set(error, -EINVAL, "more than %d interfaces", MOST_IFACES);
	if (vector_reserve(&r->iface, &r->iface_capacity, r->n_ifaces + 1, sizeof(r->iface[0])))
		return error_set(error, -ENOMEM, "not enough memory for its interfaces");
	struct pcapng_iface *iface = &r->iface[r->n_ifaces];
	*iface = (struct pcapng_iface){.number = r->n_ifaces - r->first,
		.link_type = get16(body, body->at),
		.snap_bytes = get32(body, body->at + 4),
		.ticks_per_s = 1000000};
	r->n_ifaces++;
	skip(body, 8);
	while ((got = next_option(body, &option)) > 0)
		if (!set_option(iface, body, &option))
			return error_set(error, -EINVAL, "option %u of interface %u is malformed",
				option.code, iface->number);
	return !got ? 0
	            : error_set(error, got, "an option of interface %u exceeds its block",
			      iface->number);
}

// Takes the packet's bytes from the front of `body`.
static int take_bytes(struct pcapng *r, struct body *body, struct capture_packet *out,
	struct error *error)
{
	if (out->iface >= r->n_ifaces - r->first)
		return error_set(error, -EINVAL,
			"a packet of interface %u, which has no description", out->iface);
	if (out->n_bytes > body->n)
		return error_set(error, -EINVAL, "a packet of %u bytes exceeds its block",
			out->n_bytes);
	out->iface += r->first;
	out->bytes = body->at;
	out->has_fcs = r->iface[out->iface].has_fcs;
	r->iface[out->iface].n_packets++;
	skip(body, MIN_OF(round_up(out->n_bytes, 4), (uint64_t)body->n));
	return 0;
}

static int read_flags(struct body *body, struct capture_packet *out, struct error *error)
{
	struct option option;
	int got;

	while ((got = next_option(body, &option)) > 0)
		if (option.code == OPTION_FLAGS && option.n == 4 &&
			get32(body, option.value) & FLAGS_FCS)
			out->has_fcs = true;
	return !got ? 0 : error_set(error, got, "an option of a packet exceeds its block");
}

static void set_time(const struct pcapng_iface *iface, uint64_t ticks, struct capture_packet *out)
{
	unsigned __int128 rest = ticks % iface->ticks_per_s;

	out->has_time = true;
	out->s = ticks / iface->ticks_per_s + iface->offset_s;
	out->ns = rest * NS / iface->ticks_per_s;
}

// Enhanced packets, and packets of older files, which differ in their first word.
static int read_packet(struct pcapng *r, bool is_enhanced, struct body *body,
	struct capture_packet *out, struct error *error)
{
	if (body->n < 20)
		return error_set(error, -EINVAL, "a packet block is too short");
	uint64_t ticks = (uint64_t)get32(body, body->at + 4) << 32 | get32(body, body->at + 8);

	*out = (struct capture_packet){.iface = is_enhanced ? get32(body, body->at)
	                                                    : get16(body, body->at),
		.n_bytes = get32(body, body->at + 12),
		.n_wire = get32(body, body->at + 16)};
	skip(body, 20);
	int err = take_bytes(r, body, out, error);
	if (err)
		return err;
	set_time(&r->iface[out->iface], ticks, out);
	err = read_flags(body, out, error);
	return err ? err : 1;
}

// A simple packet has neither time nor options, and belongs to the first interface.
static int read_simple(struct pcapng *r, struct body *body, struct capture_packet *out,
	struct error *error)
{
	if (body->n < 4)
		return error_set(error, -EINVAL, "a packet block is too short");
	uint32_t n = get32(body, body->at);

	*out = (struct capture_packet){.n_wire = n, .n_bytes = n};
	if (r->n_ifaces > r->first && r->iface[r->first].snap_bytes)
		out->n_bytes = MIN_OF(n, r->iface[r->first].snap_bytes);
	skip(body, 4);
	int err = take_bytes(r, body, out, error);
	return err ? err : 1;
}

static int read_section(struct pcapng *r, const struct body *body, struct error *error)
{
	if (body->n < 16)
		return error_set(error, -EINVAL, "a section header is too short");
	unsigned major = get16(body, body->at + 4), minor = get16(body, body->at + 6);

	r->first = r->n_ifaces;
	if (major == 1 && (minor == 0 || minor == 2)) // 1.2 is the same as 1.0
		return 0;
	return error_set(error, -EINVAL, "pcapng %u.%u; expected 1.0", major, minor);
}

// Reads a block into r->block. 1; 0 at the end of the file.
static int read_block(struct pcapng *r, struct body *out, struct error *error)
{
	uint8_t head[LEAST_BLOCK];
	size_t got = fread(head, 1, sizeof(head), r->file);

	if (!got && feof(r->file))
		return 0;
	if (got < sizeof(head))
		return error_set(error, -EINVAL, "the header of a block ends after %zu bytes", got);
	if (load32(head) == PCAPNG_MAGIC) {
		uint32_t magic = load32(head + HEAD_BYTES);

		r->is_swapped = magic == __builtin_bswap32(BYTE_ORDER_MAGIC);
		if (magic != BYTE_ORDER_MAGIC && !r->is_swapped)
			return error_set(error, -EINVAL, "a section has no byte order");
	}
	struct body body = {.is_swapped = r->is_swapped};
	uint32_t n = get32(&body, head + 4);

	body.type = get32(&body, head);
	if (n < LEAST_BLOCK || n % 4 || n > MOST_BLOCK)
		return error_set(error, -EINVAL, "a block has a length of %u bytes", n);
	if (vector_reserve(&r->block, &r->block_capacity, n, 1))
		return error_set(error, -ENOMEM, "not enough memory for a block of %u bytes", n);
	memcpy(r->block, head, sizeof(head));
	got += fread(r->block + got, 1, n - got, r->file);
	if (got < n)
		return error_set(error, -EINVAL, "a block of %u bytes ends after %zu", n, got);
	if (get32(&body, r->block + n - TAIL_BYTES) != n)
		return error_set(error, -EINVAL, "the lengths of a block differ");
	body.at = r->block + HEAD_BYTES;
	body.n = n - LEAST_BLOCK;
	*out = body;
	return 1;
}

int pcapng_next(struct pcapng *r, struct capture_packet *out, struct error *error)
{
	struct body body = {0};
	int got;

	while ((got = read_block(r, &body, error)) > 0) {
		got = 0;
		if (body.type == PCAPNG_MAGIC)
			got = read_section(r, &body, error);
		else if (body.type == BLOCK_IFACE)
			got = read_iface(r, &body, error);
		else if (body.type == BLOCK_ENHANCED || body.type == BLOCK_PACKET)
			got = read_packet(r, body.type == BLOCK_ENHANCED, &body, out, error);
		else if (body.type == BLOCK_SIMPLE)
			got = read_simple(r, &body, out, error);
		if (got)
			return got;
	}
	return got;
}

void pcapng_free(struct pcapng *r)
{
	free(r->block);
	free(r->iface);
	*r = (struct pcapng){0};
}
