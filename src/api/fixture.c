// Fake ports and workers; calls methods, for their tests. Tests only.
#include "api/fixture.h"

#include "stats/stats.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake fake;
struct api_ctx ctx;

static struct stats_worker worker_stat[2];
static struct stats_worker *const worker_stats[2] = {&worker_stat[0], &worker_stat[1]};
static struct port_worker workers[2];
static struct port_state states[PORT_MAX] = {{.mac = {2, 0, 0, 0, 0, 0xa}},
	{.mac = {2, 0, 0, 0, 0, 0xb}}};

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	memset(worker_stat, 0, sizeof(worker_stat));
	fake.refuse_change_of = fake.refuse_add_of = -1;
	workers[0] = (struct port_worker){.id = 0,
		.core = 3,
		.burst = 64,
		.n_queues = 1,
		.queues = {{.port = 1}}};
	workers[1] = (struct port_worker){.id = 1, .core = 4, .burst = 64};
}

struct stats_worker *fake_stat(unsigned worker)
{
	return &worker_stat[worker];
}

const char *datapath_step_name(unsigned step)
{
	static const char *const names[] = {"rx", "lookup"};

	return step < ARRAY_LEN(names) ? names[step] : NULL;
}

// No worker hands packets to another one.
bool datapath_hand(const struct path *path, unsigned worker, unsigned i, struct datapath_hand *out)
{
	return false;
}

int datapath_move(const struct path *path, unsigned worker, const bool slots[DATAPATH_SLOTS],
	unsigned to, struct error *error)
{
	return error_set(error, -ENOENT, "worker %u hands no packets to worker %u", worker, to);
}

bool datapath_has_moved(const struct path *path, unsigned worker)
{
	return true;
}

void datapath_drain(const struct path *path)
{
}

struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers)
{
	*n_workers = 2;
	return worker_stats;
}

int datapath_trace(const struct path *path, unsigned port, const uint8_t *frame, size_t n,
	struct trace *out, struct error *error)
{
	fake.traced_port = port;
	fake.n_traced = n;
	memcpy(fake.traced, frame, n);
	if (!fake.trace)
		return error_set(error, -ENOMEM, "not enough memory to trace");
	*out = *fake.trace;
	return 0;
}

void datapath_trace_free(struct trace *trace)
{
	trace->n_ends = 0;
}

unsigned port_n_workers(const struct port_table *ports)
{
	return 2;
}

struct port_worker *port_worker(struct port_table *ports, unsigned worker)
{
	return &workers[worker];
}

struct port_state *fake_state(unsigned port)
{
	return &states[port];
}

int port_set_promiscuous(struct port_table *ports, unsigned port, bool promiscuous,
	struct error *error)
{
	fake.is_promiscuous[port] = promiscuous;
	return 0;
}

void port_set_bridged(struct port_table *ports, unsigned port, bool is_bridged)
{
	states[port].is_bridged = is_bridged;
}

const struct port_state *port_states(const struct port_table *ports)
{
	return states;
}

bool port_workers_alive(const struct port_table *ports)
{
	return !fake.worker_has_ended;
}

void port_poll(struct port_table *ports)
{
	fake.n_polled++;
}

void port_restore(struct port_table *ports)
{
	fake.n_ports_restored++;
}

int port_change(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	if (fake.refuse_change_of == (int)port)
		return error_set(error, -EIO, "the device of %s takes no MTU of %u", settings->name,
			settings->mtu);
	fake.mtu[port] = settings->mtu;
	fake.n_changes++;
	return 0;
}

static void note_call(char letter, unsigned port)
{
	size_t n = strlen(fake.port_calls);

	snprintf(fake.port_calls + n, sizeof(fake.port_calls) - n, "%c%u ", letter, port);
}

int port_add(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	if (fake.refuse_add_of == (int)port)
		return error_set(error, -ENODEV, "ports[%u] (%s): no such device", port,
			settings->name);
	note_call('a', port);
	fake.added = *settings;
	return 0;
}

void port_begin(struct port_table *ports, unsigned port)
{
	const struct acl_view *view = acl_live_view(acl_live(ctx.acls));

	note_call('b', port);
	fake.begun_with_list = view && acl_view_list(view, ACL_IN, port);
}

void port_remove(struct port_table *ports, unsigned port)
{
	note_call('r', port);
}

int tap_add(struct tap_table *taps, unsigned port, struct error *error)
{
	if (fake.refuse_tap)
		return error_set(error, -EEXIST, "its name is taken");
	note_call('t', port);
	return 0;
}

void tap_remove(struct tap_table *taps, unsigned port)
{
	note_call('T', port);
}

void netlink_port_added(struct netlink *netlink, unsigned port)
{
	note_call('n', port);
}

void netlink_port_removed(struct netlink *netlink, unsigned port)
{
	note_call('N', port);
}

void port_info(const struct port_table *ports, unsigned port, struct port_info *out)
{
	*out = (struct port_info){.name = "?",
		.device = "?",
		.driver = "net_fake",
		.mtu = 1500,
		.n_rx_queues = 1,
		.n_tx_queues = 2,
		.link_up = port == 0,
		.device_present = !fake.device_is_gone,
		.n_losses = fake.device_is_gone,
		.numa = -1,
		.rx_missed = 5,
		.rx_no_mbuf = 6,
		.rx_errors = port ? 0 : 7,
		.uncounted = PORT_TX_ERRORS | (port ? PORT_RX_ERRORS : 0)};
	memcpy(out->mac.bytes, states[port].mac, sizeof(out->mac.bytes));
}

bool port_vhost(const struct port_table *ports, unsigned port, struct port_vhost *out)
{
	return false;
}

void port_memory(const struct port_table *ports, struct port_memory *out)
{
	*out = (struct port_memory){.planned_mib = 64,
		.mbuf_bytes = 2368,
		.n_mbufs = 1000,
		.n_mbufs_free = 900};
}

char file[] = "/tmp/methods_XXXXXX";

void write_file(const char *text)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

int fixture_open(const char *text)
{
	struct error error = {""};

	strcpy(strrchr(file, '_'), "_XXXXXX");
	close(mkstemp(file));
	fake_reset();
	ctx = (struct api_ctx){.silent_worker = -1, .wake = -1};
	write_file(text);
	if (config_load(&ctx.config, file, &error) ||
		api_build(ctx.config, port_states(NULL), &ctx.fib, &error))
		fail_msg("refused: %s", error.text);
	ctx.rcu = rcu_create(2, &error);
	ctx.live = (struct fib_live){.rcu = ctx.rcu};
	assert_non_null(ctx.rcu);
	assert_null(api_swap(&ctx, ctx.fib));
	if (api_open_acls(&ctx, &error))
		fail_msg("refused: %s", error.text);
	for (unsigned i = 0; i < PORT_MAX; i++)
		states[i].is_bridged = states[i].up = false;
	if (api_open_bridges(&ctx, FAKE_HZ, &error))
		fail_msg("refused: %s", error.text);
	return 0;
}

int fixture_close(void **state)
{
	api_close_bridges(&ctx);
	api_close_acls(&ctx);
	fib_live_swap(&ctx.live, NULL);
	rcu_destroy(ctx.rcu);
	fib_destroy(ctx.fib);
	config_free(ctx.config);
	unlink(file);
	return 0;
}

json_t *call(const char *method, const char *params)
{
	struct rpc_methods methods = {.ctx = &ctx};
	static char line[1 << 16];

	methods.table = api_table(&methods.n);
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
	char *text = rpc_answer(&methods, line, strlen(line));
	json_t *reply = json_loads(text, 0, NULL),
	       *result = json_incref(json_object_get(reply, "result"));

	assert_non_null(reply);
	if (!result)
		result = json_pack("{s:O}", "error",
			json_object_get(json_object_get(reply, "error"), "message"));
	json_decref(reply);
	free(text);
	return result;
}

void expect(const json_t *reply, const char *path, const char *json)
{
	char *steps = strdup(path), *rest = steps, *step;
	const json_t *value = reply;
	json_t *wanted = json_loads(json, JSON_DECODE_ANY, NULL);

	while ((step = strsep(&rest, ".")))
		value = json_is_array(value) ? json_array_get(value, atoi(step))
		                             : json_object_get(value, step);
	if (!value && json_is_null(wanted)) {
		json_decref(wanted);
		free(steps);
		return;
	}
	if (!json_equal(value, wanted)) {
		char *is = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

		print_error("%s is %s, not %s\n", path, is, json);
		free(is);
		fail();
	}
	json_decref(wanted);
	free(steps);
}

void check(const char *method, const char *params, const char *path, const char *json)
{
	check_all(method, params, (struct wanted[]){{path, json}, {NULL, NULL}});
}

void check_all(const char *method, const char *params, const struct wanted rows[])
{
	json_t *reply = call(method, params);

	for (; rows->path; rows++)
		expect(reply, rows->path, rows->json);
	json_decref(reply);
}
