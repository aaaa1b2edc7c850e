// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * opcode.c - which headers and which role each opcode has (IBTA table 38)
 */
#include "wire.h"

#define BTH_LEN		sizeof(struct rove_bth)
#define RETH_LEN	sizeof(struct rove_reth)
#define ATOMICETH_LEN	sizeof(struct rove_atomiceth)
#define AETH_LEN	sizeof(struct rove_aeth)
#define ATOMICACK_LEN	8
#define IMM_LEN		4
#define XRCETH_LEN	sizeof(struct rove_xrceth)
#define DETH_LEN	sizeof(struct rove_deth)
#define INV_LEN		4

#define REQ		(ROVE_OPF_VALID | ROVE_OPF_REQUEST)
/* Neither begins a message nor goes on with one, so it is refused in its turn (9.7.5.2.6). */
#define NOT_HERE	(REQ | ROVE_OPF_PAYLOAD)
#define RSP		ROVE_OPF_VALID
#define FIRST		ROVE_OPF_FIRST
#define LAST		ROVE_OPF_LAST
#define ONLY		(FIRST | LAST)
#define SEND		(REQ | ROVE_OPF_SEND | ROVE_OPF_PAYLOAD)
#define WRITE_MSG	(REQ | ROVE_OPF_WRITE | ROVE_OPF_PAYLOAD)
#define READ_RSP	(RSP | ROVE_OPF_READ | ROVE_OPF_PAYLOAD)
#define RETH		ROVE_OPF_RETH
#define AETH		ROVE_OPF_AETH
#define IMM		ROVE_OPF_IMM
#define DETH		ROVE_OPF_DETH
#define INV		ROVE_OPF_INV
#define ATOMIC		(REQ | ROVE_OPF_ATOMIC | ROVE_OPF_ATOMICETH | ONLY)

#define ROW(svc, op, fl, len) \
	[ROVE_SVC_##svc | ROVE_OP_##op] = { .flags = (fl), .hdr_len = BTH_LEN + (len) }

/*
 * What UC has, all connected services have.  XRC has one header more in its requests:
 * @xrc, of @more bytes.
 */
#define CONNECTED_ROWS(svc, xrc, more)						\
	ROW(svc, SEND_FIRST, SEND | FIRST | (xrc), (more)), \
	ROW(svc, SEND_MIDDLE, SEND | (xrc), (more)), \
	ROW(svc, SEND_LAST, SEND | LAST | (xrc), (more)), \
	ROW(svc, SEND_LAST_IMM, SEND | LAST | IMM | (xrc), IMM_LEN + (more)), \
	ROW(svc, SEND_ONLY, SEND | ONLY | (xrc), (more)), \
	ROW(svc, SEND_ONLY_IMM, SEND | ONLY | IMM | (xrc), IMM_LEN + (more)), \
	ROW(svc, WRITE_FIRST, WRITE_MSG | FIRST | RETH | (xrc), RETH_LEN + (more)), \
	ROW(svc, WRITE_MIDDLE, WRITE_MSG | (xrc), (more)), \
	ROW(svc, WRITE_LAST, WRITE_MSG | LAST | (xrc), (more)), \
	ROW(svc, WRITE_LAST_IMM, WRITE_MSG | LAST | IMM | (xrc), IMM_LEN + (more)), \
	ROW(svc, WRITE_ONLY, WRITE_MSG | ONLY | RETH | (xrc), RETH_LEN + (more)), \
	ROW(svc, WRITE_ONLY_IMM, WRITE_MSG | ONLY | RETH | IMM | (xrc), RETH_LEN + IMM_LEN + (more))

/* What is reserved, or not implemented as FLUSH (1c), is answered all the same. */
#define OTHER_ROWS(svc, from, to, xrc, more)					\
	[ROVE_SVC_##svc | (from) ... ROVE_SVC_##svc | (to)] =			\
		{ .flags = NOT_HERE | (xrc), .hdr_len = BTH_LEN + (more) }

#define RELIABLE_ROWS(svc, xrc, more)						\
	CONNECTED_ROWS(svc, xrc, more),						\
	OTHER_ROWS(svc, 0x15, 0x15, xrc, more),					\
	OTHER_ROWS(svc, 0x18, 0x1c, xrc, more),					\
	OTHER_ROWS(svc, 0x1e, 0x1f, xrc, more),					\
	ROW(svc, SEND_LAST_INV, SEND | LAST | INV | (xrc), INV_LEN + (more)), \
	ROW(svc, SEND_ONLY_INV, SEND | ONLY | INV | (xrc), INV_LEN + (more)), \
	ROW(svc, READ_REQUEST, REQ | ROVE_OPF_READ | ONLY | RETH | (xrc), RETH_LEN + (more)), \
	ROW(svc, READ_RESP_FIRST, READ_RSP | FIRST | AETH,	AETH_LEN), \
	ROW(svc, READ_RESP_MIDDLE, READ_RSP,			0),	\
	ROW(svc, READ_RESP_LAST, READ_RSP | LAST | AETH,	AETH_LEN), \
	ROW(svc, READ_RESP_ONLY, READ_RSP | ONLY | AETH,	AETH_LEN), \
	ROW(svc, ACKNOWLEDGE,	RSP | ONLY | AETH,		AETH_LEN), \
	ROW(svc, ATOMIC_ACK,	RSP | ONLY | ROVE_OPF_ATOMIC | AETH |	\
				ROVE_OPF_ATOMICACK, AETH_LEN + ATOMICACK_LEN), \
	ROW(svc, COMPARE_SWAP, ATOMIC | (xrc), ATOMICETH_LEN + (more)), \
	ROW(svc, FETCH_ADD, ATOMIC | (xrc), ATOMICETH_LEN + (more)), \
	ROW(svc, ATOMIC_WRITE, REQ | ROVE_OPF_ATOMIC | RETH | ROVE_OPF_PAYLOAD | \
				ONLY | (xrc), RETH_LEN + (more))

const struct rove_opcode_info rove_opcodes[256] = {
	RELIABLE_ROWS(RC, 0, 0),
	CONNECTED_ROWS(UC, 0, 0),
	RELIABLE_ROWS(XRC, ROVE_OPF_XRCETH, XRCETH_LEN),
	ROW(UD, SEND_ONLY,	SEND | ONLY | DETH,		DETH_LEN),
	ROW(UD, SEND_ONLY_IMM,	SEND | ONLY | DETH | IMM,	DETH_LEN + IMM_LEN),
};
