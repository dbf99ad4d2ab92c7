// A bridge with a device of VXLAN or of frames in GRE, for tests. Asserts.
#pragma once

#include "datapath/fake.h"
#include "mac/mac.h"

enum { HOSTS = 0, OTHERS = 1, UNDER = 2, SECOND = 3, DEVICE = 300, BRIDGE = 301, NUMBER = 5 };
enum { MEMBER = MAC_FIRST_TUNNEL + NUMBER, VNI = 0x10203, UDP_PORT = 4789, MTU = 1500 };
enum { OUTER4 = 50, OUTER6 = 70, LENGTH = 100, NOBODY = 99 };

// The bridge's table and settings; `remote`: numbers of its remote ends, at 10.2.0.9 and .10, or
// 2001:db8:2::9 and a. `told`: what Linux was told last. `stat_before`: see note_before.
extern struct mac_table *table;
extern struct mac_member members[3];
extern struct mac_bridge bridge;
extern struct iface device;
extern uint32_t vtep[2], remote[2];
extern struct stats_worker stat_before;
extern struct mac_info told;
extern const struct wire_mac own;
extern const uint8_t broadcast[6];

// open_vxlan and close_vxlan: setup and teardown. `reset`: a bridge of the file of ports 0 and 1
// and the device, without addresses; `reset_linux`: one of Linux, which workers route on. `follow`:
// a host is behind a port, or a remote end. `wrapped`: what is sent to remote end i, with source
// port 0 and without checksum; `arriving`: what comes from there. `expect_wrapped`: sent frame k is
// this one, but for its source port, which is returned, and its id.
struct wire_addr addr(const char *text);
struct wire_mac mac_of(unsigned host);
struct wire_addr end_addr(unsigned i, bool is_ip6);
int open_vxlan(void **state);
int close_vxlan(void **state);
void commit(void);
void set_ends(bool is_ip6, unsigned n);
void note_before(void);
void reset(bool is_ip6, uint16_t flags);
void reset_linux(uint8_t linuxs);
void follow(unsigned host, uint32_t port);
struct bytes frame(const uint8_t dst[6], unsigned from);
struct bytes frame_between(unsigned to, unsigned from);
void set_length(struct bytes *packet, bool is_ip6);
struct bytes wrapped(const struct bytes *inner, unsigned i, bool is_ip6);
struct bytes arriving(const struct bytes *inner, unsigned i, bool is_ip6);
uint16_t expect_wrapped(uint8_t port, unsigned k, struct bytes expected, bool is_ip6);
void receive(uint8_t port, const struct bytes *made);
void expect_verdict(enum verdict verdict);
unsigned n_sent(uint8_t port);
void expect_refused(const struct bytes *packet, enum verdict verdict);
