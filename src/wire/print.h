// Formats a frame as a line of text. Any thread but workers; no state.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { WIRE_FRAME_TEXT = 320 };

// Describes the first `bytes` bytes of a frame, for example
// "frame of 60 bytes: 02:00:00:00:00:01 > 02:00:00:00:00:02 IPv4 192.0.2.1:1024 > 198.51.100.1:2048
// UDP ttl 64 length 46". Missing or invalid parts are reported in their place. `text` has space for
// WIRE_FRAME_TEXT characters; returned. Never reads beyond `bytes`.
const char *wire_frame_print(const uint8_t *frame, size_t bytes, char *text);
