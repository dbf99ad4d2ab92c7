// CPU time for a million routes: added to the store, flushed to the fib, repeated by a dump,
// deleted; and the memory per route. Arguments: number of routes, number of next hops.
#include "netlink/fake_ifaces.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct series {
	uint32_t n, n_hop_sets;
	struct event event;
	uint64_t began_ns;
};

// CPU time of this thread, because the machine may be shared.
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void lap(struct series *series, const char *what)
{
	double ns = cpu_ns() - series->began_ns;

	printf("%-34s %8.1f ms  %6.2f M/s\n", what, ns / 1e6, series->n / ns * 1e3);
	series->began_ns = cpu_ns();
}

// As in a full BGP table, most prefixes are /24s.
static void say_all(struct series *series, bool is_delete)
{
	struct event *event = &series->event;

	event->is_delete = is_delete;
	for (uint32_t i = 0; i < series->n; i++) {
		uint32_t addr = htonl((uint32_t)(1 + i % 110) << 24 | i / 110 << 8);
		memcpy(event->route.prefix.addr.bytes, &addr, sizeof(addr));
		event->route.hop[0].ifindex = 1 + i % 6;
		event->route.hop[0].via.bytes[3] = i * 7 % series->n_hop_sets;
		routes_event(fake.routes, event);
	}
}

static void flush(struct series *series)
{
	uint64_t longest_ns = 0;
	bool has_more = true;

	while (has_more) {
		uint64_t began_ns = cpu_ns();
		has_more = routes_flush(fake.routes);
		uint64_t took_ns = cpu_ns() - began_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
	}
	lap(series, "  flushed into the fib");
	printf("    longest flush %.1f ms\n", longest_ns / 1e6);
}

static void print_memory(const struct series *series)
{
	struct netlink_info info = {0};

	routes_info(fake.routes, &info);
	printf("%.1f bytes per route\n", (double)info.control_bytes / series->n);
}

int main(int argc, char **argv)
{
	struct series series = {.n = argc > 1 ? atoi(argv[1]) : 1000000,
		.n_hop_sets = argc > 2 ? atoi(argv[2]) : 100,
		.event = {.kind = EVENT_ROUTE,
			.route = {.prefix = {.addr.family = 4, .len = 24},
				.table = RT_TABLE_MAIN,
				.type = RTN_UNICAST,
				.protocol = RTPROT_BGP,
				.metric = 20,
				.n_hops = 1,
				.hop[0] = {.via = {{10, 1, 0, 0}, 4}, .weight = 1}}}};

	fake_open();
	series.began_ns = cpu_ns();
	say_all(&series, false);
	lap(&series, "new routes");
	flush(&series);
	print_memory(&series);
	series.began_ns = cpu_ns();
	routes_dump_begins(fake.routes);
	series.event.is_dump = true;
	say_all(&series, false);
	routes_dump_ends(fake.routes, 0);
	series.event.is_dump = false;
	lap(&series, "the same by a dump, swept");
	flush(&series);
	routes_iface_changed(fake.routes, 1);
	lap(&series, "an interface has changed");
	flush(&series);
	fake_set_up(1, false);
	lap(&series, "an interface goes down");
	flush(&series);
	say_all(&series, true);
	lap(&series, "all withdrawn");
	flush(&series);
	fake_close();
	return 0;
}
