// Rules as lines of text. Any thread.
#include "acl/inside.h"
#include "acl/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = 48 };

static const char separators[] = " \t\r\n";

// The words of a line, at most MAX_WORDS; returns how many.
static unsigned split(char *line, char *word[])
{
	char *rest = NULL;
	unsigned n = 0;

	for (char *next = strtok_r(line, separators, &rest); next && n < MAX_WORDS;
		next = strtok_r(NULL, separators, &rest))
		word[n++] = next;
	return n;
}

// Keys and values, up to word[n], which is NULL.
static int read_words(struct acl_rule *rule, char *word[], struct error *error)
{
	uint32_t seen = 0;
	int err = 0;

	while (*word && !err) {
		const char *key = strcmp(*word, "port") ? *word : "to_port";
		const char *value = strcmp(*word++, "local") ? *word++ : "true";
		const int number = rule_key(key);

		if (number >= 0 && seen >> number & 1)
			return error_set(error, -EINVAL, "key '%s' twice", key);
		if (!value && number < 0)
			return error_set(error, -EINVAL, "unknown protocol or key '%.40s'", key);
		if (!value)
			return error_set(error, -EINVAL, "'%.40s' needs a value", key);
		seen |= number >= 0 ? 1u << number : 0;
		err = acl_rule_set(rule, key, value, error);
	}
	return err;
}

int acl_rule_parse(struct acl_rule *rule, const char *text, struct error *error)
{
	char line[ACL_RULE_TEXT], *word[MAX_WORDS + 2] = {NULL};

	acl_rule_start(rule);
	if (strlen(text) >= sizeof(line))
		return error_set(error, -EINVAL, "rule of more than %d bytes", ACL_RULE_TEXT - 1);
	memcpy(line, text, strlen(text) + 1);
	if (!split(line, word))
		return error_set(error, -EINVAL, "empty rule");
	if (acl_rule_set(rule, "do", word[0], NULL))
		return error_set(error, -EINVAL,
			"invalid rule \"%.60s\": expected permit, deny, reject or punt first",
			word[0]);
	const bool has_protocol = word[1] && !acl_rule_set(rule, "protocol", word[1], NULL);
	int err = read_words(rule, word + 1 + has_protocol, error);

	return err ? err : acl_rule_end(rule, error);
}

const char *acl_effect_word(enum acl_effect effect)
{
	return words_text(&acl_effects, effect);
}

// Text that grows; what does not fit is left out.
struct text {
	char *at;
	size_t room;
};

static void __attribute__((format(printf, 2, 3))) append(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text->at, text->room, format, args);
	va_end(args);
	n = MIN_OF(n, (int)text->room - 1);
	text->at += n;
	text->room -= n;
}

static void print_range(struct text *out, const char *key, const struct acl_range *range)
{
	if (!range->is_set)
		return;
	append(out, " %s %u", key, range->least);
	if (range->most != range->least)
		append(out, "-%u", range->most);
}

static void print_prefix(struct text *out, const char *key, const struct wire_prefix *prefix)
{
	char text[WIRE_PREFIX_TEXT];

	if (prefix->addr.family)
		append(out, " %s %s", key, wire_prefix_print(prefix, text));
}

static void print_flags(struct text *out, const struct acl_rule *rule)
{
	const char *before = " tcp_flags ";

	for (size_t i = 0; i < acl_flags.n; i++) {
		const struct word *flag = &acl_flags.row[i];

		if (!(rule->tcp_mask & flag->value))
			continue;
		append(out, "%s%s%s", before, rule->tcp_flags & flag->value ? "" : "!", flag->text);
		before = ",";
	}
}

// Rules about the transport header do not match later fragments anyway.
static void print_fragments(struct text *out, const struct acl_rule *rule)
{
	const uint8_t all = rule_asks_transport(rule)
	                            ? 1 << WIRE_FRAGMENT_NONE | 1 << WIRE_FRAGMENT_FIRST
	                            : ACL_ANY_FRAGMENT;

	if (rule->fragments != all)
		append(out, " fragment %s", words_text(&acl_fragments, rule->fragments));
}

static void print_police(struct text *out, const struct acl_police *police)
{
	char rate[POLICE_TEXT], burst[POLICE_TEXT];

	append(out, " police.rate %s police.burst %s", police_print_rate(police, rate),
		police_print_burst(police, burst));
	if (police->mtu)
		append(out, " police.mtu %u", police->mtu);
	if (police->overhead)
		append(out, " police.overhead %u", police->overhead);
	if (police->bucket[0])
		append(out, " police.bucket %s", police->bucket);
}

const char *acl_rule_print(const struct acl_rule *rule, char *text)
{
	struct text out = {text, ACL_RULE_TEXT};
	const char *protocol = words_text(&acl_protocols, rule->protocol);

	append(&out, "%s", acl_effect_word(rule->effect));
	if (protocol && rule->protocol != ACL_ANY_PROTOCOL)
		append(&out, " %s", protocol);
	else if (!protocol)
		append(&out, " %u", rule->protocol);
	if (rule->family && !rule->from.addr.family && !rule->to.addr.family)
		append(&out, " family %s", words_text(&acl_families, rule->family));
	print_prefix(&out, "from", &rule->from);
	print_prefix(&out, "to", &rule->to);
	print_range(&out, "from_port", &rule->from_port);
	print_range(&out, "to_port", &rule->to_port);
	print_range(&out, "icmp_type", &rule->icmp_type);
	print_range(&out, "icmp_code", &rule->icmp_code);
	print_range(&out, "dscp", &rule->dscp);
	print_flags(&out, rule);
	print_fragments(&out, rule);
	if (rule->is_local)
		append(&out, " local");
	if (rule->mark != ACL_KEEP_DSCP)
		append(&out, " mark %u", rule->mark);
	if (rule->mirror[0])
		append(&out, " mirror %s", rule->mirror);
	if (rule->police.rate)
		print_police(&out, &rule->police);
	return text;
}
