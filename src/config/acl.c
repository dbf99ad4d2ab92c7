// The key `acl`: access lists, from the file itself or files of their own, and where they are used.
// Control thread.
#include "config/inside.h"

#include "base/bits.h"
#include "base/vector.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST_BYTES = 32 << 20, KEY_MAX = 64 };

// A list while it is read.
struct list {
	struct acl_source source;
	size_t capacity;
	const struct node *rules, *file;
	uint8_t denies_rest;
};

static int no_memory(const struct reader *reader)
{
	return error_set(reader->error, -ENOMEM, "%s: not enough memory to read the file",
		reader->file);
}

// Space for one rule more; NULL with `error` set.
static struct acl_rule *next_rule(struct reader *reader, struct list *list)
{
	if (vector_reserve(&list->source.rule, &list->capacity, list->source.n + 1,
		    sizeof(*list->source.rule))) {
		no_memory(reader);
		return NULL;
	}
	return &list->source.rule[list->source.n++];
}

static int check_once(const struct node *node, struct error *inner)
{
	for (const struct node *other = node->next; other; other = other->next)
		if (!strcmp(other->key, node->key))
			return error_set(inner, -EINVAL, "duplicate key \"%.60s\"; remove one",
				node->key);
	return 0;
}

static int read_value(const struct node *node, const char *key, struct acl_rule *rule,
	struct error *inner)
{
	int err = check_once(node, inner);

	if (!err && node->kind != NODE_TEXT)
		err = error_set(inner, -EINVAL, "%.40s: expected a word or a number", key);
	return err ? err : acl_rule_set(rule, key, node->text, inner);
}

// The key `rate` of `police` is "police.rate".
static int read_parts(const struct node *node, struct acl_rule *rule, struct error *inner,
	int *line)
{
	int err = check_once(node, inner);
	char key[KEY_MAX];

	if (!err && !node->first)
		err = error_set(inner, -EINVAL, "%.30s: expected its keys, such as %.30s.rate",
			node->key, node->key);
	for (const struct node *part = node->first; part && !err; part = part->next) {
		snprintf(key, sizeof(key), "%.30s.%.30s", node->key, part->key);
		*line = part->key_line;
		err = read_value(part, key, rule, inner);
	}
	return err;
}

static int read_map(const struct node *node, struct acl_rule *rule, struct error *inner, int *line)
{
	int err = 0;

	acl_rule_start(rule);
	for (const struct node *key = node->first; key && !err; key = key->next) {
		*line = key->key_line;
		err = key->kind == NODE_MAP ? read_parts(key, rule, inner, line)
		                            : read_value(key, key->key, rule, inner);
	}
	if (err)
		return err;
	*line = node->line;
	return acl_rule_end(rule, inner);
}

static int read_rule(struct reader *reader, const struct node *node, struct list *list)
{
	struct acl_rule *rule = next_rule(reader, list);
	int line = node->line, err = -EINVAL;
	struct error inner = {"expected a rule: text, or a map of its keys"};

	if (!rule)
		return -ENOMEM;
	if (node->kind == NODE_MAP)
		err = read_map(node, rule, &inner, &line);
	else if (node->kind == NODE_TEXT)
		err = acl_rule_parse(rule, node->text, &inner);
	if (err)
		rows_mistake(reader, line, "%s%s[%zu]: %s", reader->where, list->source.name,
			list->source.n - 1, inner.text);
	return err;
}

static int read_rules(struct reader *reader, const struct node *node, struct list *list)
{
	int err = 0;

	if (node->kind != NODE_LIST && !rows_is_empty(node))
		return rows_mistake(reader, node->line,
			"%s%s: expected a list of rules, or a map with rules or file, and default",
			reader->where, list->source.name);
	for (const struct node *rule = node->first; rule && !err; rule = rule->next)
		err = read_rule(reader, rule, list);
	return err;
}

// One line of a file of rules; blank ones and comments are skipped.
static int read_line(struct reader *reader, const char *path, unsigned number, char *text,
	struct list *list)
{
	struct error inner;

	text[strcspn(text, "#\r")] = 0;
	if (!text[strspn(text, " \t")])
		return 0;
	struct acl_rule *rule = next_rule(reader, list);

	if (!rule)
		return -ENOMEM;
	if (acl_rule_parse(rule, text, &inner))
		return error_set(reader->error, -EINVAL, "%s:%u: %s", path, number, inner.text);
	return 0;
}

static int read_lines(struct reader *reader, const char *path, char *bytes, size_t n,
	struct list *list)
{
	unsigned number = 1;
	int err = 0;

	if (memchr(bytes, 0, n))
		return error_set(reader->error, -EINVAL, "%s: has NUL bytes; expected text", path);
	for (char *line = bytes; line && !err; number++) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = 0;
		err = read_line(reader, path, number, line, list);
		line = next;
	}
	return err;
}

static int read_file(struct reader *reader, const struct node *node, struct list *list)
{
	const struct config *config = reader->ctx;
	char *path, *bytes;
	size_t n;

	if (node->kind != NODE_TEXT || !node->text[0])
		return rows_mistake(reader, node->line, "%s%s.file: expected the name of a file",
			reader->where, list->source.name);
	if (config->files == FILES_NONE)
		return 0;
	path = config_beside(config->path, node->text);
	if (!path)
		return no_memory(reader);
	const struct wanted_file file = {path, MAX_LIST_BYTES, config->files};
	int err = file_read(&file, &bytes, &n, reader->error);

	if (!err) {
		err = read_lines(reader, path, bytes, n, list);
		free(bytes);
	}
	free(path);
	return err;
}

static const struct row list_rows[] = {
	{"rules", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct list, rules)},
	{"file", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct list, file)},
	{"default", ROW_WORD, .size = 1, .offset = offsetof(struct list, denies_rest),
		.words = "permit|deny"},
};
static const struct key_table list_table = {"acl.lists.LIST", list_rows, ARRAY_LEN(list_rows)};

static int read_list_map(struct reader *reader, const struct node *node, struct list *list)
{
	int err = rows_read(reader, node, &list_table, list);

	if (err)
		return err;
	if (!list->rules == !list->file)
		return rows_mistake(reader, node->line, "%s%s: expected either rules or file",
			reader->where, list->source.name);
	list->source.denies_rest = list->denies_rest;
	return list->rules ? read_rules(reader, list->rules, list)
	                   : read_file(reader, list->file, list);
}

static int read_list(struct reader *reader, const struct node *node, struct acl_set *set)
{
	struct list list = {.source = {.n = 0}};
	struct acl_rule rule;
	struct error inner;
	int err;

	acl_rule_start(&rule);
	if (acl_rule_set(&rule, "name", node->key, &inner))
		return rows_mistake(reader, node->key_line, "%s%.60s: %s", reader->where, node->key,
			inner.text);
	memcpy(list.source.name, rule.name, sizeof(rule.name));
	if (node->kind == NODE_MAP)
		err = read_list_map(reader, node, &list);
	else
		err = read_rules(reader, node, &list);
	if (!err && !list.source.rule) { // a list without rules is one, too
		err = next_rule(reader, &list) ? 0 : -ENOMEM;
		list.source.n = 0;
	}
	if (err) {
		free(list.source.rule);
		return err;
	}
	set->list[set->n_lists++] = list.source;
	return 0;
}

static size_t count(const struct node *node)
{
	size_t n = 0;

	for (const struct node *child = node ? node->first : NULL; child; child = child->next)
		n++;
	return n;
}

static int read_lists(struct reader *reader, const struct node *node, struct acl_set *set)
{
	int err = 0;

	if (node->kind != NODE_MAP && !rows_is_empty(node))
		return rows_mistake(reader, node->line, "acl.lists: expected a map of lists");
	set->list = calloc(count(node) + 1, sizeof(*set->list));
	if (!set->list)
		return no_memory(reader);
	snprintf(reader->where, sizeof(reader->where), "acl.lists.");
	for (const struct node *list = node->first; list && !err; list = list->next)
		err = read_list(reader, list, set);
	return err;
}

#define USE(field)                                                                                 \
	.size = sizeof(((struct acl_use *)0)->field), .offset = offsetof(struct acl_use, field)

static const struct row use_rows[] = {
	{"interface", ROW_TEXT, USE(iface), .max = ACL_NAME_MAX - 1},
	{"direction", ROW_WORD, USE(direction), .words = "in|out"},
	{"list", ROW_TEXT, USE(list), .max = ACL_NAME_MAX - 1},
};
static const struct key_table use_table = {"acl.use[i]", use_rows, ARRAY_LEN(use_rows)};

static int read_use(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct acl_use *use = &config->acl.use[i];

	use->direction = ACL_DIRECTIONS;
	config->acl.n_uses = i + 1;
	int err = rows_read(reader, node, &use_table, use);

	if (!err && (!use->iface[0] || !use->list[0] || use->direction == ACL_DIRECTIONS))
		err = rows_mistake(reader, node->line,
			"acl.use[%u]: expected interface, direction and list", i);
	return err;
}

struct top {
	const struct node *lists, *use;
};
static const struct row acl_rows[] = {
	{"lists", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct top, lists)},
	{"use", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct top, use)},
};
static const struct key_table acl_table = {"acl", acl_rows, ARRAY_LEN(acl_rows)};

const struct key_table *acl_tables(unsigned i)
{
	const struct key_table *const tables[] = {&acl_table, &list_table, &use_table};

	static_assert(ARRAY_LEN(tables) == N_ACL_TABLES, "all of them");
	return i < N_ACL_TABLES ? tables[i] : NULL;
}

// The port of this name; NULL: none.
static const struct port_settings *port_named(const struct config *config, const char *name)
{
	const struct port_table_settings *ports = &config->ports;

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		if (!strcmp(ports->ports[i].name, name))
			return &ports->ports[i];
	return NULL;
}

int config_check_acl_uses(const struct config *config, const struct acl_set *set,
	struct error *error)
{
	for (size_t i = 0; i < set->n_uses; i++) {
		const struct acl_use *use = &set->use[i];
		const struct port_settings *port =
			use->list[0] ? port_named(config, use->iface) : NULL;

		if (port && config_bridge_of(config, port - config->ports.ports))
			return error_set(error, -EINVAL,
				"interface '%s' uses list '%s', but no list judges the frames of a "
				"port in a bridge",
				use->iface, use->list);
		if (port && port->mode == PORT_XCONNECT)
			return error_set(error, -EINVAL,
				"interface '%s' uses list '%s', but no list judges the frames of a "
				"port with mode: xconnect",
				use->iface, use->list);
	}
	return 0;
}

static int check_mirrors(const struct config *config, const struct acl_source *list,
	struct error *error)
{
	const char *latest = "";

	for (size_t i = 0; i < list->n; i++) {
		const char *mirror = list->rule[i].mirror;

		if (mirror[0] && strcmp(mirror, latest) && !port_named(config, mirror))
			return error_set(error, -EINVAL,
				"list '%s', rule %zu: mirror: there is no port '%s'; copies leave "
				"by "
				"ports, not by VLANs",
				list->name, i + 1, mirror);
		latest = mirror;
	}
	return 0;
}

int config_check_acl_mirrors(const struct config *config, const struct acl_set *set,
	struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < set->n_lists && !err; i++)
		err = check_mirrors(config, &set->list[i], error);
	return err;
}

int acl_read(struct reader *reader, const struct node *node, struct config *config)
{
	struct acl_set *set = &config->acl;
	struct top top = {NULL, NULL};
	struct error inner;

	if (rows_is_empty(node))
		return 0;
	int err = rows_read(reader, node, &acl_table, &top);

	if (!err && top.lists)
		err = read_lists(reader, top.lists, set);
	if (!err && top.use) {
		set->use = calloc(count(top.use) + 1, sizeof(*set->use));
		snprintf(reader->where, sizeof(reader->where), "acl.");
		err = set->use ? rows_each(reader, top.use, ACL_MAX_USES, read_use)
		               : no_memory(reader);
	}
	reader->where[0] = 0;
	if (!err && (acl_set_check(set, &inner) || acl_set_check_buckets(set, &inner) ||
			    config_check_acl_uses(config, set, &inner) ||
			    config_check_acl_mirrors(config, set, &inner)))
		err = rows_mistake(reader, node->line, "acl: %s", inner.text);
	return err;
}

const struct acl_set *config_acl(const struct config *config)
{
	return &config->acl;
}
