// Reads capture files into memory: pcap by libpcap, pcapng by pcapng.c. Control thread.
#include "gen/capture.h"

#include "base/bits.h"
#include "base/vector.h"
#include "gen/pcapng.h"
#include "wire/headers.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_BYTES = GEN_MIN_SIZE - WIRE_FCS_BYTES, MOST_BYTES = GEN_MAX_SIZE - WIRE_FCS_BYTES };
enum { MOST_SECONDS = 1 << 30, NS = 1000000000 };
enum { LINKTYPE_ETHERNET = 1, LINKTYPE_RAW = 101, LINK_TYPE_MAX = 32 };

struct reading {
	struct capture *out;
	const struct gen_stream *stream;
	pcap_t *pcap; // NULL: the file is pcapng
	struct pcapng pcapng;
	bool has_fcs; // pcap
	const char *path;
	uint32_t n_read; // of the file's frames, with those left out
	bool has_first;
	uint64_t first_s, first_ns; // time of the first frame that has one
	size_t frame_capacity, byte_capacity;
	struct error *error;
};

static int check_frame(struct reading *r, const struct capture_packet *packet)
{
	if (packet->n_bytes < packet->n_wire)
		return error_set(r->error, -EINVAL,
			"%s: frame %u was truncated to %u of %u bytes when it was captured; "
			"capture whole frames (tcpdump -s 0)",
			r->path, r->n_read, packet->n_bytes, packet->n_wire);
	if (packet->n_bytes < WIRE_ETHER_BYTES || packet->n_bytes > MOST_BYTES)
		return error_set(r->error, -EINVAL,
			"%s: frame %u has %u bytes; expected %d to %d without FCS", r->path,
			r->n_read, packet->n_bytes, WIRE_ETHER_BYTES, MOST_BYTES);
	if (r->n_read > CAPTURE_MAX_FRAMES || r->out->n_bytes + MOST_BYTES > CAPTURE_MAX_BYTES)
		return error_set(r->error, -EFBIG,
			"%s has more than %d frames or %d MiB; use a part of it (editcap -r)",
			r->path, CAPTURE_MAX_FRAMES, CAPTURE_MAX_BYTES >> 20);
	return 0;
}

// An FCS of Ethernet has 4 bytes, whatever length the file declares: writers differ in the unit.
static void cut_fcs(struct capture_packet *packet)
{
	if (!packet->has_fcs)
		return;
	packet->n_wire -= MIN_OF(packet->n_wire, (uint32_t)WIRE_FCS_BYTES);
	packet->n_bytes = MIN_OF(packet->n_bytes, packet->n_wire);
}

// Time since the first frame. Timestamps that go backwards or are implausible or missing are
// replaced by the previous one.
static uint64_t since_first(struct reading *r, const struct capture_packet *packet)
{
	uint64_t s = packet->s, ns = packet->ns < NS ? packet->ns : 0, before = 0;

	if (r->out->n)
		before = r->out->frame[r->out->n - 1].at_ns;
	if (!packet->has_time)
		return before;
	if (!r->has_first)
		r->first_s = s, r->first_ns = ns, r->has_first = true;
	if (s < r->first_s || s - r->first_s > MOST_SECONDS)
		return before;
	uint64_t now = (s - r->first_s) * NS + ns;
	return now < r->first_ns ? before : MAX_OF(before, now - r->first_ns);
}

static void write_macs(const struct gen_stream *stream, uint8_t *frame)
{
	if (stream->capture.sets_dst_mac)
		memcpy(frame, stream->recipe.dst_mac.bytes, 6);
	if (stream->capture.sets_src_mac)
		memcpy(frame + 6, stream->recipe.src_mac.bytes, 6);
}

static int add_frame(struct reading *r, struct capture_packet *packet)
{
	struct capture *out = r->out;

	cut_fcs(packet);
	int err = check_frame(r, packet);
	unsigned n_bytes = MAX_OF(packet->n_bytes, (unsigned)LEAST_BYTES);

	if (err)
		return err;
	if (vector_reserve(&out->frame, &r->frame_capacity, out->n + 1, sizeof(out->frame[0])) ||
		vector_reserve(&out->bytes, &r->byte_capacity, out->n_bytes + n_bytes, 1))
		return error_set(r->error, -ENOMEM, "%s: not enough memory for its frames",
			r->path);
	uint8_t *to = out->bytes + out->n_bytes;
	struct capture_frame target = {.at_ns = since_first(r, packet),
		.offset = out->n_bytes,
		.n_bytes = n_bytes};

	memcpy(to, packet->bytes, packet->n_bytes);
	memset(to + packet->n_bytes, 0, n_bytes - packet->n_bytes);
	write_macs(r->stream, to);
	if (r->stream->capture.stamps)
		capture_make_room(to, &target);
	out->n_stamped += target.layer4 > 0;
	out->frame[out->n++] = target;
	out->n_bytes += n_bytes;
	out->longest = MAX_OF(out->longest, n_bytes);
	return 0;
}

// libpcap has names for its DLT values, which are those of files except for raw IP.
static void name_link_type(char text[LINK_TYPE_MAX], int type)
{
	const char *name = pcap_datalink_val_to_name(type == LINKTYPE_RAW ? DLT_RAW : type);

	if (name)
		snprintf(text, LINK_TYPE_MAX, "%s", name);
	else
		snprintf(text, LINK_TYPE_MAX, "link type %d", type);
}

static int check_kind(struct reading *r)
{
	int kind = pcap_datalink(r->pcap);
	const char *name = pcap_datalink_val_to_name(kind);

	r->has_fcs = LT_FCS_LENGTH_PRESENT(pcap_datalink_ext(r->pcap)) &&
	             LT_FCS_LENGTH(pcap_datalink_ext(r->pcap));
	if (kind == DLT_EN10MB)
		return 0;
	return error_set(r->error, -EINVAL,
		"%s has link-layer type %s; expected an Ethernet capture", r->path,
		name ? name : "unknown");
}

// Same as pcapng_next.
static int next_of_pcap(struct reading *r, struct capture_packet *out, struct error *error)
{
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int got = pcap_next_ex(r->pcap, &head, &bytes);

	if (got != 1)
		return got == PCAP_ERROR_BREAK
		               ? 0
		               : error_set(error, -EINVAL, "%s", pcap_geterr(r->pcap));
	*out = (struct capture_packet){.bytes = bytes,
		.n_bytes = head->caplen,
		.n_wire = head->len,
		.has_fcs = r->has_fcs,
		.has_time = true,
		.s = head->ts.tv_sec,
		.ns = head->ts.tv_usec}; // ns; negative, so very large, for malformed files
	return 1;
}

static int next_packet(struct reading *r, struct capture_packet *out)
{
	struct error inner = {""};
	int got = r->pcap ? next_of_pcap(r, out, &inner) : pcapng_next(&r->pcapng, out, &inner);

	r->n_read += got > 0;
	if (got >= 0)
		return got;
	return error_set(r->error, got,
		"%s is truncated or damaged after frame %u (%.80s); capture again, or repair "
		"the file",
		r->path, r->n_read, inner.text);
}

// Interfaces of other link types, whose frames are left out.
static void list_left_out(struct capture *out, const struct pcapng *pcapng)
{
	const size_t room = sizeof(out->left_out) - sizeof("...");
	char type[LINK_TYPE_MAX];
	size_t n = 0;

	for (uint32_t i = 0; i < pcapng->n_ifaces; i++) {
		const struct pcapng_iface *iface = &pcapng->iface[i];

		if (iface->link_type == LINKTYPE_ETHERNET || !iface->n_packets)
			continue;
		out->n_left_out += iface->n_packets;
		if (n > room)
			continue;
		name_link_type(type, iface->link_type);
		n += snprintf(out->left_out + n, sizeof(out->left_out) - n,
			"%sinterface %u (%s%s%s, %u frame%s)", n ? ", " : "", iface->number,
			iface->name, iface->name[0] ? ", " : "", type, iface->n_packets,
			iface->n_packets == 1 ? "" : "s");
	}
	if (n > room)
		strcpy(out->left_out + room, "...");
}

static int check_any(struct reading *r)
{
	if (r->out->n)
		return 0;
	if (!r->n_read)
		return error_set(r->error, -EINVAL,
			"%s has no frames; expected a capture with at least one", r->path);
	return error_set(r->error, -EINVAL,
		"%s has no Ethernet frames, only those of %s; expected an Ethernet capture",
		r->path, r->out->left_out);
}

static int read_frames(struct reading *r)
{
	struct capture_packet packet;
	int got = r->pcap ? check_kind(r) : 0, err = got;

	while (!err && (got = next_packet(r, &packet)) > 0)
		if (r->pcap || r->pcapng.iface[packet.iface].link_type == LINKTYPE_ETHERNET)
			err = add_frame(r, &packet);
	list_left_out(r->out, &r->pcapng);
	err = err ? err : got;
	return err ? err : check_any(r);
}

// The gap between the last frame and the first one of the next lap is the mean gap.
static void settle_lap(struct capture *out)
{
	uint64_t last_ns = out->frame[out->n - 1].at_ns;

	out->lap_ns = out->n > 1 ? last_ns + last_ns / (out->n - 1) : 0;
}

// The file is closed if this fails, otherwise by close_file.
static int open_file(struct reading *r, FILE *file)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	uint32_t magic = 0;
	size_t n = fread(&magic, 1, sizeof(magic), file);

	rewind(file);
	if (magic == PCAPNG_MAGIC) {
		r->pcapng.file = file;
		return 0;
	}
	r->pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, text);
	if (r->pcap)
		return 0;
	fclose(file);
	if (!n)
		return error_set(r->error, -EINVAL, "%s is empty; expected a pcap or pcapng file",
			r->path);
	return error_set(r->error, -EINVAL,
		"%s is not a capture file (%.80s); expected a pcap or pcapng file", r->path, text);
}

static void close_file(struct reading *r)
{
	if (r->pcap)
		pcap_close(r->pcap);
	else
		fclose(r->pcapng.file);
	pcapng_free(&r->pcapng);
}

int capture_read_file(struct capture *out, FILE *file, const struct gen_stream *stream,
	struct error *error)
{
	struct reading r = {.out = out,
		.stream = stream,
		.path = stream->capture.path,
		.error = error};

	*out = (struct capture){0};
	int err = open_file(&r, file);
	if (err)
		return err;
	err = read_frames(&r);
	close_file(&r);
	if (!err)
		settle_lap(out);
	return err;
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS + time->tv_nsec;
}

static struct gen_file file_of(const struct stat *target)
{
	return (struct gen_file){.device = target->st_dev,
		.inode = target->st_ino,
		.n_bytes = target->st_size,
		.modified_ns = ns_of(&target->st_mtim),
		.changed_ns = ns_of(&target->st_ctim)};
}

static int check_unchanged(const struct capture *out, const char *path, struct error *error)
{
	struct gen_file now = {0};
	struct stat target;

	if (!stat(path, &target))
		now = file_of(&target);
	if (!memcmp(&now, &out->file, sizeof(now)))
		return 0;
	return error_set(error, -EINVAL,
		"%s was changed while it was read; try again when no program is writing to it",
		path);
}

int capture_read(struct capture *out, const struct gen_stream *stream, struct error *error)
{
	const char *path = stream->capture.path;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // O_NONBLOCK: opening a pipe would
	                                                        // block
	struct stat target;
	int err;

	*out = (struct capture){0};
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	FILE *file = fstat(fd, &target) || !S_ISREG(target.st_mode) ? NULL : fdopen(fd, "r");
	if (file) {
		err = capture_read_file(out, file, stream, error);
		out->file = file_of(&target);
		return err ? err : check_unchanged(out, path, error);
	}
	close(fd);
	return error_set(error, -EINVAL, "%s is not a file; expected a capture file", path);
}

void capture_free(struct capture *capture)
{
	free(capture->frame);
	free(capture->bytes);
	*capture = (struct capture){0};
}
