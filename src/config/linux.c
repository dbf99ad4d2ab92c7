// The key `linux`: TAP interfaces, their namespace, class limits, and conflicts with other keys.
// Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

#define FIELD(type, field)                                                                         \
	.size = sizeof(((struct type *)0)->field), .offset = offsetof(struct type, field)

enum { MOST_RATE = 10000000, MOST_BURST = 65536 };

// "a/b" or ".." would refer to a path outside /run/netns.
static bool is_file_name(const char *text)
{
	return text[0] && !strchr(text, '/') && strcmp(text, ".") && strcmp(text, "..");
}

static int read_namespace(struct reader *reader, const struct node *node, void *base)
{
	struct tap_settings *taps = base;
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || !is_file_name(node->text) ||
		strlen(node->text) >= TAP_NAME_MAX)
		return rows_mistake(reader, node->line,
			"%snamespace: found %s, expected a name that \"ip netns\" lists, of 1 to "
			"%d characters",
			reader->where, rows_found(node, found), TAP_NAME_MAX - 1);
	strcpy(taps->namespace_name, node->text);
	return 0;
}

static const struct row class_rows[] = {
	{"rate", ROW_NUMBER, FIELD(tap_class_settings, rate), .min = 0, .max = MOST_RATE},
	{"burst", ROW_NUMBER, FIELD(tap_class_settings, burst), .min = 1, .max = MOST_BURST},
	{"overflow", ROW_WORD, FIELD(tap_class_settings, forwards), .words = "drop|forward"},
};
static const struct key_table class_table = {"linux.classes.CLASS", class_rows,
	ARRAY_LEN(class_rows)};

static int find_class(const char *name)
{
	int place = 0;

	while (place < N_CLASSES && strcmp(class_row(place)->name, name))
		place++;
	return place;
}

static int read_class(struct reader *reader, const struct node *node, void *base)
{
	struct tap_settings *taps = base;
	int class = find_class(node->key);
	int err = rows_read(reader, node, &class_table, &taps->class[class]);

	if (!err && taps->class[class].forwards && !class_row(class)->forwards)
		err = rows_mistake(reader, node->line,
			"%s%s.overflow: found \"forward\", expected drop: workers can forward "
			"packets of class redirect only",
			reader->where, node->key);
	return err;
}

#define CLASS_KEY(UPPER, lower, rate, burst, forwards, text) {lower, ROW_OTHER, .read = read_class},
static const struct row classes_rows[] = {SCHEMA_CLASSES(CLASS_KEY)};
static const struct key_table classes_table = {"linux.classes", classes_rows,
	ARRAY_LEN(classes_rows)};

static int read_classes(struct reader *reader, const struct node *node, void *base)
{
	return rows_is_empty(node) ? 0 : rows_read(reader, node, &classes_table, base);
}

static const struct row linux_rows[] = {
	{"namespace", ROW_OTHER, .read = read_namespace},
	{"keep", ROW_WORD, FIELD(tap_settings, keep), .words = "false|true"},
	{"classes", ROW_OTHER, .read = read_classes},
};
const struct key_table linux_table = {"linux", linux_rows, ARRAY_LEN(linux_rows)};

const struct key_table *linux_tables(unsigned i)
{
	const struct key_table *const tables[] = {&linux_table, &classes_table, &class_table};

	return i < ARRAY_LEN(tables) ? tables[i] : NULL;
}

// Our own namespace is named after the control socket, so that several instances of dl3d have one
// each; the holder listens next to the socket.
static int name_own(struct reader *reader, const struct node *node, struct config *config)
{
	static const char ending[] = ".sock";
	struct tap_settings *taps = &config->taps;
	const char *slash = strrchr(config->socket, '/');
	size_t n = strlen(config->socket), last = strlen(ending);
	char name[CONFIG_SOCKET_MAX];

	if (n > last && !strcmp(config->socket + n - last, ending))
		n -= last;
	int start = slash ? slash + 1 - config->socket : 0;
	snprintf(name, sizeof(name), "%.*s", (int)n - start, config->socket + start);
	if (!is_file_name(name) || strlen(name) >= TAP_NAME_MAX ||
		n + strlen(".hold") >= TAP_PATH_MAX)
		return rows_mistake(reader, node->line,
			"control.socket: found \"%.60s\", but the namespace of the TAP interfaces "
			"is named after this file; expected a shorter path that ends in NAME.sock",
			config->socket);
	strcpy(taps->own_namespace, name);
	snprintf(taps->hold_socket, sizeof(taps->hold_socket), "%.*s.hold", (int)n, config->socket);
	return 0;
}

int linux_read(struct reader *reader, const struct node *node, struct config *config)
{
	int err = rows_is_empty(node) ? 0 : rows_read(reader, node, &linux_table, &config->taps);

	config->taps.is_on = true;
	return err ? err : name_own(reader, node, config);
}

// Names that Linux itself uses in the directories of interfaces.
static bool is_taken(const char *name)
{
	static const char *const taken[] = {".", "..", "lo", "all", "default"};

	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (!strcmp(name, taken[i]))
			return true;
	return false;
}

// Where `ip` commands are to be given.
static const char *namespace_of(const struct config *config)
{
	const struct tap_settings *taps = &config->taps;

	return taps->namespace_name[0] ? taps->namespace_name : taps->own_namespace;
}

static int check_port(struct reader *reader, const struct config *config, unsigned i)
{
	const struct port_settings *port = &config->ports.ports[i];

	if (is_taken(port->name))
		return rows_mistake(reader, port->line,
			"ports[%u].name: \"%s\" is reserved by Linux, so the TAP interface cannot "
			"have this name; choose another",
			i, port->name);
	if (port->mode == PORT_XCONNECT)
		return rows_mistake(reader, port->line,
			"ports[%u]: \"mode: xconnect\" cannot be used with \"linux:\"; "
			"cross-connect the port in a dl3d without \"linux:\"",
			i);
	if (port->has_peer)
		return rows_mistake(reader, port->line,
			"ports[%u]: \"peer\" cannot be used with \"linux:\"; configure it in "
			"Linux: ip -n %s neigh add ADDRESS lladdr MAC dev %s",
			i, namespace_of(config), port->name);
	return 0;
}

// Rejects keys that are configured in Linux instead, and names the `ip` command for it.
static int refuse(struct reader *reader, const struct config *config, const struct node *node,
	const char *command)
{
	return !node ? 0
	             : rows_mistake(reader, node->key_line,
			       "key \"%s\" cannot be used with \"linux:\"; configure it in Linux: "
			       "ip -n %s %s",
			       node->key, namespace_of(config), command);
}

int linux_check(struct reader *reader, const struct config *config, const struct rest_nodes *rest)
{
	int err = refuse(reader, config, rest->routes, "route add PREFIX via ADDRESS");

	if (!err)
		err = refuse(reader, config, rest->files, "-batch FILE");
	if (!err)
		err = refuse(reader, config, rest->neighbours,
			"neigh add ADDRESS lladdr MAC dev PORT");
	if (!err)
		err = refuse(reader, config, rest->bridges, "link add br0 type bridge");
	if (!err && config->n_own)
		err = rows_mistake(reader, config->own[0].line,
			"key \"addresses\" cannot be used with \"linux:\"; configure it in Linux: "
			"ip -n %s address add ADDRESS/LENGTH dev %s",
			namespace_of(config), config->ports.ports[config->own[0].port].name);
	for (unsigned i = port_next(&config->ports, 0); !err && i < config->ports.n_ports;
		i = port_next(&config->ports, i + 1))
		err = check_port(reader, config, i);
	return err;
}
