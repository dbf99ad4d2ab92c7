// How long lists take to build, and packets to be classified: acl_bench [RULES]... (1000, 10000 and
// 65536). Rules have two random prefixes, a protocol, and a destination port or range, as firewalls
// have them; each packet matches one of them. Prints a line per list and family.
#include "acl/testing.h"

#include "wire/headers.h"

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EAL_MIB = 4096, N_KEYS = 1 << 16, N_ROUNDS = 20 };

static const char *iface_name(void *ctx, unsigned iface)
{
	return "east";
}

static struct wire_prefix draw_prefix(bool is_ip6, uint64_t *random)
{
	struct wire_prefix prefix = {{.family = is_ip6 ? 6 : 4}, 0};
	const unsigned n = is_ip6 ? 8 : 4;

	for (unsigned i = 0; i < n; i++)
		prefix.addr.bytes[i] = testing_random(random);
	prefix.len = (is_ip6 ? 32 : 16) + testing_random(random) % (is_ip6 ? 33 : 17);
	wire_prefix_mask(&prefix);
	return prefix;
}

static void draw_rule(struct acl_rule *rule, bool is_ip6, uint64_t *random)
{
	acl_rule_start(rule);
	rule->has_effect = true;
	rule->effect = testing_random(random) % 2;
	rule->from = draw_prefix(is_ip6, random);
	rule->to = draw_prefix(is_ip6, random);
	rule->protocol = testing_random(random) % 4 ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
	const uint16_t port = testing_random(random) % 1024;

	rule->to_port = (struct acl_range){port, port, true};
	if (testing_random(random) % 8 == 0)
		rule->to_port = (struct acl_range){1024, 65535, true};
	if (acl_rule_end(rule, NULL))
		abort();
}

// A packet that a random rule matches.
static void draw_key(struct acl_key *key, const struct acl_source *source, bool is_ip6,
	uint64_t *random)
{
	const struct acl_rule *rule = &source->rule[testing_random(random) % source->n];
	const size_t n = is_ip6 ? 16 : 4;

	*key = (struct acl_key){
		.proto = rule->protocol,
		.fragment = 1,
		.src_port_be = testing_random(random),
		.dst_port_be = htobe16(rule->to_port.least),
	};
	memcpy(key->addr, rule->from.addr.bytes, n);
	memcpy(key->addr + n, rule->to.addr.bytes, n);
}

static double measure(const struct acl_list *list, const struct acl_key key[], bool is_ip6)
{
	uint32_t rule[ACL_BURST];
	uint64_t best = UINT64_MAX, n_found = 0;

	for (unsigned round = 0; round < N_ROUNDS; round++) {
		const uint64_t start = rte_rdtsc();

		for (unsigned i = 0; i < N_KEYS; i += ACL_BURST) {
			acl_classify(list, is_ip6, key + i, rule, ACL_BURST);
			n_found += rule[0] > 0;
		}
		best = MIN_OF(best, rte_rdtsc() - start);
	}
	if (n_found != N_ROUNDS * N_KEYS / ACL_BURST)
		abort();
	return (double)best / N_KEYS;
}

static size_t heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(0, &stats) ? 0 : stats.heap_allocsz_bytes;
}

static void run(size_t n, bool is_ip6)
{
	const struct acl_settings settings = {.n_workers = 1,
		.iface_name = iface_name,
		.n_ifaces = 1};
	struct acl_source source = {"bench", calloc(n, sizeof(*source.rule)), n, false};
	struct acl_use use = {"east", "bench", ACL_IN};
	struct acl_key *key = calloc(N_KEYS, sizeof(*key));
	struct acl_table *table;
	struct error error;
	uint64_t random = 25;

	if (!key || !source.rule || acl_open(&table, &settings, &error))
		abort();
	for (size_t i = 0; i < n; i++)
		draw_rule(&source.rule[i], is_ip6, &random);
	const size_t before = heap_bytes();
	const int err = acl_apply(table, &(struct acl_set){&source, &use, 1, 1}, &error);

	if (err) {
		printf("%zu rules of IPv%c: %s\n", n, is_ip6 ? '6' : '4', error.text);
	} else {
		for (unsigned i = 0; i < N_KEYS; i++)
			draw_key(&key[i], &source, is_ip6, &random);
		printf("%zu rules of IPv%c: built in %.2f s, %.1f MiB, %.1f cycles per packet\n", n,
			is_ip6 ? '6' : '4', acl_list_seconds(table, "bench"),
			(heap_bytes() - before) / 1048576.0,
			measure(acl_view_list(acl_live_view(acl_live(table)), ACL_IN, 0), key,
				is_ip6));
	}
	fflush(stdout);
	acl_close(table);
	free(source.rule);
	free(key);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1000, 10000, ACL_MAX_RULES};

	if (!testing_start_eal(EAL_MIB))
		return 1;
	for (int i = 1; i < argc; i++)
		for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++)
			run(strtoul(argv[i], NULL, 10), is_ip6);
	for (size_t i = 0; argc < 2 && i < ARRAY_LEN(sizes); i++)
		for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++)
			run(sizes[i], is_ip6);
	return 0;
}
