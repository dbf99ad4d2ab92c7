// The forwarder as a whole, and the account of all packets. Control thread.
#include "verbs/inside.h"

#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>
#include <rte_version.h>
#include <unistd.h>

// Grows when a verb or field changes its meaning; new ones do not count.
enum { PROTOCOL = 1 };

void account_read(const struct verbs_house *house, struct stat_account *account)
{
	unsigned n;
	struct stat_lane *const *lanes = path_stats(house->path, &n);

	stat_sum(account, lanes, n);
}

static int64_t in_flight(const struct stat_account *a)
{
	return (int64_t)(a->received + a->injected - a->sent - a->punted - a->dropped);
}

json_t *account_json(const struct stat_account *a)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "received", (json_int_t)a->received,
		"injected", (json_int_t)a->injected, "sent", (json_int_t)a->sent, "punted",
		(json_int_t)a->punted, "dropped", (json_int_t)a->dropped, "in_flight",
		(json_int_t)in_flight(a));
}

static json_t *memory_json(const struct verbs_house *house)
{
	struct port_memory memory;

	port_memory(house->ports, &memory);
	return json_pack("{s:b, s:i, s:i, s:I, s:I}", "hugepages", memory.huge, "planned_mib",
		(int)memory.planned_mib, "mbuf_bytes", (int)memory.mbuf_bytes, "mbufs",
		(json_int_t)memory.n_mbufs, "mbufs_free", (json_int_t)memory.n_mbufs_free);
}

static void set_table(json_t *status, const struct verbs_house *house)
{
	struct fib_usage usage;

	fib_usage(house->fib, &usage);
	json_object_set_new(status, "routes",
		json_pack("{s:I, s:I}", "ip4", (json_int_t)usage.n_routes4, "ip6",
			(json_int_t)usage.n_routes6));
	json_object_set_new(status, "nexthops", number_json(usage.n_hops));
	json_object_set_new(status, "neighbours", number_json(usage.n_neighbours));
	json_t *table = json_pack("{s:I, s:I, s:I}", "lane_bytes4", (json_int_t)usage.lane_bytes4,
		"lane_bytes6", (json_int_t)usage.lane_bytes6, "lane_bytes_nexthops",
		(json_int_t)usage.lane_bytes_hops);
	json_object_set_new(table, "control_bytes", number_json(usage.control_bytes));
	json_object_set_new(table, "pending_frees", number_json(usage.pending_frees));
	json_object_set_new(status, "table", table);
}

json_t *verb_status(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct stat_account account;

	if (ctl_params_none(params, why))
		return NULL;
	account_read(house, &account);
	json_t *status = json_pack("{s:s, s:i, s:s, s:i}", "version", DL3_VERSION, "protocol",
		PROTOCOL, "dpdk", rte_version(), "pid", (int)getpid());
	json_object_set_new(status, "config", ctl_text_json(config_path(house->config)));
	json_object_set_new(status, "uptime_s",
		json_real((clock_now_ns() - house->started_ns) / 1e9));
	json_object_set_new(status, "reloads", number_json(house->n_reloads));
	json_object_set_new(status, "ports", number_json(config_ports(house->config)->n_ports));
	json_object_set_new(status, "lanes", number_json(port_n_lanes(house->ports)));
	json_object_set_new(status, "memory", memory_json(house));
	set_table(status, house);
	json_object_set_new(status, "account", account_json(&account));
	return status;
}

// What the devices lost before any lane could receive it; it stands beside the law.
static json_t *wire_json(const struct verbs_house *house)
{
	uint64_t missed = 0, no_mbuf = 0, errors = 0;

	for (unsigned i = 0; i < config_ports(house->config)->n_ports; i++) {
		struct port_info info;

		port_info(house->ports, i, &info);
		missed += info.rx_missed;
		no_mbuf += info.rx_no_mbuf;
		errors += info.rx_errors;
	}
	return json_pack("{s:I, s:I, s:I}", "rx_missed", (json_int_t)missed, "rx_no_mbuf",
		(json_int_t)no_mbuf, "rx_errors", (json_int_t)errors);
}

json_t *verb_drops(void *house, const json_t *params, struct complaint *why)
{
	struct stat_account account;

	if (ctl_params_none(params, why))
		return NULL;
	account_read(house, &account);
	json_t *drops = account_json(&account), *list = json_array();
	for (unsigned v = 0; v < N_VERDICTS; v++)
		json_array_append_new(list,
			json_pack("{s:s, s:I, s:s, s:s}", "name", verdict_name(v), "packets",
				(json_int_t)account.verdict[v], "step", verdict_step(v), "text",
				verdict_text(v)));
	json_object_set_new(drops, "verdicts", list);
	json_object_set_new(drops, "wire", wire_json(house));
	return drops;
}

void verbs_log_account(const struct verbs_house *house)
{
	struct stat_account a;

	account_read(house, &a);
	log_info("account: received %" PRIu64 ", sent %" PRIu64 ", dropped %" PRIu64
		 ", in flight %" PRId64,
		a.received, a.sent, a.dropped, in_flight(&a));
	for (unsigned v = VERDICT_FORWARD + 1; v < N_VERDICTS; v++)
		if (a.verdict[v])
			log_info("account: %" PRIu64 " %s (%s)", a.verdict[v], verdict_name(v),
				verdict_text(v));
}
