// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * swarm.c - draws the settings of a round
 *
 * Each trouble is there or not, by the toss of a coin, and then anything from hardly
 * to a lot: what only shows while something else does not happen is found as well
 * as what takes three things at once.  What a QP is like (MTU, window, depths, retry
 * counts, responder resources) user.c draws for every connection.  Now and then the
 * peer breaks the rules instead.
 */
#include "sim.h"

#define MOST_LOSS	500000	/* ppm */

/* Parts per million: none at all, or up to @most. */
static u32 some(u32 most)
{
	u32 level = most >> below(14);

	return rnd() & 1 ? between(level / 2, level) : 0;
}

const struct scenario *swarm_draw(const struct scenario *base)
{
	static struct scenario sc;

	sc = *base;
	if (!below(16)) {
		/* All trouble comes from it. */
		sc.run = rogue_some;
		sc.eagain = some(300000);
		sc.paging = some(50000);
		sc.absent = some(50000);
		sc.gone = some(50000);
		sc.max_len = 4096;
		trace(NULL, "a peer that breaks the rules; no room %u, paging %u and %u, gone %u",
		      sc.eagain, sc.paging, sc.absent, sc.gone);
		return &sc;
	}
	sc.drop = some(MOST_LOSS);
	sc.dup = some(200000);
	sc.ghost = some(100000);
	sc.reorder = some(200000);
	sc.corrupt = some(100000);
	sc.slow = some(1000);
	sc.remark = some(200000);
	sc.eagain = some(300000);
	sc.paging = some(50000);
	sc.absent = some(50000);
	sc.starve = some(50000);
	sc.drain = some(30000);
	sc.bad = below(4) ? 0 : some(10000);
	sc.jump = some(1000);
	/* Who stands still is behind afterwards. */
	sc.lag = 500 * sc.jump;
	sc.rnr = rnd() & 1;
	sc.wrap = rnd() & 1;
	sc.finite = !below(4);
	sc.bulk = !below(8);
	sc.same_id = !below(8);
	sc.xrc = some(1000000);
	sc.srq = sc.rnr ? some(1000000) : 0;
	/* An XRC target has no other receives, so its SENDs wait for none. */
	if (sc.xrc)
		sc.rnr = true;
	/* They drop a message whose memory is on its way, and who knows which. */
	sc.unreliable = below(4) ? 0 : rnd() & 1 ? ROVE_SVC_UC : ROVE_SVC_UD;
	if (sc.unreliable) {
		sc.paging = 0;
		sc.xrc = 0;
		sc.srq = 0;
	}
	sc.gbn = some(1000000);
	/* It knows nothing of connections that end. */
	if (sc.bad || sc.finite || sc.unreliable)
		sc.gbn = 0;
	sc.ip = below(3) ? 0 : rnd() & 1 ? 4 : 6;
	/* Long messages take long where most is lost. */
	sc.max_len = sc.drop > 50000 ? between(64, 4000) : between(64, 30000);
	trace(NULL, "loss %u, copies %u, late %u, disorder %u, damage %u, no room %u",
	      sc.drop, sc.dup, sc.ghost, sc.reorder, sc.corrupt, sc.eagain);
	trace(NULL, "paging %u and %u, bad %u", sc.paging, sc.absent, sc.bad);
	trace(NULL, "jumps %u, behind %u%s%s%s%s%s", sc.jump, sc.lag, sc.rnr ? ", RNR" : "",
	      sc.finite ? ", retries end" : "", sc.xrc ? ", XRC" : "",
	      sc.srq ? ", SRQ" : "", sc.gbn ? ", go-back-N" : "");
	return &sc;
}
