// Private to rpc: JSON-RPC 2.0 error lines.
#pragma once

// JSON-RPC 2.0, section 5.1.
enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_METHOD_FAILED = -32000, // error returned by the method; dl3 exits with status 2
	RPC_TURNED_AWAY = -32001,
};

// An error that belongs to no particular request (id null). Owner: caller, free. NULL: out of
// memory.
char *rpc_error_line(int code, const char *message);
