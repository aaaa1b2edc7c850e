// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * costmem.c - memcpy() and its like for cost.c
 *
 * The C library chooses its own by the CPU it runs on, and instructions are
 * to be counted alike everywhere.
 */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

void *memcpy(void *dst, const void *src, size_t n)
{
	unsigned char *d = dst;
	const unsigned char *s = src;

	for (; n >= sizeof(word); n -= sizeof(word)) {
		*(word *)d = *(const word *)s;
		d += sizeof(word);
		s += sizeof(word);
	}
	while (n--)
		*d++ = *s++;
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	unsigned char *d = dst;

	for (; n >= sizeof(word); n -= sizeof(word)) {
		*(word *)d = (unsigned char)c * 0x0101010101010101ULL;
		d += sizeof(word);
	}
	while (n--)
		*d++ = c;
	return dst;
}
