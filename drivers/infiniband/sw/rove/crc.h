/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * crc.h - which CRC-32 the ICRC is made with; transport/env.h has rove_env_crc32()
 */
#ifndef ROVE_CRC_H
#define ROVE_CRC_H

/* Module init: find the fastest, and say which it is.  May sleep; -ENOMEM. */
int rove_crc_init(void);
/* Module exit: no packet is left to be made or checked. */
void rove_crc_exit(void);

#endif /* ROVE_CRC_H */
