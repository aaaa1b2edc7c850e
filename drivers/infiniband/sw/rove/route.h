/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * route.h - a route that was looked up before, and whether it may be used again
 */
#ifndef ROVE_ROUTE_H
#define ROVE_ROUTE_H

#include <linux/jiffies.h>
#include <net/dst.h>
#include <net/ip6_fib.h>
#include "compat.h"

/*
 * What the kernel does not announce counts after this: a gateway that has died, a redirect
 * that has expired, a reverse path filter that was switched on.
 */
#define ROVE_ROUTE_GOOD_FOR	HZ

/**
 * struct rove_route - a route, remembered
 * @dst: the route, referenced; or NULL
 * @cookie: tells whether the kernel has taken it back
 * @since: when it was looked up, jiffies
 */
struct rove_route {
	struct dst_entry *dst;
	u32 cookie;
	unsigned long since;
};

/* Remember @dst, whose reference @r takes over; or that there is none: NULL. */
static inline void rove_route_set(struct rove_route *r, struct dst_entry *dst, bool ipv6)
{
	r->dst = dst;
	r->cookie = dst && ipv6 ? rt6_get_cookie(dst_rt6_info(dst)) : 0;
	r->since = jiffies;
}

/* May it be used?  Within rcu_read_lock(). */
static inline bool rove_route_good(const struct rove_route *r)
{
	return r->dst &&
	       time_in_range(jiffies, r->since, r->since + ROVE_ROUTE_GOOD_FOR) &&
	       dst_check(r->dst, r->cookie);
}

#endif /* ROVE_ROUTE_H */
