// Actions of flows. Each flow counts as a user of its action; one that workers may still have found
// counts until a grace period has passed, so that a number without users can be used again at once.
// Control thread; workers read `action`.
#include "flow/actions.h"

#include "base/pages.h"
#include "flow/table.h"

#include <assert.h>
#include <errno.h>

enum { FIRST_BUCKETS = 1 << 8 };

int actions_open(struct actions *actions)
{
	actions->action = pages_alloc(FLOW_ACTIONS * sizeof(*actions->action));
	actions->n_users = pages_alloc(FLOW_ACTIONS * sizeof(*actions->n_users));
	actions->node = pages_alloc(FLOW_ACTIONS * sizeof(*actions->node));
	actions->unused = pages_alloc(FLOW_ACTIONS * sizeof(*actions->unused));
	if (hash_table_init(&actions->table, FIRST_BUCKETS) || !actions->action ||
		!actions->n_users || !actions->node || !actions->unused)
		return -ENOMEM;
	return 0;
}

// Nodes are elements of an array, which is freed as a whole.
static void keep_node(void *node)
{
}

void actions_close(struct actions *actions)
{
	hash_table_free(&actions->table, keep_node);
	pages_free(actions->action, FLOW_ACTIONS * sizeof(*actions->action));
	pages_free(actions->n_users, FLOW_ACTIONS * sizeof(*actions->n_users));
	pages_free(actions->node, FLOW_ACTIONS * sizeof(*actions->node));
	pages_free(actions->unused, FLOW_ACTIONS * sizeof(*actions->unused));
}

uint64_t actions_bytes(const struct actions *actions)
{
	return actions->max * (sizeof(*actions->action) + sizeof(*actions->n_users) +
				      sizeof(*actions->node) + sizeof(*actions->unused)) +
	       actions->table.n_buckets * sizeof(*actions->table.bucket);
}

static uint32_t hash_of(const struct flow_action *action)
{
	return hash_table_hash((const uint8_t *)action, 0);
}

// 0: there is none.
static uint32_t find(const struct actions *actions, const struct flow_action *action)
{
	const struct hash_node *node = hash_table_find(&actions->table, hash_of(action));

	while (node && memcmp(&actions->action[node - actions->node], action, sizeof(*action)))
		node = hash_table_find_next(node);
	return node ? node - actions->node : 0;
}

static uint32_t take_number(struct flow_table *table)
{
	struct actions *actions = &table->actions;

	if (!actions->n_unused && actions->max == FLOW_ACTIONS - 1)
		rcu_defer_drain(&table->defer); // its last user may be waiting for workers
	if (actions->n_unused)
		return actions->unused[--actions->n_unused];
	return actions->max < FLOW_ACTIONS - 1 ? ++actions->max : 0;
}

static bool is_valid(const struct flow_action *action)
{
	return action->effect < N_FLOW_EFFECTS && action->dscp <= FLOW_KEEP_DSCP &&
	       !action->withdrawn && (action->effect == FLOW_TO_HOP) == (action->held != 0) &&
	       (action->held || !action->learnt);
}

int flow_action_use(struct flow_table *table, const struct flow_action *action, uint32_t *number,
	struct error *error)
{
	struct actions *actions = &table->actions;

	if (!is_valid(action))
		return error_set(error, -EINVAL, "invalid action of a flow");
	*number = find(actions, action);
	if (!*number) {
		*number = take_number(table);
		if (!*number)
			return error_set(error, -ENOSPC,
				"no space for another action: the table holds at most %u",
				FLOW_ACTIONS - 1);
		actions->action[*number] = *action;
		hash_table_insert(&actions->table, &actions->node[*number], hash_of(action));
		actions->n++;
	}
	actions->n_users[*number]++;
	return 0;
}

void flow_action_unuse(struct flow_table *table, uint32_t number)
{
	struct actions *actions = &table->actions;

	assert(actions->n_users[number]);
	if (--actions->n_users[number])
		return;
	hash_table_remove(&actions->table, &actions->node[number]);
	actions->n--;
	actions->unused[actions->n_unused++] = number;
	if (table->settings.action_freed)
		table->settings.action_freed(table->settings.ctx, &actions->action[number]);
}

uint32_t flow_action_find(const struct flow_table *table, const struct flow_action *action)
{
	return find(&table->actions, action);
}

const struct flow_action *flow_action_of(const struct flow_table *table, uint32_t number)
{
	if (number >= FLOW_ACTIONS || !table->actions.n_users[number])
		return NULL;
	return &table->actions.action[number];
}

uint32_t flow_actions_end(const struct flow_table *table)
{
	return table->actions.max + 1;
}

// It is not found any more, and so no flow gets it.
void flow_action_withdraw(struct flow_table *table, uint32_t number)
{
	struct flow_action *action = &table->actions.action[number];

	assert(action->learnt);
	// Pairs with the load by workers.
	__atomic_store_n(&action->withdrawn, 1, __ATOMIC_RELAXED);
	table->n_unvisited = table->end;
}
