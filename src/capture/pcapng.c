// See pcapng.h. Capture thread.
#include "capture/pcapng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_IFACE = 1, BLOCK_PACKET = 6 };
enum { BYTE_ORDER_MAGIC = 0x1a2b3c4d, LINK_ETHERNET = 1, NANOSECONDS = 9 };
enum {
	OPTION_COMMENT = 1,
	OPTION_APPLICATION = 4,
	OPTION_NAME = 2,
	OPTION_DESCRIPTION = 3,
	OPTION_RESOLUTION = 9,
	OPTION_FLAGS = 2,
};
enum { FLAGS_IN = 1, FLAGS_OUT = 2 };
enum { TEXT_MOST = 512, HEAD_BYTES = 8 };
_Static_assert(PCAPNG_PACKET_MOST > CAPTURE_SNAP_MOST + 3 * TEXT_MOST + 200, "texts and headers");

int pcapng_open(struct pcapng *out, const struct capture_settings *settings, size_t room)
{
	*out = (struct pcapng){.settings = settings, .room = room};
	out->block = malloc(room);
	return out->block ? 0 : -ENOMEM;
}

void pcapng_close(struct pcapng *out)
{
	free(out->block);
	out->block = NULL;
}

bool pcapng_has_space(const struct pcapng *out)
{
	return out->room - out->n >= PCAPNG_PACKET_MOST;
}

static void put(struct pcapng *out, const void *bytes, size_t n)
{
	memcpy(out->block + out->n, bytes, n);
	out->n += n;
}

static void put16(struct pcapng *out, uint16_t value)
{
	put(out, &value, sizeof(value));
}

static void put32(struct pcapng *out, uint32_t value)
{
	put(out, &value, sizeof(value));
}

static void put_padded(struct pcapng *out, const void *bytes, size_t n)
{
	static const uint8_t zeros[3];

	put(out, bytes, n);
	put(out, zeros, round_up(n, 4) - n);
}

static void put_option(struct pcapng *out, uint16_t code, const void *value, uint16_t n)
{
	put16(out, code);
	put16(out, n);
	put_padded(out, value, n);
}

static void put_text(struct pcapng *out, uint16_t code, const char *text)
{
	put_option(out, code, text, strnlen(text, TEXT_MOST));
}

// Returns where the block begins, for end_block.
static size_t begin_block(struct pcapng *out, uint32_t type)
{
	const size_t start = out->n;

	put32(out, type);
	put32(out, 0);
	return start;
}

static void end_block(struct pcapng *out, size_t start)
{
	put32(out, 0); // opt_endofopt
	const uint32_t n = out->n - start + sizeof(n);

	put32(out, n);
	memcpy(out->block + start + sizeof(n), &n, sizeof(n));
}

void pcapng_begin(struct pcapng *out)
{
	const uint64_t unknown_length = UINT64_MAX;
	const size_t start = begin_block(out, BLOCK_SECTION);

	put32(out, BYTE_ORDER_MAGIC);
	put16(out, 1); // version 1.0
	put16(out, 0);
	put(out, &unknown_length, sizeof(unknown_length));
	put_text(out, OPTION_APPLICATION, "dl3d " DL3_VERSION);
	end_block(out, start);
}

static uint32_t add_iface(struct pcapng *out, const char *name, const char *description)
{
	const uint8_t resolution = NANOSECONDS;
	const size_t start = begin_block(out, BLOCK_IFACE);

	put16(out, LINK_ETHERNET);
	put16(out, 0);
	put32(out, out->settings->snap);
	put_text(out, OPTION_NAME, name);
	put_text(out, OPTION_DESCRIPTION, description);
	put_option(out, OPTION_RESOLUTION, &resolution, sizeof(resolution));
	end_block(out, start);
	return ++out->n_ifaces;
}

// `text` has TEXT_MOST bytes.
static const char *name_port(const struct pcapng *out, uint16_t port, char *text)
{
	const bool is_known = port < STATS_MAX_PORTS && out->settings->port_name[port][0];

	if (is_known)
		snprintf(text, TEXT_MOST, "%s", out->settings->port_name[port]);
	else if (port < STATS_MAX_PORTS)
		snprintf(text, TEXT_MOST, "port %u", port); // added since the capture began
	else
		snprintf(text, TEXT_MOST, "unknown port");
	return text;
}

static uint32_t add_verdict(struct pcapng *out, const struct capture_event *event)
{
	char name[TEXT_MOST];

	snprintf(name, sizeof(name), "%s:%s", event->kind == CAPTURE_DROP ? "drop" : "punt",
		verdict_name(event->verdict));
	return add_iface(out, name, verdict_text(event->verdict));
}

static uint32_t find_iface(struct pcapng *out, const struct capture_event *event)
{
	const bool is_frame = event->kind == CAPTURE_IN || event->kind == CAPTURE_OUT;
	char name[TEXT_MOST];
	uint32_t *iface = event->kind == CAPTURE_DROP ? &out->iface_of_drop[event->verdict]
	                                              : &out->iface_of_punt[event->verdict];

	if (is_frame)
		iface = &out->iface_of_port[MIN_OF(event->port, (uint16_t)STATS_MAX_PORTS)];
	if (!*iface)
		*iface = is_frame ? add_iface(out, name_port(out, event->port, name), "port")
		                  : add_verdict(out, event);
	return *iface - 1;
}

// The reason why a packet was dropped or punted, and its port.
static void put_reason(struct pcapng *out, const struct capture_event *event)
{
	char port[TEXT_MOST], text[TEXT_MOST];
	const char *what = event->kind == CAPTURE_DROP ? "dropped" : "punted to Linux";

	snprintf(text, sizeof(text), "%s: %s (port %.64s)", what, verdict_text(event->verdict),
		name_port(out, event->port, port));
	put_text(out, OPTION_COMMENT, text);
}

void pcapng_add(struct pcapng *out, const struct capture_record *record, uint64_t time_ns)
{
	const struct capture_event *event = &record->event;
	const uint32_t iface = find_iface(out, event);
	const uint32_t flags = event->kind == CAPTURE_OUT ? FLAGS_OUT : FLAGS_IN;
	const size_t start = begin_block(out, BLOCK_PACKET);

	put32(out, iface);
	put32(out, time_ns >> 32);
	put32(out, time_ns);
	put32(out, record->captured);
	put32(out, record->length);
	put_padded(out, record->bytes, record->captured);
	if (event->kind == CAPTURE_DROP || event->kind == CAPTURE_PUNT)
		put_reason(out, event);
	put_option(out, OPTION_FLAGS, &flags, sizeof(flags));
	end_block(out, start);
}
