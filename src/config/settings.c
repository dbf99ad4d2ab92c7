// The tables of all keys except those of ports, and checks beyond single values. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, field)                                                                         \
	.size = sizeof(((struct type *)0)->field), .offset = offsetof(struct type, field)

// The top level of the file; ports are read before keys that refer to them, whatever the order in
// the file.
struct top {
	const struct node *ports, *workers, *memory, *eal, *control, *taps, *flow, *acl, *qos;
	struct rest_nodes rest;
	uint16_t burst;
	uint8_t idle;
};

// Keys of both programs.
#define KEYS_OF_ALL                                                                                \
	{"ports", ROW_NODE, FIELD(top, ports)}, {"workers", ROW_NODE, FIELD(top, workers)},        \
		{"burst", ROW_NUMBER, FIELD(top, burst), .min = 1, .max = 64},                     \
		{"idle", ROW_WORD, FIELD(top, idle), .words = "sleep|poll"},                       \
		{"memory", ROW_NODE, FIELD(top, memory)}, {"eal", ROW_NODE, FIELD(top, eal)},      \
	{                                                                                          \
		"control", ROW_NODE, FIELD(top, control)                                           \
	}

static const struct row forwarder_rows[] = {
	KEYS_OF_ALL,
	{"routes", ROW_NODE, FIELD(top, rest.routes)},
	{"route_files", ROW_NODE, FIELD(top, rest.files)},
	{"neighbours", ROW_NODE, FIELD(top, rest.neighbours)},
	{"linux", ROW_NODE, FIELD(top, taps)},
	{"flow", ROW_NODE, FIELD(top, flow)},
	{"acl", ROW_NODE, FIELD(top, acl)},
	{"qos", ROW_NODE, FIELD(top, qos)},
	{"bridges", ROW_NODE, FIELD(top, rest.bridges)},
};
const struct key_table forwarder_top = {"", forwarder_rows, ARRAY_LEN(forwarder_rows)};

static const struct row generator_rows[] = {
	KEYS_OF_ALL,
	{"streams", ROW_NODE, FIELD(top, rest.streams)},
};
const struct key_table generator_top = {"", generator_rows, ARRAY_LEN(generator_rows)};

// Keys of workers of both programs; "queues" is the former name of "receives".
#define KEYS_OF_WORKERS                                                                            \
	{"core", ROW_NUMBER, FIELD(port_worker_settings, core), .min = 0, .max = CORE_MOST},       \
		{"receives", ROW_OTHER, .read = read_worker_queues},                               \
		{"queues", ROW_OTHER, .read = read_worker_queues},                                 \
	{                                                                                          \
		"idle", ROW_WORD, FIELD(port_worker_settings, idle), .words = "sleep|poll"         \
	}
enum { CORE_MOST = 4095 };

static const struct row memory_rows[] = {
	{"hugepages", ROW_WORD, FIELD(port_table_settings, huge), .words = "auto|require|never"},
	{"mib", ROW_NUMBER, FIELD(port_table_settings, memory_mib), .min = 0, .max = 1 << 20},
};
static const struct key_table memory_table = {"memory", memory_rows, ARRAY_LEN(memory_rows)};

static const struct row control_rows[] = {
	{"socket", ROW_TEXT, FIELD(config, socket), .max = CONFIG_SOCKET_MAX - 1},
	{"group", ROW_TEXT, FIELD(config, group), .max = CONFIG_GROUP_MAX - 1},
};
static const struct key_table control_table = {"control", control_rows, ARRAY_LEN(control_rows)};

static int copy_text(struct reader *reader, const struct node *node, char out[PORT_DEVICE_MAX])
{
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || !node->text[0] || strlen(node->text) >= PORT_DEVICE_MAX)
		return rows_mistake(reader, node->line,
			"%s: found %s, expected text of 1 to %d characters", reader->where,
			rows_found(node, found), PORT_DEVICE_MAX - 1);
	strcpy(out, node->text);
	return 0;
}

static int read_arg(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;

	return copy_text(reader, node, config->ports.eal_args[config->ports.n_eal_args++]);
}

static int read_plugin(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;

	return copy_text(reader, node, config->ports.plugins[config->ports.n_plugins++]);
}

static int read_args(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, PORT_MAX_EAL_ARGS, read_arg);
}

static int read_plugins(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, PORT_MAX_PLUGINS, read_plugin);
}

static const struct row eal_rows[] = {
	{"args", ROW_OTHER, .read = read_args},
	{"plugins", ROW_OTHER, .read = read_plugins},
};
static const struct key_table eal_table = {"eal", eal_rows, ARRAY_LEN(eal_rows)};

// "PORT/QUEUE"
static int read_worker_queue(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct port_worker_settings *worker = &config->ports.workers[config->ports.n_workers];
	const char *slash = node->kind == NODE_TEXT ? strchr(node->text, '/') : NULL;
	int port = slash && slash - node->text < PORT_NAME_MAX
	                   ? port_find(&config->ports, node->text, slash - node->text)
	                   : -1;
	unsigned n_queues = config->program->n_queues;
	long queue, most = (n_queues ? n_queues : PORT_MAX_QUEUES) - 1;
	char found[ROWS_FOUND_MAX];

	if (!slash || !rows_number(slash + 1, 0, most, &queue))
		return rows_mistake(reader, node->line,
			"%s: found %s, expected PORT/QUEUE like left/0 (queues 0 to %ld)",
			reader->where, rows_found(node, found), most);
	if (port < 0)
		return rows_mistake(reader, node->line,
			"%s: unknown port \"%.*s\"; expected one of the names under ports",
			reader->where, (int)MIN_OF(slash - node->text, 60), node->text);
	strcpy(worker->queues[i].port, config->ports.ports[port].name);
	worker->queues[i].queue = queue;
	worker->n_queues++;
	return 0;
}

static int read_worker_queues(struct reader *reader, const struct node *node, void *base)
{
	struct port_worker_settings *worker = base;

	if (worker->n_queues || worker->receives_nothing)
		return rows_mistake(reader, node->line,
			"%s%s: \"queues\" is the former name of \"receives\"; give only the latter",
			reader->where, node->key);
	worker->receives_nothing = !node->first;
	return rows_each(reader, node, PORT_MAX_QUEUES, read_worker_queue);
}

static int read_hand(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct port_worker_settings *worker = &config->ports.workers[config->ports.n_workers];
	char found[ROWS_FOUND_MAX];
	long core;

	if (node->kind != NODE_TEXT || !rows_number(node->text, 0, CORE_MOST, &core))
		return rows_mistake(reader, node->line,
			"%s: found %s, expected the core of another worker, 0 to %d", reader->where,
			rows_found(node, found), CORE_MOST);
	worker->hands_to[worker->n_hands_to++] = core;
	return 0;
}

static int read_hands(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, PORT_MAX_HANDS, read_hand);
}

static const struct row worker_rows[] = {
	KEYS_OF_WORKERS,
	{"hands_to", ROW_OTHER, .read = read_hands},
	{"shapes", ROW_WORD, FIELD(port_worker_settings, shapes), .words = "off|on"},
};
const struct key_table forwarder_worker = {"workers", worker_rows, ARRAY_LEN(worker_rows)};

static const struct row generator_worker_rows[] = {KEYS_OF_WORKERS};
const struct key_table generator_worker = {"workers", generator_worker_rows,
	ARRAY_LEN(generator_worker_rows)};

static int read_worker(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct port_worker_settings *worker = &config->ports.workers[i];

	worker->core = -1;
	worker->idle = config->ports.idle;
	worker->line = node->line;
	int err = rows_read(reader, node, config->program->worker, worker);
	if (!err && worker->core < 0)
		err = rows_mistake(reader, node->line,
			"%s: missing key \"core\"; expected the number of a CPU", reader->where);
	for (unsigned k = 0; !err && k < i; k++)
		if (config->ports.workers[k].core == worker->core)
			err = rows_mistake(reader, node->line,
				"%s: core %d is already used by the worker in line %d; choose "
				"another",
				reader->where, worker->core, config->ports.workers[k].line);
	config->ports.n_workers++;
	return err;
}

// A port may be given by its index; it is converted to a name here.
int settings_check_xconnects(struct reader *reader, struct port_table_settings *ports)
{
	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1)) {
		struct port_settings *port = &ports->ports[i];
		int to = port->xconnect[0]
		                 ? port_find(ports, port->xconnect, strlen(port->xconnect))
		                 : 0;

		if (to < 0)
			return rows_mistake(reader, port->line,
				"ports[%u].to: unknown port \"%s\"; expected one of the names "
				"under ports",
				i, port->xconnect);
		if (port->xconnect[0])
			strcpy(port->xconnect, ports->ports[to].name);
	}
	return 0;
}

// A map that may be missing, or present with all its keys commented out.
static int read_part(struct reader *reader, const struct node *node, const struct key_table *table,
	void *base)
{
	return !node || rows_is_empty(node) ? 0 : rows_read(reader, node, table, base);
}

static int read_all(struct reader *reader, const struct top *top, struct config *config)
{
	int err = rows_each(reader, top->ports, PORT_MAX, port_read);

	if (!err && !config->ports.n_ports)
		err = rows_mistake(reader, top->ports->line,
			"ports: found none, expected at least one");
	if (!err)
		err = settings_check_xconnects(reader, &config->ports);
	if (!err && top->workers)
		err = rows_each(reader, top->workers, STATS_MAX_WORKERS, read_worker);
	if (!err)
		err = read_part(reader, top->memory, &memory_table, &config->ports);
	if (!err)
		err = read_part(reader, top->eal, &eal_table, config);
	if (!err)
		err = read_part(reader, top->control, &control_table, config);
	if (!err && top->taps)
		err = linux_read(reader, top->taps, config);
	if (!err && top->taps)
		err = linux_check(reader, config, &top->rest);
	if (!err && top->rest.bridges)
		err = bridges_read(reader, top->rest.bridges, config);
	if (!err && top->flow)
		err = flow_read(reader, top->flow, config);
	if (!err && top->acl)
		err = acl_read(reader, top->acl, config);
	if (!err && top->qos)
		err = qos_read(reader, top->qos, config);
	return err ? err : qos_check_workers(reader, config);
}

int settings_read(struct reader *reader, const struct node *root, struct config *config,
	struct rest_nodes *rest)
{
	struct top top = {.burst = 64};
	int err = rows_read(reader, root, config->program->top, &top);

	if (err)
		return err;
	if (!top.ports)
		return rows_mistake(reader, root->line,
			"no ports; expected \"ports:\" with at least one name and device");
	config->ports.burst = top.burst;
	config->ports.idle = top.idle;
	*rest = top.rest;
	return read_all(reader, &top, config);
}

const struct key_table *settings_table(const struct program *program, unsigned i)
{
	const struct key_table *const tables[] = {program->top, program->port, program->worker,
		&memory_table, &eal_table, &control_table};

	if (i < ARRAY_LEN(tables))
		return tables[i];
	if (!program->has_taps)
		return NULL;
	i -= ARRAY_LEN(tables);
	if (i == 0)
		return &flow_keys;
	if (i == 1)
		return &flow_learn_keys;
	if (i == 2)
		return &vhost_keys;
	if (i == 3)
		return &qos_keys;
	i -= 4;
	if (acl_tables(i))
		return acl_tables(i);
	i -= N_ACL_TABLES;
	return bridge_tables(i) ? bridge_tables(i) : linux_tables(i - N_BRIDGE_TABLES);
}
