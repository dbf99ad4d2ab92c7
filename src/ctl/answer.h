// Private to the room: error lines of JSON-RPC 2.0.
#pragma once

// JSON-RPC 2.0, section 5.1.
enum {
	CTL_PARSE_ERROR = -32700,
	CTL_INVALID_REQUEST = -32600,
	CTL_METHOD_NOT_FOUND = -32601,
	CTL_INVALID_PARAMS = -32602,
	CTL_INTERNAL_ERROR = -32603,
	CTL_VERB_FAILED = -32000, // the verb's own complaint; dl3 leaves with 2
	CTL_TURNED_AWAY = -32001,
};

// An error that answers no request in particular (id null). Owner: caller, free. NULL: out of
// memory.
char *ctl_error_line(int code, const char *message);
