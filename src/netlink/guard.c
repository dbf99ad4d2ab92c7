// See guard.h. The rules let the same frames pass as workers leave to Linux (is_control in
// datapath/bridge_linux.c), and everything that goes to one port, since workers leave such frames
// to Linux or send them, but never both.
#include "netlink/guard.h"

#include "base/bits.h"
#include "base/log.h"
#include "netlink/guard_messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct guard {
	struct tap_table *taps;
	struct guard_messages messages;
	bool is_installed; // by us
	bool has_chain;    // the operator's
	bool is_logged;
	unsigned n; // the ports that should be guarded
	struct guard_port port[GUARD_MAX];
	bool has[GUARD_MAX]; // those of them that an operator's table has
};

struct guard *guard_open(struct tap_table *taps)
{
	struct guard *guard = calloc(1, sizeof(*guard));

	if (guard)
		guard->taps = taps;
	return guard;
}

// An end of the socket is an end of the table.
void guard_close(struct guard *guard)
{
	if (!guard)
		return;
	guard_messages_close(&guard->messages);
	free(guard);
}

static int open_here(void *arg)
{
	return guard_messages_open(arg);
}

static int connect_to_linux(struct guard *guard)
{
	if (guard->messages.socket)
		return 0;
	return tap_run_in_netns(guard->taps, open_here, &guard->messages, NULL);
}

static void log_failure(struct guard *guard, int err)
{
	if (!guard->is_logged)
		log_warn("Linux refuses the table of nftables with which workers could flood for "
			 "its bridges (%s): Linux floods; load the kernel's nf_tables, or remove a "
			 "table bridge " GUARD_TABLE " that is not of this dl3d",
			strerror(-err));
	guard->is_logged = true;
}

static bool has_same(const struct guard *guard, const struct guard_port port[], unsigned n)
{
	return guard->n == n && !memcmp(guard->port, port, n * sizeof(*port));
}

// In dl3d's own namespace. Without a table, the next call tries again.
static bool install(struct guard *guard, const struct guard_port port[], unsigned n)
{
	int err = 0;

	if (guard->is_installed ? has_same(guard, port, n) : !n)
		return true;
	err = connect_to_linux(guard);
	if (!err)
		err = guard_messages_set(&guard->messages, !guard->is_installed, port, n);
	if (err) {
		log_failure(guard, err);
		guard_messages_close(&guard->messages); // with all that it may have done
		guard->is_installed = false;
		return false;
	}
	guard->is_installed = true;
	guard->is_logged = false;
	return true;
}

// Which of two sets a name was found in.
struct search {
	struct guard *guard;
	bool in_multicasts;
	uint8_t found[GUARD_MAX]; // 1: in that of broadcasts, 2: of multicasts
};

static void take_name(void *arg, const char *name)
{
	struct search *search = arg;

	for (unsigned i = 0; i < search->guard->n; i++)
		if (!strncmp(search->guard->port[i].name, name, EVENT_NAME_MAX))
			search->found[i] |= search->in_multicasts ? 2 : 1;
}

// In an operator's namespace.
static bool look(struct guard *guard)
{
	struct search search = {.guard = guard};
	bool is_whole = true;

	guard->has_chain = !connect_to_linux(guard) && guard_messages_has_chain(&guard->messages);
	for (unsigned i = 0; i < 2 && guard->has_chain; i++) {
		search.in_multicasts = i;
		guard_messages_names(&guard->messages, i, take_name, &search);
	}
	for (unsigned i = 0; i < guard->n; i++) {
		const uint8_t wanted = guard->port[i].has_multicasts ? 3 : 1;

		guard->has[i] = (search.found[i] & wanted) == wanted;
		is_whole &= guard->has[i];
	}
	return is_whole && guard->has_chain;
}

static void remember(struct guard *guard, const struct guard_port port[], unsigned n)
{
	guard->n = n;
	memcpy(guard->port, port, n * sizeof(*port));
}

bool guard_set(struct guard *guard, const struct guard_port port[], unsigned n)
{
	bool is_set;

	if (tap_namespace_is_own(guard->taps)) {
		is_set = install(guard, port, n);
		remember(guard, port, n);
		return is_set;
	}
	if (!n) // what is missing is still told
		return true;
	remember(guard, port, n);
	return look(guard);
}

bool guard_count(struct guard *guard, uint64_t *n)
{
	if (!guard->messages.socket || !guard->n)
		return false;
	return guard_messages_count(&guard->messages, n);
}

// Those of a set that are missing: { "a", "b" }, or as many as fit, which end at `end`.
static size_t print_names(const struct guard *guard, bool multicasts, char *out, size_t bytes)
{
	size_t n = 0;

	for (unsigned i = 0; i < guard->n; i++) {
		const struct guard_port *port = &guard->port[i];

		if (guard->has[i] || (multicasts && !port->has_multicasts))
			continue;
		if (n + strlen(port->name) + 8 >= bytes)
			break;
		n += (size_t)sprintf(out + n, "%s\"%s\"", n ? ", " : "", port->name);
	}
	return n;
}

enum { NAMES_BYTES = 600 };

static void print_elements(const struct guard *guard, char *out, size_t bytes)
{
	char names[NAMES_BYTES];
	size_t n = 0;

	out[0] = 0;
	for (unsigned i = 0; i < 2; i++)
		if (print_names(guard, i, names, sizeof(names)))
			n += (size_t)snprintf(out + n, bytes - MIN_OF(n, bytes),
				" add element bridge " GUARD_TABLE " %s { %s };", guard_sets[i],
				names);
}

void guard_statement(const struct guard *guard, char *out, size_t bytes)
{
	char elements[2 * NAMES_BYTES + 128];

	out[0] = 0;
	if (tap_namespace_is_own(guard->taps) || !guard->n)
		return;
	print_elements(guard, elements, sizeof(elements));
	if (guard->has_chain && elements[0])
		snprintf(out, bytes, "nft '%s'", elements + 1);
	else if (!guard->has_chain)
		snprintf(out, bytes,
			"nft 'table bridge " GUARD_TABLE " { counter floods { }; "
			"set broadcast { type ifname; }; set multicast { type ifname; }; "
			"chain forward { type filter hook forward priority -300; "
			"ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00 accept; "
			"ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 accept; "
			"meta protocol { 0x0806, 0x8035 } accept; "
			"meta protocol ip @nh,72,8 { 2, 103 } accept; "
			"meta protocol ip6 @nh,48,8 { 0, 58 } accept; "
			"ether daddr ff:ff:ff:ff:ff:ff iifname @broadcast oifname @broadcast "
			"counter name \"floods\" drop; "
			"ether daddr != ff:ff:ff:ff:ff:ff iifname @multicast oifname @multicast "
			"counter name \"floods\" drop; }; };%s'",
			elements);
}
