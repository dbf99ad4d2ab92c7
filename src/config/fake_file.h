// Configuration files that exist as text only, for the tests of their readers. Test.
#pragma once

#include "config/inside.h"

// A file's first three lines.
#define PORTS "ports:\n  - {name: left, device: net_null0}\n  - {name: right, device: net_null1}\n"

// Reads text as dl3d's file f.yaml, as config_read would.
int fake_read(struct config **out, const char *text, struct complaint *why);
// The same of text that must be accepted. Owner: caller, config_free.
struct config *fake_take(const char *text);
// Reads text as dl3gen's file g.yaml.
int fake_read_generator(struct config **out, const char *text, struct complaint *why);
struct config *fake_take_generator(const char *text);
