// Profiles and subscribers as lines of a file: as they were when the export began, however many
// turns of the control loop it takes. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct qos_export {
	struct qos *qos;
	FILE *out;
	uint32_t n_profiles; // of those to be written, parents before their children
	uint32_t next;       // index: all before it are written
	uint32_t n_written;
	uint64_t is_written[QOS_MAX / 64]; // also behind `next`: what was there has changed since
};

static void write_counts(const struct qos_count count[QOS_DIRECTIONS], FILE *out)
{
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		fprintf(out, " %s", direction_words[d]);
		for (unsigned colour = 0; colour < POLICE_COLOURS; colour++)
			fprintf(out, " %" PRIu64 "/%" PRIu64, count[d].packets[colour],
				count[d].bytes[colour]);
	}
}

static void write_subscriber(const struct qos *qos, const struct qos_info *info, FILE *out)
{
	fprintf(out, "%s number %u", info->name, info->number);
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++)
		if (info->profile[d])
			fprintf(out, " %s %s", direction_words[d], info->profile[d]);
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++)
		if (info->parent[d])
			fprintf(out, " %s %s", parent_words[d], info->parent[d]);
	for (unsigned i = 0; i < info->n_addresses; i++) {
		const struct wire_prefix prefix = qos_address(qos, info->number, i);
		char text[WIRE_PREFIX_TEXT];

		fprintf(out, " address %s", wire_prefix_print(&prefix, text));
	}
	for (unsigned i = 0; i < info->n_ifaces; i++)
		fprintf(out, " interface %s", qos_iface(qos, info->number, i));
	fputs(" #", out);
	write_counts(info->count, out);
	fputc('\n', out);
}

static void write_profile(struct qos_export *export)
{
	const uint32_t i = export->n_profiles++;
	const struct profile *one = export->qos->shown.profile[i % QOS_PROFILES];
	char text[QOS_PROFILE_TEXT];

	if (one && (i < QOS_PROFILES) == !one->parent && !tc_has_name(one->name))
		fprintf(export->out, "profile %s\n", profile_print(one, text));
}

void export_profiles(struct qos_export *export)
{
	while (export->n_profiles < 2 * QOS_PROFILES)
		write_profile(export);
}

// Writes it unless it is written, or there is none.
static void write_index(struct qos_export *export, uint32_t index)
{
	const uint64_t bit = 1ull << index % 64;
	uint32_t number = index + 1;
	struct qos_info info;

	if (export->is_written[index / 64] & bit)
		return;
	export->is_written[index / 64] |= bit;
	if (!export->qos->shown.at[index] || tc_has_name(export->qos->shown.at[index]->name))
		return; // Linux has those of qdiscs
	qos_next(export->qos, &number, &info);
	write_subscriber(export->qos, &info, export->out);
	export->n_written++;
}

void export_keep(struct qos_export *export, uint32_t index)
{
	if (index < export->next)
		return;
	export_profiles(export);
	write_index(export, index);
}

struct qos_export *qos_export_open(struct qos *qos, FILE *out, struct error *error)
{
	struct qos_export *export = calloc(1, sizeof(*export));

	if (!export) {
		error_set(error, -ENOMEM, "not enough memory to export subscribers");
		return NULL;
	}
	*export = (struct qos_export){.qos = qos, .out = out};
	qos->export = export;
	fputs(QOS_EXPORT_HEAD "\n", out);
	return export;
}

bool qos_export_some(struct qos_export *export, unsigned most)
{
	for (; most && export->n_profiles < 2 * QOS_PROFILES; most--)
		write_profile(export);
	for (; most && export->next < export->qos->end; most--)
		write_index(export, export->next++);
	return export->n_profiles < 2 * QOS_PROFILES || export->next < export->qos->end;
}

uint32_t qos_export_n(const struct qos_export *export)
{
	return export->n_written;
}

void qos_export_close(struct qos_export *export)
{
	if (!export)
		return;
	export->qos->export = NULL;
	free(export);
}

bool qos_export(struct qos *qos, FILE *out)
{
	struct qos_export *export = qos_export_open(qos, out, NULL);

	if (!export)
		return false;
	while (qos_export_some(export, QOS_MAX))
		continue;
	qos_export_close(export);
	return !ferror(out);
}
