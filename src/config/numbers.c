// Port numbers at run time: which number a port gets when the file is read again, and the running
// configuration with a port more or less. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

// The number that a port of this name has, or had before it was removed.
static int find_number(const struct port_table_settings *ports, const char *name)
{
	for (unsigned i = 0; i < ports->n_ports; i++)
		if (!strcmp(ports->ports[i].name, name))
			return i;
	return NONE;
}

// Whether a port of another name may get the number.
static bool is_free(const struct port_table_settings *now, const struct config_numbers *numbers,
	unsigned number)
{
	return !port_is_configured(now, number) && !numbers->is_kept[number];
}

static int full_error(struct error *error)
{
	return error_set(error, -ENOSPC,
		"all %d port numbers are in use, or routes still lead over ports that were "
		"removed; remove those, or restart",
		PORT_MAX);
}

// to[i]: the number for the port with number i in the file. Ports that keep theirs come first.
static int map_numbers(const struct port_table_settings *ports,
	const struct port_table_settings *now, const struct config_numbers *numbers, int to[])
{
	bool is_taken[PORT_MAX] = {false};

	for (unsigned i = 0; i < ports->n_ports; i++) {
		to[i] = find_number(now, ports->ports[i].name);
		if (to[i] != NONE)
			is_taken[to[i]] = true;
	}
	for (unsigned i = 0; i < ports->n_ports; i++) {
		for (unsigned k = 0; k < PORT_MAX && to[i] == NONE; k++)
			if (!is_taken[k] && is_free(now, numbers, k))
				to[i] = k;
		if (to[i] == NONE)
			return -ENOSPC;
		is_taken[to[i]] = true;
	}
	return 0;
}

// Numbers between those of ports keep the names of removed ones.
static int move_ports(struct port_table_settings *ports, const struct port_table_settings *now,
	const int to[])
{
	unsigned end = now->n_ports;

	for (unsigned i = 0; i < ports->n_ports; i++)
		end = MAX_OF(end, (unsigned)to[i] + 1);
	struct port_settings *moved = calloc(end, sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	for (unsigned i = 0; i < end; i++) {
		memcpy(moved[i].name, now->ports[i].name, sizeof(moved[i].name));
		moved[i].is_removed = true;
	}
	for (unsigned i = 0; i < ports->n_ports; i++)
		moved[to[i]] = ports->ports[i];
	memcpy(ports->ports, moved, end * sizeof(*moved));
	ports->n_ports = end;
	free(moved);
	return 0;
}

static void move_hop(struct fib_hop *hop, const int to[])
{
	if (hop->iface < PORT_MAX && hop->kind != FIB_GROUP) // tunnels have no port's number
		hop->iface = to[hop->iface];
}

static void move_routes(struct route_list *routes, const int to[])
{
	for (size_t i = 0; i < routes->n; i++)
		move_hop(&routes->change[i].route.hop, to);
	for (size_t i = 0; i < routes->n_labels; i++)
		move_hop(&routes->label[i].label.hop, to);
	for (size_t i = 0; i < routes->n_members; i++)
		move_hop(&routes->member[i].hop, to);
	for (size_t i = 0; i < routes->n_slots; i++) // only listed from now on
		if (routes->slot[i].addr.family)
			routes->slot[i].port = to[routes->slot[i].port];
}

int numbers_place(struct config *config, const struct config *now,
	const struct config_numbers *numbers, struct error *error)
{
	int to[PORT_MAX];

	if (map_numbers(&config->ports, &now->ports, numbers, to))
		return full_error(error);
	if (move_ports(&config->ports, &now->ports, to))
		return error_set(error, -ENOMEM, "not enough memory for the ports");
	for (unsigned i = 0; i < config->n_own; i++)
		config->own[i].port = to[config->own[i].port];
	move_routes(&config->routes, to);
	bridges_renumber(&config->bridges, to);
	return 0;
}

static struct config *copy(const struct config *now, struct error *error)
{
	struct config *config = config_create(now->path, now->program);
	const struct acl_set none = {.n_lists = 0};

	if (!config) {
		error_set(error, -ENOMEM, "not enough memory for the configuration");
		return NULL;
	}
	config->files = now->files;
	port_settings_copy(&config->ports, &now->ports);
	config->taps = now->taps;
	config->flow = now->flow;
	memcpy(config->socket, now->socket, sizeof(config->socket));
	memcpy(config->group, now->group, sizeof(config->group));
	memcpy(config->own, now->own, now->n_own * sizeof(*now->own));
	memcpy(config->own_last_bytes, now->own_last_bytes, sizeof(config->own_last_bytes));
	config->n_own = now->n_own;
	int err = acl_set_merge(&config->acl, &now->acl, &none, error);
	if (!err && (bridges_copy(&config->bridges, &now->bridges) ||
			    qos_copy(&config->qos, &now->qos)))
		err = error_set(error, -ENOMEM, "not enough memory for the configuration");
	if (err) {
		config_free(config);
		return NULL;
	}
	return config;
}

static int choose_number(const struct config *now, const struct config_numbers *numbers,
	const char *name, struct error *error)
{
	int number = find_number(&now->ports, name);

	if (number != NONE && port_is_configured(&now->ports, number))
		return error_set(error, -EEXIST,
			"port \"%s\" exists already; remove it first, or choose another name",
			name);
	for (unsigned i = 0; i < PORT_MAX && number == NONE; i++)
		if (is_free(&now->ports, numbers, i))
			number = i;
	return number == NONE ? full_error(error) : number;
}

// Reads the port into its place, beside the others.
static int read_port(struct config *config, const struct node *node, unsigned number,
	struct error *error)
{
	struct reader reader = {.where = "port", .error = error, .ctx = config};
	const struct rest_nodes none = {0};

	for (unsigned i = config->ports.n_ports; i < number; i++)
		config->ports.ports[i].is_removed = true;
	config->ports.ports[number] = (struct port_settings){.is_removed = true};
	int err = port_read(&reader, node, number);
	config->ports.ports[number].is_removed = false;
	if (!err)
		err = settings_check_xconnects(&reader, &config->ports);
	if (!err && config->taps.is_on)
		err = linux_check(&reader, config, &none);
	return err;
}

// JSON is YAML, too.
static int read_json(struct config *config, const json_t *port, unsigned number,
	struct error *error)
{
	char *text = json_dumps(port, JSON_ENSURE_ASCII);
	struct tree *tree;

	if (!text)
		return error_set(error, -ENOMEM, "not enough memory for the port");
	int err = tree_read(&tree, "port", text, strlen(text), error);
	if (!err) {
		err = read_port(config, tree_root(tree), number, error);
		tree_free(tree);
	}
	free(text);
	return err;
}

int config_with_port(struct config **out, const struct config *now, const json_t *port,
	const struct config_numbers *numbers, struct error *error)
{
	const char *name = json_string_value(json_object_get(port, "name"));
	int number = choose_number(now, numbers, name ? name : "", error);
	struct config *config = number < 0 ? NULL : copy(now, error);

	if (!config)
		return number < 0 ? number : -ENOMEM;
	int err = read_json(config, port, number, error);
	if (err)
		config_free(config);
	else
		*out = config;
	return err;
}

static int unknown_error(const struct port_table_settings *ports, const char *name,
	struct error *error)
{
	char known[200] = "";
	size_t used = 0;

	for (unsigned i = port_next(ports, 0); i < ports->n_ports && used < sizeof(known);
		i = port_next(ports, i + 1))
		used += snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
			ports->ports[i].name);
	return error_set(error, -ENOENT, "unknown port \"%.60s\"; expected one of %s", name, known);
}

static int check_removal(const struct config *config, unsigned port, struct error *error)
{
	const struct port_table_settings *ports = &config->ports;
	const char *bridge = config_bridge_of(config, port);
	unsigned n = 0;

	if (bridge)
		return error_set(error, -EBUSY,
			"port \"%s\" is in bridge \"%s\"; remove it from the bridge in the file, "
			"and "
			"reload",
			ports->ports[port].name, bridge);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1)) {
		n++;
		if (i != port && ports->ports[i].mode == PORT_XCONNECT &&
			!strcmp(ports->ports[i].xconnect, ports->ports[port].name))
			return error_set(error, -EBUSY,
				"port \"%s\" is the output of port \"%s\" (mode: xconnect); remove "
				"that one first",
				ports->ports[port].name, ports->ports[i].name);
	}
	if (n > 1)
		return 0;
	return error_set(error, -EBUSY,
		"port \"%s\" is the only one, and at least one is needed; add another first, or "
		"stop dl3d",
		ports->ports[port].name);
}

static void drop_addresses(struct config *config, unsigned port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < config->n_own; i++)
		if (config->own[i].port != port)
			config->own[n++] = config->own[i];
	config->n_own = n;
}

int config_without_port(struct config **out, const struct config *now, const char *name,
	struct error *error)
{
	int port = find_number(&now->ports, name);

	if (port == NONE || !port_is_configured(&now->ports, port))
		return unknown_error(&now->ports, name, error);
	int err = check_removal(now, port, error);
	struct config *config = err ? NULL : copy(now, error);

	if (!config)
		return err ? err : -ENOMEM;
	drop_addresses(config, port);
	config->ports.ports[port].is_removed = true;
	*out = config;
	return 0;
}
