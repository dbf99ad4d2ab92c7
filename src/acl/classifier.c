// Builds the classifier of a list (rte_acl): each condition of a rule is exactly one field of the
// key that workers make of a packet, so what the classifier finds needs no second look.
// Control thread.
#include "acl/inside.h"

#include "wire/headers.h"

#include <errno.h>
#include <rte_acl.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <stdio.h>
#include <stdlib.h>

// The fields in the order in which the classifier reads them: the protocol, the words of the two
// addresses, and the others. The first one has one byte, the others come in groups of four.
enum { FIRST_ADDR = 1, WORDS4 = 1, WORDS6 = 4, N_OTHERS = 6 };
enum { MAX_FIELDS = FIRST_ADDR + 2 * WORDS6 + N_OTHERS };

RTE_ACL_RULE_DEF(acl_fields, MAX_FIELDS);

// Of a classifier; a list that takes more is refused.
static const size_t max_bytes = 1ull << 30;

// A field of the key; without `is_next`, it begins a group.
struct place {
	uint8_t kind, bytes;
	bool is_next;
	uint16_t offset;
};

#define PLACE(kind, member, is_next)                                                               \
	{                                                                                          \
		RTE_ACL_FIELD_TYPE_##kind, sizeof(((struct acl_key *)0)->member), is_next,         \
			offsetof(struct acl_key, member)                                           \
	}

static const struct place others[N_OTHERS] = {
	PLACE(RANGE, src_port_be, false),
	PLACE(RANGE, dst_port_be, true),
	PLACE(RANGE, dscp, false),
	PLACE(BITMASK, fragment, true),
	PLACE(BITMASK, tcp_flags, true),
	PLACE(BITMASK, is_local, true),
};

static void define_field(struct rte_acl_config *config, struct place place)
{
	const uint32_t i = config->num_fields++;

	config->defs[i] = (struct rte_acl_field_def){
		.type = place.kind,
		.size = place.bytes,
		.field_index = i,
		.input_index = place.is_next ? config->defs[i - 1].input_index : i,
		.offset = place.offset,
	};
}

static void define_fields(struct rte_acl_config *config, bool is_ip6)
{
	const unsigned n_words = 2 * (is_ip6 ? WORDS6 : WORDS4);

	define_field(config, (struct place)PLACE(BITMASK, proto, false));
	for (unsigned i = 0; i < n_words; i++)
		define_field(config, (struct place){RTE_ACL_FIELD_TYPE_MASK, 4, false,
					     offsetof(struct acl_key, addr) + 4 * i});
	for (unsigned i = 0; i < N_OTHERS; i++)
		define_field(config, others[i]);
}

static uint32_t load32_be(const uint8_t *from)
{
	return be32toh(load32(from));
}

// Each word of a prefix is a prefix of its own.
static struct rte_acl_field *set_prefix(struct rte_acl_field *field,
	const struct wire_prefix *prefix, unsigned n_words)
{
	for (unsigned i = 0; i < n_words; i++, field++) {
		const unsigned before = i * 32, len = prefix->addr.family ? prefix->len : 0;

		field->value.u32 = load32_be(prefix->addr.bytes + 4 * i);
		field->mask_range.u32 = len > before ? MIN_OF(len - before, 32u) : 0;
	}
	return field;
}

static struct rte_acl_field range16(const struct acl_range *range)
{
	return (struct rte_acl_field){
		.value.u16 = range->is_set ? range->least : 0,
		.mask_range.u16 = range->is_set ? range->most : UINT16_MAX,
	};
}

static struct rte_acl_field range8(const struct acl_range *range)
{
	return (struct rte_acl_field){
		.value.u8 = range->is_set ? range->least : 0,
		.mask_range.u8 = range->is_set ? range->most : UINT8_MAX,
	};
}

static struct rte_acl_field bits8(uint8_t value, uint8_t mask)
{
	return (struct rte_acl_field){.value.u8 = value & mask, .mask_range.u8 = mask};
}

// A key has one bit of the classes: those bits that a rule excludes must be 0.
static struct rte_acl_field set_fragments(uint8_t classes)
{
	return bits8(0, ACL_ANY_FRAGMENT & ~classes);
}

static void set_fields(struct rte_acl_field *field, const struct acl_rule *rule, bool is_ip6)
{
	const unsigned n_words = is_ip6 ? WORDS6 : WORDS4;
	const bool is_icmp = rule->icmp_type.is_set || rule->icmp_code.is_set;

	*field++ = bits8(rule->protocol, rule->protocol == ACL_ANY_PROTOCOL ? 0 : UINT8_MAX);
	field = set_prefix(field, &rule->from, n_words);
	field = set_prefix(field, &rule->to, n_words);
	*field++ = range16(is_icmp ? &rule->icmp_type : &rule->from_port);
	*field++ = range16(is_icmp ? &rule->icmp_code : &rule->to_port);
	*field++ = range8(&rule->dscp);
	*field++ = set_fragments(rule->fragments);
	*field++ = bits8(rule->tcp_flags, rule->tcp_mask);
	*field++ = bits8(rule->is_local, 1);
}

static bool is_of(const struct acl_rule *rule, bool is_ip6)
{
	return rule->family != (is_ip6 ? 4 : 6);
}

static int add_rules(struct rte_acl_ctx *context, const struct acl_source *source, bool is_ip6)
{
	for (size_t i = 0; i < source->n; i++) {
		struct acl_fields fields = {.data = {
						    .category_mask = 1,
						    .priority = ACL_MAX_RULES - i,
						    .userdata = i + 1,
					    }};

		if (!is_of(&source->rule[i], is_ip6))
			continue;
		set_fields(fields.field, &source->rule[i], is_ip6);
		int err = rte_acl_add_rules(context, (const void *)&fields, 1);
		if (err)
			return err;
	}
	return 0;
}

static size_t count_rules(const struct acl_source *source, bool is_ip6)
{
	size_t n = 0;

	for (size_t i = 0; i < source->n; i++)
		n += is_of(&source->rule[i], is_ip6);
	return n;
}

static int build_error(const struct acl_source *source, bool is_ip6, int err, struct error *error)
{
	const char *why = err == -ENOMEM || err == -ERANGE
	                          ? "its rules take more memory than there is for classifiers; use "
	                            "fewer rules, or fewer different port ranges"
	                          : strerror(-err);

	return error_set(error, err, "list '%s': the classifier for IPv%c cannot be built: %s",
		source->name, is_ip6 ? '6' : '4', why);
}

int classifier_make(void **out, const struct acl_source *source, bool is_ip6, struct error *error)
{
	static unsigned number; // a context with the name of another one would be that one
	struct rte_acl_config config = {.num_categories = 1, .max_size = max_bytes};
	const size_t n = count_rules(source, is_ip6);
	char name[RTE_ACL_NAMESIZE];

	*out = NULL;
	if (!n)
		return 0;
	define_fields(&config, is_ip6);
	snprintf(name, sizeof(name), "acl %u", number++);
	const struct rte_acl_param param = {.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(config.num_fields),
		.max_rule_num = n};
	struct rte_acl_ctx *context = rte_acl_create(&param);

	if (!context)
		return build_error(source, is_ip6, -rte_errno, error);
	int err = add_rules(context, source, is_ip6);
	if (!err)
		err = rte_acl_build(context, &config);
	if (err) {
		rte_acl_free(context);
		return build_error(source, is_ip6, err, error);
	}
	*out = context;
	return 0;
}

void classifier_free(void *classifier)
{
	rte_acl_free(classifier);
}
