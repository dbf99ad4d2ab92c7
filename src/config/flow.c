// The key `flow`: sizes, timeouts and files of the flow table. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field)                                                                               \
	.size = sizeof(((struct config_flow *)0)->field),                                          \
	.offset = offsetof(struct config_flow, field)

enum { MAX_SECONDS = FLOW_MAX_LASTS_MS / 1000 };

// Relative names are resolved against the directory of the configuration file.
static int read_path(struct reader *reader, const struct node *node, char out[CONFIG_PATH_MAX])
{
	const struct config *config = reader->ctx;
	const struct row row = {node->key, ROW_TEXT, .max = CONFIG_PATH_MAX - 1};
	char text[CONFIG_PATH_MAX];
	int err = rows_text(reader, node, &row, text);

	if (err)
		return err;
	char *path = config_beside(config->path, text);
	if (!path)
		return error_set(reader->error, -ENOMEM, "%s: not enough memory to read the file",
			reader->file);
	if (strlen(path) < CONFIG_PATH_MAX)
		strcpy(out, path);
	else
		err = rows_mistake(reader, node->line,
			"%s%s: the path is longer than %d characters with the folder of this file; "
			"expected a shorter one",
			reader->where, node->key, CONFIG_PATH_MAX - 1);
	free(path);
	return err;
}

static int read_file(struct reader *reader, const struct node *node, void *base)
{
	return read_path(reader, node, ((struct config_flow *)base)->file);
}

static int read_ended_file(struct reader *reader, const struct node *node, void *base)
{
	return read_path(reader, node, ((struct config_flow *)base)->ended_file);
}

static int read_timeout(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct config_flow *flow = &config->flow;
	char found[ROWS_FOUND_MAX];
	long seconds;

	if (node->kind != NODE_TEXT || !rows_number(node->text, 1, MAX_SECONDS, &seconds))
		return rows_mistake(reader, node->line,
			"%s: found %s, expected a number of seconds from 1 to %d", reader->where,
			rows_found(node, found), MAX_SECONDS);
	for (unsigned k = 0; k < i; k++)
		if (flow->timeout_s[k] == seconds)
			return rows_mistake(reader, node->line,
				"%s: %ld is the same as flow.timeouts[%u]; remove one",
				reader->where, seconds, k);
	flow->timeout_s[i] = seconds;
	return 0;
}

static int read_timeouts(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, FLOW_TIMEOUTS, read_timeout);
}

#define LEARN(field)                                                                               \
	.size = sizeof(((struct config_learn *)0)->field),                                         \
	.offset = offsetof(struct config_learn, field)

enum { LEARN_RATE = 100000, LEARN_MAX_RATE = 1000000 };

static const struct row learn_rows[] = {
	{"timeout", ROW_NUMBER, LEARN(timeout_s), .min = 1, .max = MAX_SECONDS},
	{"rate", ROW_NUMBER, LEARN(rate), .min = 1, .max = LEARN_MAX_RATE},
	{"per_vrf", ROW_NUMBER, LEARN(per_vrf), .min = 1, .max = FLOW_MAX},
	{"per_interface", ROW_NUMBER, LEARN(per_interface), .min = 1, .max = FLOW_MAX},
};
const struct key_table flow_learn_keys = {"flow.learn", learn_rows, ARRAY_LEN(learn_rows)};

static int read_learn(struct reader *reader, const struct node *node, void *base)
{
	struct config_learn *learn = &((struct config_flow *)base)->learn;

	learn->rate = LEARN_RATE;
	int err = rows_is_empty(node) ? 0 : rows_read(reader, node, &flow_learn_keys, learn);
	if (err || learn->timeout_s)
		return err;
	return rows_mistake(reader, node->line,
		"flow.learn: missing \"timeout\"; expected one of flow.timeouts");
}

static bool has_timeout(const struct config_flow *flow, uint32_t timeout_s)
{
	for (unsigned i = 0; i < FLOW_TIMEOUTS && flow->timeout_s[i]; i++)
		if (flow->timeout_s[i] == timeout_s)
			return true;
	return false;
}

static const struct row flow_rows[] = {
	{"ipv4", ROW_NUMBER, FIELD(max4), .min = 0, .max = FLOW_MAX},
	{"ipv6", ROW_NUMBER, FIELD(max6), .min = 0, .max = FLOW_MAX},
	{"missing", ROW_WORD, FIELD(drops_missing), .words = "route|drop"},
	{"timeouts", ROW_OTHER, .read = read_timeouts},
	{"file", ROW_OTHER, .read = read_file},
	{"ended_file", ROW_OTHER, .read = read_ended_file},
	{"learn", ROW_OTHER, .read = read_learn},
};
const struct key_table flow_keys = {"flow", flow_rows, ARRAY_LEN(flow_rows)};

int flow_read(struct reader *reader, const struct node *node, struct config *config)
{
	struct config_flow *flow = &config->flow;
	int err = rows_is_empty(node) ? 0 : rows_read(reader, node, &flow_keys, flow);

	if (err)
		return err;
	const uint64_t max = (uint64_t)flow->max4 + flow->max6;

	if (!max)
		return rows_mistake(reader, node->line,
			"flow: no flows; expected \"ipv4\" or \"ipv6\" with how many there may be");
	if (max > FLOW_MAX)
		return rows_mistake(reader, node->line,
			"flow: ipv4 and ipv6 are %llu together, expected at most %d",
			(unsigned long long)max, FLOW_MAX);
	if (flow->file[0] && !strcmp(flow->file, flow->ended_file))
		return rows_mistake(reader, node->line,
			"flow: \"file\" and \"ended_file\" are the same; expected two files");
	if (flow->learn.timeout_s && !has_timeout(flow, flow->learn.timeout_s))
		return rows_mistake(reader, node->line,
			"flow.learn.timeout is %u; expected one of flow.timeouts",
			flow->learn.timeout_s);
	return 0;
}

const struct config_flow *config_flow(const struct config *config)
{
	const struct config_flow *flow = &config->flow;

	return flow->max4 || flow->max6 ? flow : NULL;
}
