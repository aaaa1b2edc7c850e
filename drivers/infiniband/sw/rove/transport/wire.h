/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * wire.h - what a RoCE v2 packet looks like
 *
 * A packet is IP | UDP (port 4791) | BTH | extended headers | payload | pad |
 * ICRC (IBTA vol. 1, 9.2 to 9.6 and annex A17).  Which extended headers
 * follow the BTH is a property of the opcode: see rove_opcodes[].
 *
 * When you add an opcode: its number here, its row in opcode.c, its build in
 * frame.c, its processing in requester.c or responder.c, and its name in the
 * simulator's trace.
 */
#ifndef ROVE_WIRE_H
#define ROVE_WIRE_H

#include <linux/types.h>

#define ROVE_UDP_PORT		4791
#define ROVE_PKEY_DEFAULT	0xffff
#define ROVE_ICRC_LEN		4
/* A datagram for each QP of a multicast group. */
#define ROVE_MULTICAST_QPN	0xffffff
/* In a work request: take the Q_Key of the QP instead (10.2.5). */
#define ROVE_QKEY_OWN		0x80000000
/* Room that a received datagram leaves for its network header. */
#define ROVE_GRH_LEN		40

/* Longest BTH plus extended headers: BTH + XRCETH + AtomicETH, 12 + 4 + 28. */
#define ROVE_MAX_HDR		44

/* The transport service is the top three bits of the opcode. */
enum rove_service {
	ROVE_SVC_RC = 0x00,
	ROVE_SVC_UC = 0x20,
	ROVE_SVC_UD = 0x60,
	ROVE_SVC_CNP = 0x80,
	ROVE_SVC_XRC = 0xa0,
	ROVE_SVC_MASK = 0xe0,
};

/* The operation is the low five bits; these are the RC ones (table 38). */
enum rove_opcode {
	ROVE_OP_SEND_FIRST		= 0x00,
	ROVE_OP_SEND_MIDDLE		= 0x01,
	ROVE_OP_SEND_LAST		= 0x02,
	ROVE_OP_SEND_LAST_IMM		= 0x03,
	ROVE_OP_SEND_ONLY		= 0x04,
	ROVE_OP_SEND_ONLY_IMM		= 0x05,
	ROVE_OP_WRITE_FIRST		= 0x06,
	ROVE_OP_WRITE_MIDDLE		= 0x07,
	ROVE_OP_WRITE_LAST		= 0x08,
	ROVE_OP_WRITE_LAST_IMM		= 0x09,
	ROVE_OP_WRITE_ONLY		= 0x0a,
	ROVE_OP_WRITE_ONLY_IMM		= 0x0b,
	ROVE_OP_READ_REQUEST		= 0x0c,
	ROVE_OP_READ_RESP_FIRST		= 0x0d,
	ROVE_OP_READ_RESP_MIDDLE	= 0x0e,
	ROVE_OP_READ_RESP_LAST		= 0x0f,
	ROVE_OP_READ_RESP_ONLY		= 0x10,
	ROVE_OP_ACKNOWLEDGE		= 0x11,
	ROVE_OP_ATOMIC_ACK		= 0x12,
	ROVE_OP_COMPARE_SWAP		= 0x13,
	ROVE_OP_FETCH_ADD		= 0x14,
	ROVE_OP_SEND_LAST_INV		= 0x16,
	ROVE_OP_SEND_ONLY_INV		= 0x17,
	ROVE_OP_ATOMIC_WRITE		= 0x1d,
};

/* All that UD has. */
enum rove_ud_opcode {
	ROVE_OP_UD_SEND_ONLY		= ROVE_SVC_UD | ROVE_OP_SEND_ONLY,
	ROVE_OP_UD_SEND_ONLY_IMM	= ROVE_SVC_UD | ROVE_OP_SEND_ONLY_IMM,
};

/* What an opcode carries and where in a message it stands. */
enum rove_opcode_flags {
	ROVE_OPF_VALID		= 1 << 0,
	ROVE_OPF_REQUEST	= 1 << 1,	/* to a responder; else to a requester */
	ROVE_OPF_FIRST		= 1 << 2,	/* begins a message */
	ROVE_OPF_LAST		= 1 << 3,	/* ends a message */
	ROVE_OPF_SEND		= 1 << 4,
	ROVE_OPF_WRITE		= 1 << 5,
	ROVE_OPF_READ		= 1 << 6,	/* request, or response */
	ROVE_OPF_ATOMIC		= 1 << 7,	/* request, or response */
	ROVE_OPF_RETH		= 1 << 8,
	ROVE_OPF_ATOMICETH	= 1 << 9,
	ROVE_OPF_AETH		= 1 << 10,
	ROVE_OPF_ATOMICACK	= 1 << 11,
	ROVE_OPF_IMM		= 1 << 12,
	ROVE_OPF_INV		= 1 << 13,
	ROVE_OPF_PAYLOAD	= 1 << 14,	/* may carry payload */
	ROVE_OPF_DETH		= 1 << 15,
	ROVE_OPF_XRCETH		= 1 << 16,
};

/**
 * struct rove_opcode_info - one row of the opcode table
 * @flags: enum rove_opcode_flags; 0 for an opcode that we do not know
 * @hdr_len: bytes of BTH and extended headers
 */
struct rove_opcode_info {
	u32 flags;
	u8 hdr_len;
};

extern const struct rove_opcode_info rove_opcodes[256];

/* Base transport header (9.2). */
struct rove_bth {
	u8 opcode;
	u8 flags;		/* SE, M, pad count, TVer */
	__be16 pkey;
	__be32 qpn;		/* F, B, 6 reserved bits, destination QPN */
	__be32 apsn;		/* AckReq, 7 reserved bits, PSN */
} __packed;

#define ROVE_BTH_SE		0x80
#define ROVE_BTH_MIG		0x40
#define ROVE_BTH_PAD_SHIFT	4
#define ROVE_BTH_PAD_MASK	0x30
#define ROVE_BTH_TVER_MASK	0x0f
#define ROVE_BTH_ACKREQ		0x80000000U

struct rove_xrceth {		/* XRC extended transport header (annex A14) */
	__be32 srqn;		/* 8 reserved bits, SRQ number */
} __packed;

struct rove_reth {		/* RDMA extended transport header (9.3.3) */
	__be64 va;
	__be32 rkey;
	__be32 len;
} __packed;

struct rove_deth {		/* datagram extended transport header (9.3.2) */
	__be32 qkey;
	__be32 src_qpn;		/* 8 reserved bits, source QPN */
} __packed;

struct rove_atomiceth {		/* 9.3.4 */
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;

struct rove_aeth {		/* ACK extended transport header (9.3.5) */
	__be32 smsn;		/* syndrome, MSN */
} __packed;

/* AETH syndromes (table 44): three bits of kind, five of value. */
enum rove_syndrome {
	ROVE_AETH_ACK		= 0x00,		/* value: credit count */
	ROVE_AETH_RNR_NAK	= 0x20,		/* value: timer code */
	ROVE_AETH_NAK		= 0x60,		/* value: NAK code */
	ROVE_AETH_KIND		= 0xe0,
	ROVE_AETH_VALUE		= 0x1f,
	ROVE_AETH_NO_CREDIT	= 0x1f,		/* ACK: credits are not counted */
};

enum rove_nak {			/* table 45 */
	ROVE_NAK_PSN_SEQ	= 0,
	ROVE_NAK_INV_REQ	= 1,
	ROVE_NAK_REM_ACCESS	= 2,
	ROVE_NAK_REM_OP		= 3,
};

#endif /* ROVE_WIRE_H */
