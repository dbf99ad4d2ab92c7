// Reads the whole file: bytes -> tree -> settings -> routes. Control thread.
#include "config/inside.h"
#include "config/words.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t ROUTE_FILE_MAX_BYTES = 1ul << 30;

// Text of a member of routes, neighbours or route_files.
static int want_text(struct reader *reader, const struct node *node, const char *what)
{
	char found[ROWS_FOUND_MAX];

	if (node->kind == NODE_TEXT && node->text[0])
		return 0;
	return rows_mistake(reader, node->line, "%s: found %s, expected %s", reader->where,
		rows_found(node, found), what);
}

static int read_route(struct reader *reader, const struct node *node, unsigned i)
{
	struct spot spot = {.line = node->line};
	int err =
		want_text(reader, node, "a route like \"192.0.2.0/24 via 198.51.100.1 dev left\"");

	return err ? err
	           : routes_add(reader->ctx, spot, node->text, strlen(node->text), reader->error);
}

static int read_neighbour(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct neighbour neighbour = {.spot.line = node->line};
	struct error inner;
	int err = want_text(reader, node,
		"a neighbour like \"192.0.2.2 lladdr 02:00:00:00:00:02 dev left\"");

	if (err)
		return err;
	err = neighbour_read(&config->ports, node->text, strlen(node->text), &neighbour, &inner);
	if (err < 0)
		return rows_mistake(reader, node->line, "%s", inner.text);
	return err ? 0 : routes_add_neighbour(config, &neighbour, reader->error);
}

char *config_beside(const char *path, const char *name)
{
	char *copy = strdup(path), *out = NULL;

	if (name[0] == '/')
		out = strdup(name);
	else if (copy && asprintf(&out, "%s/%s", dirname(copy), name) < 0)
		out = NULL;
	free(copy);
	return out;
}

static int read_route_file(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct error inner;
	char *bytes;
	size_t n;
	int err = want_text(reader, node, "the path of a file with routes");

	if (err)
		return err;
	char *path = config_beside(config->path, node->text);
	if (!path)
		return error_set(reader->error, -ENOMEM,
			"not enough memory for the routes; remove some");
	unsigned file = config->routes.n_files++;
	config->routes.file[file] = path;
	const struct wanted_file wanted = {path, ROUTE_FILE_MAX_BYTES, config->files};
	err = file_read(&wanted, &bytes, &n, &inner);
	if (err)
		return rows_mistake(reader, node->line, "route file %s", inner.text);
	err = routes_add_lines(config, file, bytes, n, reader->error);
	free(bytes);
	return err;
}

static int read_tree(struct reader *reader, const struct node *root, struct config *config)
{
	struct rest_nodes rest = {0};
	int err;

	if (!root || (root->kind == NODE_TEXT && !root->text[0]))
		return error_set(reader->error, -EINVAL,
			"%s: the file is empty; \"%s --example\" prints one to start from",
			reader->file, config->program->name);
	err = settings_read(reader, root, config, &rest);
	if (!err && rest.neighbours)
		err = rows_each(reader, rest.neighbours, TREE_MAX_NODES, read_neighbour);
	if (!err && rest.routes)
		err = rows_each(reader, rest.routes, TREE_MAX_NODES, read_route);
	if (!err && rest.files && config->files != FILES_NONE)
		err = rows_each(reader, rest.files, CONFIG_MAX_ROUTE_FILES, read_route_file);
	if (!err && rest.streams)
		err = streams_read(reader, rest.streams, config);
	return err;
}

struct config *config_create(const char *name, const struct program *program)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	config->program = program;
	config->path = strdup(name);
	config->routes.file[0] = strdup(name);
	config->routes.n_files = 1;
	config->own = calloc(CONFIG_MAX_ADDRESSES, sizeof(*config->own));
	tap_settings_default(&config->taps);
	strcpy(config->socket, program->socket);
	if (config->path && config->routes.file[0] && config->own)
		return config;
	config_free(config);
	return NULL;
}

int config_read(struct config **out, const struct source *source, struct error *error)
{
	struct reader reader = {.file = source->name, .error = error};
	struct tree *tree;
	int err = tree_read(&tree, source->name, source->bytes, source->n, error);

	if (err)
		return err;
	struct config *config = config_create(source->name, source->program);
	reader.ctx = config;
	if (config)
		config->files = source->files;
	err = config ? read_tree(&reader, tree_root(tree), config)
	             : error_set(error, -ENOMEM, "%s: not enough memory to read the file",
			       source->name);
	tree_free(tree);
	if (err)
		config_free(config);
	else
		*out = config;
	return err;
}

static int load(struct config **out, const struct wanted_file *file, const struct program *program,
	struct error *error)
{
	char *bytes;
	size_t n;
	int err = file_read(file, &bytes, &n, error);

	if (err)
		return err;
	err = config_read(out, &(struct source){file->path, bytes, n, file->files, program}, error);
	free(bytes);
	return err;
}

int config_load(struct config **out, const char *path, struct error *error)
{
	const struct wanted_file file = {path, TREE_MAX_BYTES, FILES_ANY};

	return load(out, &file, &program_forwarder, error);
}

int config_load_again(struct config **out, const struct config *now,
	const struct config_numbers *numbers, struct error *error)
{
	const struct wanted_file file = {now->path, TREE_MAX_BYTES, FILES_REGULAR};
	int err = load(out, &file, now->program, error);

	if (err)
		return err;
	tunnels_place(*out, now);
	vxlans_place(&(*out)->bridges, &now->bridges);
	err = numbers_place(*out, now, numbers, error);
	if (err)
		config_free(*out);
	return err;
}

int config_load_generator(struct config **out, const char *path, struct error *error)
{
	const struct wanted_file file = {path, TREE_MAX_BYTES, FILES_ANY};

	return load(out, &file, &program_generator, error);
}

void config_free(struct config *config)
{
	if (!config)
		return;
	routes_free(&config->routes);
	acl_set_free(&config->acl);
	bridges_free(&config->bridges);
	qos_free(&config->qos);
	json_decref(config->streams);
	json_decref(config->stream_lines);
	free(config->tunnels.tunnel);
	free(config->own);
	free(config->path);
	free(config);
}

void config_forget_routes(struct config *config)
{
	routes_free(&config->routes);
}

const struct port_table_settings *config_ports(const struct config *config)
{
	return &config->ports;
}

const char *config_socket(const struct config *config)
{
	return config->socket;
}

const char *config_socket_group(const struct config *config)
{
	return config->group[0] ? config->group : NULL;
}

const struct tap_settings *config_taps(const struct config *config)
{
	return &config->taps;
}

size_t config_n_routes(const struct config *config)
{
	return config->routes.n;
}

const char *config_path(const struct config *config)
{
	return config->path;
}

int config_parse_prefix(const char *text, struct wire_prefix *out)
{
	struct wire_prefix prefix = {.len = 0};
	struct error unreceived;
	struct line line = {.error = &unreceived};

	if (!line_split(&line, text, strlen(text)) || line.n != 1 ||
		line_read_prefix(&line, line.word[0], &prefix))
		return -EINVAL;
	*out = prefix;
	return 0;
}

int config_parse_route(const struct config *config, struct fib *fib, const char *text,
	struct fib_route *out, struct error *error)
{
	struct fib_member members[CONFIG_MAX_MEMBERS];
	struct route_line line;
	char via[WIRE_ADDR_TEXT];
	int err = route_read(&config->ports, text, strlen(text), &line, error);

	if (!err && line.has_tunnel)
		line.route.hop.iface = tunnels_iface(config, &line.tunnel);
	if (!err && line.has_tunnel && line.route.hop.iface == IFACE_NONE)
		return error_set(error, -EINVAL,
			"the file has no route into this tunnel; write one into it first");
	if (!err && line.is_label)
		return error_set(error, -EINVAL,
			"an MPLS label cannot be changed while running; write it into the file");
	if (err > 0)
		return error_set(error, -EINVAL,
			"empty route; expected \"PREFIX via ADDRESS dev PORT\"");
	for (unsigned i = 0; i < line.n_members && !err; i++) {
		const struct route_member *member = &line.member[i];

		if (member->has_mac)
			err = error_set(error, -EINVAL,
				"\"lladdr\" in a route that is changed while running; write the "
				"neighbour into the file");
		else if (member->hop.via.family && own_has(config, &member->hop.via))
			err = error_set(error, -EINVAL,
				"%s is an address of the router itself; expected that of a "
				"neighbour",
				wire_addr_print(&member->hop.via, via));
		members[i] = (struct fib_member){member->hop, member->weight};
	}
	if (!err && line.route.hop.kind == FIB_GROUP)
		err = fib_group(fib, members, line.n_members, &line.route.hop, error);
	if (!err)
		*out = line.route;
	return err;
}

unsigned config_addresses(const struct config *config, unsigned port, struct wire_prefix out[],
	unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < config->n_own && n < max; i++)
		if (config->own[i].port == port)
			out[n++] = (struct wire_prefix){config->own[i].addr,
				config->own[i].prefix.len};
	return n;
}
